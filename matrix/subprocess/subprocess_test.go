//go:build linux

package subprocess

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// parentVariable makes this test program a parent that starts a child and waits for it.
const parentVariable = "SUBPROCESS_TEST_PARENT"

// hang is a time after which something is taken to be stuck, not slow.
const hang = time.Minute

func TestMain(m *testing.M) {
	if os.Getenv(parentVariable) == "" {
		os.Exit(m.Run())
	}
	cmd := exec.CommandContext(context.Background(), "sleep", "600")
	if err := Start(cmd); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(cmd.Process.Pid) // the test reads it
	_ = cmd.Wait()
}

func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

func eventuallyGone(t *testing.T, pid int) {
	t.Helper()
	for deadline := time.Now().Add(hang); alive(pid); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("process %d is still there", pid)
		}
	}
}

func TestChildrenEndWithAKilledParent(t *testing.T) {
	parent := exec.Command("/proc/self/exe")
	parent.Env = append(os.Environ(), parentVariable+"=1")
	stdout, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || !alive(child) {
		t.Fatalf("the parent says %q, %v", line, err)
	}
	t.Cleanup(func() { _ = syscall.Kill(child, syscall.SIGKILL) })
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	eventuallyGone(t, child)
}

func TestCancelReachesGrandchildren(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", "sleep 600 & echo $!; wait")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := Start(cmd); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	grandchild, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || !alive(grandchild) {
		t.Fatalf("the child says %q, %v", line, err)
	}
	cancel()
	if err := cmd.Wait(); err == nil {
		t.Error("a cancelled command ended without an error")
	}
	eventuallyGone(t, grandchild)
}

func TestOutputAndErrors(t *testing.T) {
	out, err := Output(exec.Command("sh", "-c", "echo told; exit 3"))
	var exit *exec.ExitError
	if string(out) != "told\n" || !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("got %q, %v, want what was told and exit code 3", out, err)
	}
	if err := Run(exec.Command("/there/is/no/such/program")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a program that is not there: %v", err)
	}
}
