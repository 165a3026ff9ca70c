package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/trussiumhq/trussium-operator/matrix/load"
)

const (
	// askTimeout is when the client gives up on one request.
	askTimeout = 5 * time.Second
	// headerTimeout bounds how long a client of this program may take to send its request.
	headerTimeout = 10 * time.Second
)

// newClient asks for the URL. Every request looks the name up and connects anew: a connection that
// stays would always reach the same pod.
func newClient(url string) load.Client {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		_, err = io.Copy(io.Discard, response.Body)
		if err == nil && response.StatusCode != http.StatusOK {
			err = fmt.Errorf("status %d", response.StatusCode)
		}
		return err
	}
}

// handler starts and stops the client.
type handler struct {
	ctx context.Context
	ask load.Client

	mu      sync.Mutex
	running *load.Load
	report  *load.Report
}

func (h *handler) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ready", h.ready)
	mux.HandleFunc("GET /start", h.start)
	mux.HandleFunc("GET /stop", h.stop)
	return mux
}

// ready tells whether the Service answers at all, which is not this client's to judge.
func (h *handler) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), askTimeout)
	defer cancel()
	if err := h.ask(ctx); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	}
}

func (h *handler) start(w http.ResponseWriter, _ *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.running != nil || h.report != nil {
		http.Error(w, "it was started before", http.StatusConflict)
		return
	}
	h.running = load.Start(h.ctx, load.Rate, askTimeout, h.ask)
}

// stop tells the same when it is asked again: the answer may have been lost.
func (h *handler) stop(w http.ResponseWriter, _ *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.report == nil {
		if h.running == nil {
			http.Error(w, "it was not started", http.StatusConflict)
			return
		}
		h.report = new(h.running.Stop())
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(h.report) // who asked is gone if it fails
}

// serveLoad serves until ctx ends.
func serveLoad(ctx context.Context, address, url string) error {
	h := &handler{ctx: ctx, ask: newClient(url)}
	server := &http.Server{Addr: address, Handler: h.routes(), ReadHeaderTimeout: headerTimeout}
	defer context.AfterFunc(ctx, func() { server.Close() })()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the client: %w", err)
	}
	return nil
}
