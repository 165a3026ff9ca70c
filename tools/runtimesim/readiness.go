package main

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"
)

// Values of the status fields in health reports.
const (
	statusOK          = "ok"
	statusUnavailable = "unavailable"
)

// readinessReport is the body of /health/live and /health/ready.
type readinessReport struct {
	Status       string       `json:"status"`
	Dependencies []dependency `json:"dependencies,omitempty"`
}

// dependency is what the runtime found when it asked its provider.
type dependency struct {
	Name     string `json:"name"`
	Status   string `json:"status"`
	Provider string `json:"provider"`
	Model    string `json:"model,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// readinessHandler answers /health/ready.
func readinessHandler(options options, settings settings) http.Handler {
	probe := &providerProbe{settings: settings}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case options.neverReady:
			respond(w, http.StatusServiceUnavailable, readinessReport{Status: statusUnavailable})
		case !settings.readiness.checkDependencies:
			respond(w, http.StatusOK, readinessReport{Status: statusOK})
		default:
			// The answer is shared, so a client that hangs up must not decide it.
			seen := probe.result(context.WithoutCancel(r.Context()))
			code := http.StatusOK
			if seen.Status != statusOK {
				code = http.StatusServiceUnavailable
			}
			respond(w, code, readinessReport{Status: seen.Status, Dependencies: []dependency{seen}})
		}
	})
}

// providerProbe asks the provider for model metadata and keeps the answer, good or bad, for
// the configured time. Concurrent requests share one question.
type providerProbe struct {
	settings settings

	mu      sync.Mutex
	last    dependency
	expires time.Time
}

func (p *providerProbe) result(ctx context.Context) dependency {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Now().Before(p.expires) {
		return p.last
	}
	p.last = dependency{
		Name:     "provider",
		Status:   statusOK,
		Provider: p.settings.provider.name,
		Model:    p.settings.readiness.requiredModel,
	}
	if reason := p.ask(ctx); reason != "" {
		p.last.Status = statusUnavailable
		p.last.Reason = reason
	}
	p.expires = time.Now().Add(p.settings.readiness.cache)
	return p.last
}

// ask returns why the provider is unavailable, or "" if it is there.
func (p *providerProbe) ask(ctx context.Context) string {
	provider := p.settings.provider
	if provider.name == "openai" && provider.apiKey == "" {
		return "provider_not_configured"
	}
	ctx, cancel := context.WithTimeout(ctx, p.settings.readiness.timeout)
	defer cancel()
	address, err := url.JoinPath(provider.baseURL, "models", p.settings.readiness.requiredModel)
	if err != nil {
		return "provider_check_failed"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "provider_check_failed"
	}
	if provider.apiKey != "" {
		request.Header.Set("Authorization", "Bearer "+provider.apiKey)
	}
	response, err := http.DefaultClient.Do(request)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return "provider_timeout"
	}
	if err != nil {
		return "provider_unreachable"
	}
	response.Body.Close()
	return failureReason(response.StatusCode, p.settings.readiness.requiredModel != "")
}

// failureReason translates the provider's answer into one of the runtime's stable reasons.
func failureReason(code int, modelRequired bool) string {
	switch {
	case code == http.StatusOK:
		return ""
	case code == http.StatusUnauthorized:
		return "provider_authentication_failed"
	case code == http.StatusForbidden:
		return "provider_permission_denied"
	case code == http.StatusTooManyRequests:
		return "provider_rate_limited"
	case code == http.StatusNotFound && modelRequired:
		return "model_unavailable"
	default:
		return "provider_check_failed"
	}
}
