//go:build unix

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestStartEventTellsWhatTookEffect(t *testing.T) {
	p := start(t, []string{
		"TRUSSIUM_ENVIRONMENT=production",
		"TRUSSIUM_PROVIDER__NAME=ollama",
		"TRUSSIUM_RUNTIME__GRACEFUL_SHUTDOWN_SECONDS=7",
		"TRUSSIUM_NO_SUCH_SETTING=ignored",
	}, "--version=1.28.0")
	loaded := p.await("runtime.configuration.loaded")
	for field, want := range map[string]any{
		"runtime_version":           "1.28.0",
		"environment":               "production",
		"graceful_shutdown_seconds": 7.0,
		"simulated":                 true,
		"level":                     "INFO",
	} {
		if loaded[field] != want {
			t.Errorf("field %s of the start event is %v, want %v", field, loaded[field], want)
		}
	}
	if port := p.base[strings.LastIndex(p.base, ":")+1:]; fmt.Sprint(loaded["port"]) != port {
		t.Errorf("the start event names port %v, want %s", loaded["port"], port)
	}
	if _, err := time.Parse(time.RFC3339Nano, loaded["timestamp"].(string)); err != nil {
		t.Errorf("timestamp: %v", err)
	}
}

func TestHealthEndpointsAreMarkedSimulated(t *testing.T) {
	p := serving(t, nil, "--version=1.28.0")
	for _, path := range []string{"/health/live", "/health/ready"} {
		code, body, header := p.get(path)
		if code != http.StatusOK || body != `{"status":"ok"}` {
			t.Errorf("%s answered %d %s", path, code, body)
		}
		if header.Get(simulatedHeader) != "true" {
			t.Errorf("%s answered without the header %s", path, simulatedHeader)
		}
	}
}

func TestAvailabilityByVersion(t *testing.T) {
	for _, test := range []struct {
		version string
		want    int
	}{
		{"0.23.0", http.StatusNotFound},
		{"0.40.9", http.StatusNotFound},
		{"0.41.0", http.StatusOK},
		{"1.28.0", http.StatusOK},
		{"0", http.StatusOK},
		{"latest", http.StatusOK},
	} {
		t.Run(test.version, func(t *testing.T) {
			p := serving(t, nil, "--version="+test.version)
			code, body, _ := p.get("/v1/capabilities/availability")
			if code != test.want {
				t.Fatalf("answered %d, want %d", code, test.want)
			}
			if code == http.StatusOK && !strings.HasPrefix(body, `{"status":"available","capabilities":[`) {
				t.Errorf("answered %s", body)
			}
		})
	}
}

func TestAPIKeys(t *testing.T) {
	p := serving(t, []string{`TRUSSIUM_AUTHENTICATION__API_KEYS=["one","two"]`}, "--version=1.28.0")
	for _, test := range []struct {
		name   string
		header []string
		want   int
	}{
		{"no key", nil, http.StatusUnauthorized},
		{"wrong key", []string{"Authorization", "Bearer three"}, http.StatusUnauthorized},
		{"key without the scheme", []string{"Authorization", "one"}, http.StatusUnauthorized},
		{"second key", []string{"Authorization", "Bearer two"}, http.StatusOK},
	} {
		if code, _, _ := p.get("/v1/capabilities/availability", test.header...); code != test.want {
			t.Errorf("%s: answered %d, want %d", test.name, code, test.want)
		}
	}
	if code, _, _ := p.get("/health/live"); code != http.StatusOK {
		t.Errorf("/health/live answered %d: health needs no key", code)
	}
}

