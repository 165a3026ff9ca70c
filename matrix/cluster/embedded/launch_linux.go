package embedded

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// launch starts the binary and waits for the status that it prints when the cluster is
// ready. Unless the cluster is retained, it holds one end of a pipe whose other end the
// binary watches: the kernel closes ours when this process ends, even by SIGKILL. The binary
// inherits the locked state folder.
func launch(ctx context.Context, binary string, arguments []string, o Options, folder *os.File) (*handle, status, error) {
	log, err := openLog(o.Dir)
	if err != nil {
		return nil, status{}, err
	}
	defer log.Close()
	cmd := exec.Command(binary, arguments...)
	cmd.Stderr = log
	// A session of its own: a Ctrl-C in the terminal reaches this process, which decides.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.ExtraFiles = []*os.File{folder}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, status{}, err
	}
	var lifeline *os.File
	if !o.Retain {
		watched, held, err := os.Pipe()
		if err != nil {
			return nil, status{}, err
		}
		defer watched.Close()
		lifeline = held
		cmd.ExtraFiles = append(cmd.ExtraFiles, watched)
		cmd.Args = append(cmd.Args, "--lifeline-fd=4") // the second of ExtraFiles
	}
	if err := cmd.Start(); err != nil {
		lifeline.Close()
		return nil, status{}, fmt.Errorf("run %s: %w", binary, err)
	}
	h := newChildHandle(cmd, lifeline)
	s, err := waitForStatus(ctx, stdout)
	if err == nil {
		return h, s, nil
	}
	if stopErr := h.stop(context.Background()); stopErr != nil {
		err = errors.Join(err, stopErr)
	}
	if ctx.Err() != nil {
		return nil, status{}, err
	}
	return nil, status{}, fmt.Errorf("%w\n%s", err, tail(log))
}

// openLog opens the log of the binary itself; the components have files of their own.
func openLog(dir string) (*os.File, error) {
	logs := filepath.Join(dir, "logs")
	if err := os.MkdirAll(logs, 0o700); err != nil {
		return nil, err
	}
	return os.OpenFile(filepath.Join(logs, "controlplane.log"), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
}

func waitForStatus(ctx context.Context, stdout io.Reader) (status, error) {
	type line struct {
		text []byte
		err  error
	}
	first := make(chan line, 1)
	go func() {
		text, err := bufio.NewReader(stdout).ReadBytes('\n')
		first <- line{text, err}
	}()
	select {
	case <-ctx.Done():
		return status{}, context.Cause(ctx)
	case l := <-first:
		if l.err != nil {
			return status{}, errors.New("it ended before it was ready")
		}
		return parseStatus(l.text)
	}
}

func parseStatus(text []byte) (status, error) {
	var s status
	if err := json.Unmarshal(text, &s); err != nil {
		return status{}, fmt.Errorf("read its status %q: %w", text, err)
	}
	return s, nil
}

// tail is the end of a log for an error message. The file may have been deleted meanwhile.
func tail(log *os.File) string {
	const size, lines = 8192, 30
	info, err := log.Stat()
	if err != nil {
		return err.Error()
	}
	offset := max(0, info.Size()-size)
	text, err := io.ReadAll(io.NewSectionReader(log, offset, size))
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
