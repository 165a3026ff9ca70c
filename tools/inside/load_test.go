package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/trussiumhq/trussium-operator/matrix/load"
)

// hang is a time after which something is taken to be stuck, not slow.
const hang = time.Minute

func TestLoad(t *testing.T) {
	var asked atomic.Int64
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 3 { // the first asks whether it is ready
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	defer service.Close()
	server := httptest.NewServer((&handler{ctx: t.Context(), ask: newClient(service.URL)}).routes())
	defer server.Close()
	get := func(path string, want int) []byte {
		t.Helper()
		response, err := http.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != want {
			t.Fatalf("%s: status %d, %s, %v, want %d", path, response.StatusCode, body, err, want)
		}
		return body
	}
	get("/stop", http.StatusConflict)
	get("/ready", http.StatusOK)
	get("/start", http.StatusOK)
	get("/start", http.StatusConflict)
	for deadline := time.Now().Add(hang); asked.Load() < 6; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("only %d requests arrived", asked.Load())
		}
	}
	first := get("/stop", http.StatusOK)
	var report load.Report
	if err := json.Unmarshal(first, &report); err != nil {
		t.Fatal(err)
	}
	if int64(report.Requests) != asked.Load()-1 || report.Failures != 1 || report.FirstError != "status 502" {
		t.Errorf("got %s, the service saw %d requests", report, asked.Load())
	}
	if again := get("/stop", http.StatusOK); string(again) != string(first) {
		t.Errorf("asked again it tells %s, first %s", again, first)
	}
	service.Close()
	get("/ready", http.StatusServiceUnavailable)
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{nil, {"load"}, {"look", "1"}, {"eat", "much"}} {
		if err := run(t.Context(), args, io.Discard); err == nil {
			t.Errorf("%q is no error", args)
		}
	}
}