func TestReadinessAsksTheProvider(t *testing.T) {
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") == "Bearer wrong":
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/v1/models", r.URL.Path == "/v1/models/there":
			w.WriteHeader(http.StatusOK)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer provider.Close()
	away := "http://127.0.0.1:" + freePort(t) + "/v1"
	for _, test := range []struct {
		name string
		env  []string
		code int
		body string
	}{
		{
			name: "checks are off",
			env:  []string{"TRUSSIUM_READINESS__DEPENDENCY_CHECKS_ENABLED=false", "TRUSSIUM_PROVIDER__BASE_URL=" + away},
			code: http.StatusOK,
			body: `{"status":"ok"}`,
		},
		{
			name: "provider there",
			env:  []string{"TRUSSIUM_PROVIDER__NAME=ollama", "TRUSSIUM_PROVIDER__BASE_URL=" + provider.URL + "/v1"},
			code: http.StatusOK,
			body: `{"status":"ok","dependencies":[{"name":"provider","status":"ok","provider":"ollama"}]}`,
		},
		{
			name: "provider away",
			env:  []string{"TRUSSIUM_PROVIDER__NAME=ollama", "TRUSSIUM_PROVIDER__BASE_URL=" + away},
			code: http.StatusServiceUnavailable,
			body: `{"status":"unavailable","dependencies":[{"name":"provider","status":"unavailable","provider":"ollama","reason":"provider_unreachable"}]}`,
		},
		{
			name: "key refused",
			env:  []string{"TRUSSIUM_PROVIDER__API_KEY=wrong", "TRUSSIUM_PROVIDER__BASE_URL=" + provider.URL + "/v1"},
			code: http.StatusServiceUnavailable,
			body: `{"status":"unavailable","dependencies":[{"name":"provider","status":"unavailable","provider":"openai","reason":"provider_authentication_failed"}]}`,
		},
		{
			name: "no key",
			env:  []string{"TRUSSIUM_PROVIDER__BASE_URL=" + provider.URL + "/v1"},
			code: http.StatusServiceUnavailable,
			body: `{"status":"unavailable","dependencies":[{"name":"provider","status":"unavailable","provider":"openai","reason":"provider_not_configured"}]}`,
		},
		{
			name: "model missing",
			env:  []string{"TRUSSIUM_PROVIDER__NAME=ollama", "TRUSSIUM_PROVIDER__BASE_URL=" + provider.URL + "/v1", "TRUSSIUM_READINESS__REQUIRED_MODEL=absent"},
			code: http.StatusServiceUnavailable,
			body: `{"status":"unavailable","dependencies":[{"name":"provider","status":"unavailable","provider":"ollama","model":"absent","reason":"model_unavailable"}]}`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := serving(t, append([]string{"TRUSSIUM_READINESS__DEPENDENCY_CHECKS_ENABLED=true"}, test.env...), "--version=1.28.0")
			code, body, _ := p.get("/health/ready")
			if code != test.code || body != test.body {
				t.Errorf("answered %d %s\nwant %d %s", code, body, test.code, test.body)
			}
			if code, _, _ := p.get("/health/live"); code != http.StatusOK {
				t.Errorf("/health/live answered %d: it never depends on the provider", code)
			}
		})
	}
}

func TestInvalidSettingsExitWithTwo(t *testing.T) {
	p := start(t, []string{
		"TRUSSIUM_RUNTIME__GRACEFUL_SHUTDOWN_SECONDS=soon",
		"TRUSSIUM_ENVIRONMENT=secret-value",
	}, "--version=1.28.0")
	invalid := p.await("runtime.configuration.invalid")
	if code := p.exit(); code != exitInvalid {
		t.Errorf("exit code %d, want %d", code, exitInvalid)
	}
	want := []any{"TRUSSIUM_ENVIRONMENT", "TRUSSIUM_RUNTIME__GRACEFUL_SHUTDOWN_SECONDS"}
	if !reflect.DeepEqual(invalid["settings"], want) || invalid["error_count"] != 2.0 {
		t.Errorf("the event names %v (%v), want %v", invalid["settings"], invalid["error_count"], want)
	}
	if len(p.seen) != 1 {
		t.Errorf("the log holds more than the refusal: %v", p.seen)
	}
}

func TestOldVersionsIgnoreLaterSettings(t *testing.T) {
	p := start(t, []string{"TRUSSIUM_RUNTIME__GRACEFUL_SHUTDOWN_SECONDS=soon"}, "--version=0.22.5")
	if loaded := p.await("runtime.configuration.loaded"); loaded["graceful_shutdown_seconds"] != 30.0 {
		t.Errorf("graceful_shutdown_seconds is %v, want the default", loaded["graceful_shutdown_seconds"])
	}
}

func TestTerminationDrainsTheRequestInFlight(t *testing.T) {
	p := serving(t, []string{"TRUSSIUM_RUNTIME__GRACEFUL_SHUTDOWN_SECONDS=20"}, "--version=1.28.0")
	response, err := http.Get(p.base + "/simulator/hold?for=1s")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	p.signal(syscall.SIGTERM)
	p.await("runtime.shutdown.started")
	awaitClosed(t, strings.TrimPrefix(p.base, "http://"))
	body, err := io.ReadAll(response.Body)
	if err != nil || string(body) != "held\n" {
		t.Errorf("the request in flight got %q, %v", body, err)
	}
	if code := p.exit(); code != exitOK {
		t.Errorf("exit code %d, want %d", code, exitOK)
	}
	if last := p.seen[len(p.seen)-1]; last["outcome"] != "completed" {
		t.Errorf("the last event is %v, want outcome completed", last)
	}
}

