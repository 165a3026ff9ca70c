// Command pod is what the tests of package embedded run in pods: it tells what it sees of
// itself and does what it is asked for.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
)

// State is what the program sees of itself.
type State struct {
	UID, GID          int
	Groups            []int
	PID               int
	Dir, Hostname     string
	Args, Env         []string
	Status            map[string]string // of /proc/self/status
	RootWriteError    string
	VolumeWriteError  string
	TokenReadable     bool
	ImageFile         string
	DeletedFileExists bool
}

var failing atomic.Bool

func main() {
	if len(os.Args) > 1 && os.Args[1] == "echo" {
		echo()
		return
	}
	http.HandleFunc("/state", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(state()) })
	http.HandleFunc("/healthz", health)
	http.HandleFunc("/fail", func(http.ResponseWriter, *http.Request) { failing.Store(true) })
	http.HandleFunc("/exit", exit)
	http.HandleFunc("/resolve", resolve)
	http.HandleFunc("/fetch", fetch)
	fmt.Println("listening on :8080")
	fmt.Fprintln(os.Stderr, http.ListenAndServe(":8080", nil))
	os.Exit(1)
}

// echo prints who it is, then what it reads.
func echo() {
	fmt.Printf("uid=%d args=%s\n", os.Getuid(), strings.Join(os.Args[2:], ","))
	_, _ = io.Copy(os.Stdout, os.Stdin)
	os.Exit(7)
}

func state() State {
	s := State{UID: os.Getuid(), GID: os.Getgid(), PID: os.Getpid(), Args: os.Args, Env: os.Environ(), Status: map[string]string{}}
	s.Groups, _ = os.Getgroups()
	s.Dir, _ = os.Getwd()
	s.Hostname, _ = os.Hostname()
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		key, value, _ := strings.Cut(line, ":")
		s.Status[key] = strings.TrimSpace(value)
	}
	s.RootWriteError = write("/written")
	s.VolumeWriteError = write("/volume/written")
	_, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/token")
	s.TokenReadable = err == nil
	content, _ := os.ReadFile("/data/file")
	s.ImageFile = string(content)
	_, err = os.Stat("/data/deleted")
	s.DeletedFileExists = err == nil
	return s
}

func write(path string) string {
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return err.Error()
	}
	return ""
}

func health(w http.ResponseWriter, _ *http.Request) {
	if failing.Load() {
		http.Error(w, "failing", http.StatusInternalServerError)
	}
}

func exit(_ http.ResponseWriter, r *http.Request) {
	code, _ := strconv.Atoi(r.URL.Query().Get("code"))
	fmt.Printf("exiting with %d\n", code)
	os.Exit(code)
}

func resolve(w http.ResponseWriter, r *http.Request) {
	addresses, err := net.DefaultResolver.LookupHost(r.Context(), r.URL.Query().Get("name"))
	answer(w, strings.Join(addresses, ","), err)
}

func fetch(w http.ResponseWriter, r *http.Request) {
	response, err := http.Get(r.URL.Query().Get("url"))
	if err != nil {
		answer(w, "", err)
		return
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	answer(w, string(content), err)
}

func answer(w http.ResponseWriter, text string, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	fmt.Fprint(w, text)
}
