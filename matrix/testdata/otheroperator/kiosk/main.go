// Command kiosk is what the operator runs. It greets on port 8080.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// closing is how long a kiosk still answers that is told to end: until then clients may be sent to it.
const closing = 2 * time.Second

func main() {
	version := flag.String("version", "unknown", "the version that it logs")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	answer := func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "welcome") }
	http.HandleFunc("/alive", answer)
	http.HandleFunc("/open", answer)
	server := &http.Server{Addr: ":8080", ReadHeaderTimeout: time.Second}
	context.AfterFunc(ctx, func() { time.AfterFunc(closing, func() { _ = server.Shutdown(context.Background()) }) })
	slog.New(slog.NewJSONHandler(os.Stdout, nil)).Info("open", "version", *version)
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		fmt.Fprintln(os.Stderr, "kiosk:", err)
		os.Exit(1)
	}
}