func TestTerminationGivesUpAfterTheGracePeriod(t *testing.T) {
	p := serving(t, []string{"TRUSSIUM_RUNTIME__GRACEFUL_SHUTDOWN_SECONDS=1"}, "--version=1.28.0")
	response, err := http.Get(p.base + "/simulator/hold?for=1h")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	p.signal(syscall.SIGTERM)
	if code := p.exit(); code != exitOK {
		t.Errorf("exit code %d, want %d", code, exitOK)
	}
	if !slices.ContainsFunc(p.seen, func(e event) bool { return e.name() == "runtime.shutdown.drain_timeout" }) {
		t.Errorf("no drain timeout in %v", p.seen)
	}
	if _, err := io.ReadAll(response.Body); err == nil {
		t.Error("the request that exceeded the period ended as if it were whole")
	}
}

func TestVariants(t *testing.T) {
	t.Run("never ready", func(t *testing.T) {
		p := serving(t, nil, "--version=1.28.0", "--never-ready")
		if code, _, _ := p.get("/health/ready"); code != http.StatusServiceUnavailable {
			t.Errorf("/health/ready answered %d", code)
		}
		if code, _, _ := p.get("/health/live"); code != http.StatusOK {
			t.Errorf("/health/live answered %d", code)
		}
	})
	t.Run("exit code 2 is a refused configuration", func(t *testing.T) {
		p := start(t, nil, "--version=1.28.0", "--exit-code=2")
		p.await("runtime.configuration.invalid")
		if code := p.exit(); code != 2 {
			t.Errorf("exit code %d", code)
		}
	})
	t.Run("exit code 1 comes after the start event", func(t *testing.T) {
		p := start(t, nil, "--version=1.28.0", "--exit-code=1")
		p.await("runtime.configuration.loaded")
		if code := p.exit(); code != 1 {
			t.Errorf("exit code %d", code)
		}
	})
	t.Run("drain works on after the signal", func(t *testing.T) {
		p := serving(t, nil, "--version=1.28.0", "--drain=1")
		begin := time.Now()
		p.signal(syscall.SIGTERM)
		if code := p.exit(); code != exitOK {
			t.Errorf("exit code %d", code)
		}
		if took := time.Since(begin); took < time.Second {
			t.Errorf("ended after %s, want at least the drain time", took)
		}
	})
	t.Run("startup delay ends on a signal", func(t *testing.T) {
		p := start(t, nil, "--version=1.28.0", "--startup-delay=1h")
		p.await("runtime.configuration.loaded")
		p.signal(syscall.SIGTERM)
		if code := p.exit(); code != exitOK {
			t.Errorf("exit code %d", code)
		}
	})
}

func TestPortInUse(t *testing.T) {
	first := serving(t, nil, "--version=1.28.0")
	port := first.base[strings.LastIndex(first.base, ":")+1:]
	second := start(t, []string{"TRUSSIUM_RUNTIME__PORT=" + port}, "--version=1.28.0")
	second.await("runtime.startup.failed")
	if code := second.exit(); code != exitFailure {
		t.Errorf("exit code %d, want %d", code, exitFailure)
	}
}

func TestWrongFlags(t *testing.T) {
	for _, test := range []struct {
		name string
		args []string
		want string
	}{
		{"no version", nil, "--version is required"},
		{"version of a release name", []string{"--version=v1.28.0"}, "without a leading v"},
		{"four numbers", []string{"--version=1.2.3.4"}, "more than three numbers"},
		{"argument", []string{"--version=1.28.0", "serve"}, `unexpected argument "serve"`},
		{"exit code", []string{"--version=1.28.0", "--exit-code=256"}, "between 0 and 255"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var stdout, stderr strings.Builder
			nothing := func(string) (string, bool) { return "", false }
			if code := Run(context.Background(), test.args, nothing, &stdout, &stderr); code != exitInvalid {
				t.Errorf("exit code %d, want %d", code, exitInvalid)
			}
			if !strings.Contains(stderr.String(), test.want) || stdout.Len() > 0 {
				t.Errorf("stderr %q, stdout %q, want the words %q on stderr", stderr.String(), stdout.String(), test.want)
			}
		})
	}
}

// awaitClosed waits until nobody listens on the address.
func awaitClosed(t *testing.T, address string) {
	t.Helper()
	for deadline := time.Now().Add(hangGuard); ; {
		connection, err := net.Dial("tcp", address)
		if err != nil {
			return
		}
		connection.Close()
		if time.Now().After(deadline) {
			t.Fatalf("%s still accepts connections", address)
		}
	}
}
