package main

import (
	"crypto/subtle"
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

const (
	// simulatedHeader marks every response of the simulator.
	simulatedHeader = "X-Trussium-Simulated"
	// readHeaderTimeout bounds a client that opens a connection and says nothing.
	readHeaderTimeout = 10 * time.Second
)

// capability is one entry of a capability report.
type capability struct {
	Name   string `json:"name"`
	Status string `json:"status"`
}

// availabilityReport is the body of /v1/capabilities/availability.
type availabilityReport struct {
	Status       string       `json:"status"`
	Capabilities []capability `json:"capabilities"`
}

// newServer routes what the runtime of that version serves.
func newServer(options options, settings settings) *http.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health/live", func(w http.ResponseWriter, _ *http.Request) {
		respond(w, http.StatusOK, readinessReport{Status: statusOK})
	})
	mux.Handle("GET /health/ready", readinessHandler(options, settings))
	api := http.NewServeMux()
	if options.version.atLeast(capabilityAvailability) {
		api.HandleFunc("GET /v1/capabilities/availability", func(w http.ResponseWriter, _ *http.Request) {
			respond(w, http.StatusOK, availabilityReport{
				Status:       "available",
				Capabilities: []capability{{Name: "chat.completions", Status: "available"}},
			})
		})
	}
	mux.Handle("/v1/", authenticate(settings.apiKeys, api))
	mux.HandleFunc("GET /simulator/hold", hold)
	return &http.Server{Handler: marked(mux), ReadHeaderTimeout: readHeaderTimeout}
}

// marked sets the header that tells the simulator from the runtime.
func marked(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(simulatedHeader, "true")
		next.ServeHTTP(w, r)
	})
}

// authenticate lets a request through that bears one of the keys; without keys, every request.
func authenticate(keys []string, next http.Handler) http.Handler {
	if len(keys) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		for _, key := range keys {
			if bearer && subtle.ConstantTimeCompare([]byte(given), []byte(key)) == 1 {
				next.ServeHTTP(w, r)
				return
			}
		}
		w.Header().Set("WWW-Authenticate", "Bearer")
		respond(w, http.StatusUnauthorized, map[string]string{"status": "unauthorized"})
	})
}

// hold answers after the wanted time (?for=3s): a request in flight for tests of draining.
// The runtime has no such endpoint; its long requests are inference.
func hold(w http.ResponseWriter, r *http.Request) {
	duration, err := time.ParseDuration(r.URL.Query().Get("for"))
	if err != nil {
		respond(w, http.StatusBadRequest, map[string]string{"error": "for: want a duration such as 3s"})
		return
	}
	// The client sees the headers now, and so knows that its request is in flight.
	w.WriteHeader(http.StatusOK)
	http.NewResponseController(w).Flush()
	if wait(r.Context(), duration) {
		w.Write([]byte("held\n"))
	}
}

// respond writes body as JSON. A client that has gone away is not an error of the server.
func respond(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(body)
}
