package main

import (
	"io"
	"log/slog"
	"slices"
	"time"
)

// newLogger writes one JSON object a line with the field names of the runtime's event
// contract: timestamp (UTC), level, logger, message, event.
func newLogger(out io.Writer) *slog.Logger {
	handler := slog.NewJSONHandler(out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, attr slog.Attr) slog.Attr {
		switch attr.Key {
		case slog.TimeKey:
			return slog.String("timestamp", attr.Value.Time().UTC().Format(time.RFC3339Nano))
		case slog.MessageKey:
			attr.Key = "message"
		}
		return attr
	}})
	return slog.New(handler).With("logger", "trussium.runtime", "simulated", true)
}

// logInvalid tells which settings were refused, without their values.
func logInvalid(log *slog.Logger, names []string) {
	slices.Sort(names)
	log.Error("Runtime configuration invalid",
		"event", "runtime.configuration.invalid",
		"error_code", "invalid_configuration",
		"error_count", len(names),
		"settings", names,
	)
}
