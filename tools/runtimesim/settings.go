package main

import (
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// settings are what the runtime reads from its environment.
type settings struct {
	environment      string
	host             string
	port             int
	gracefulShutdown time.Duration
	apiKeys          []string
	provider         provider
	readiness        readinessSettings
}

// provider is the model provider behind the runtime.
type provider struct {
	name    string
	baseURL string
	apiKey  string
}

// readinessSettings say whether and how /health/ready asks the provider.
type readinessSettings struct {
	checkDependencies bool
	timeout           time.Duration
	cache             time.Duration
	requiredModel     string
}

// defaultBaseURLs are the addresses a provider has when none is set.
var defaultBaseURLs = map[string]string{
	"openai": "https://api.openai.com/v1",
	"ollama": "http://localhost:11434/v1",
}

// loadSettings reads the variables that the given version knows and ignores all others. It
// returns the names of those whose value is invalid, never a value: values may be secret.
func loadSettings(v version, lookup func(string) (string, bool)) (settings, []string) {
	env := environment{lookup: lookup}
	loaded := settings{
		environment:      env.oneOf("TRUSSIUM_ENVIRONMENT", "development", "staging", "production"),
		host:             env.text("TRUSSIUM_RUNTIME__HOST", "0.0.0.0"),
		port:             int(env.integer("TRUSSIUM_RUNTIME__PORT", 9000, 1, 65535)),
		gracefulShutdown: 30 * time.Second,
		provider: provider{
			name:   env.oneOf("TRUSSIUM_PROVIDER__NAME", "openai", "ollama"),
			apiKey: env.text("TRUSSIUM_PROVIDER__API_KEY", ""),
		},
		readiness: readinessSettings{
			checkDependencies: env.boolean("TRUSSIUM_READINESS__DEPENDENCY_CHECKS_ENABLED", false),
			timeout:           env.seconds("TRUSSIUM_READINESS__DEPENDENCY_TIMEOUT_SECONDS", time.Second),
			cache:             env.seconds("TRUSSIUM_READINESS__DEPENDENCY_CACHE_SECONDS", 10*time.Second),
			requiredModel:     env.text("TRUSSIUM_READINESS__REQUIRED_MODEL", ""),
		},
		apiKeys: env.list("TRUSSIUM_AUTHENTICATION__API_KEYS"),
	}
	loaded.provider.baseURL = env.httpURL("TRUSSIUM_PROVIDER__BASE_URL", defaultBaseURLs[loaded.provider.name])
	if v.atLeast(projectedSettings) {
		loaded.gracefulShutdown = time.Duration(env.integer("TRUSSIUM_RUNTIME__GRACEFUL_SHUTDOWN_SECONDS", 30, 1, 24*60*60)) * time.Second
		// The simulator sends no inference requests; it only refuses what the runtime refuses.
		env.seconds("TRUSSIUM_TIMEOUTS__PROVIDER_REQUEST_SECONDS", 0)
		env.seconds("TRUSSIUM_TIMEOUTS__STREAM_IDLE_SECONDS", 0)
	}
	return loaded, env.invalid
}

// environment reads typed variables and collects the names of the invalid ones.
type environment struct {
	lookup  func(string) (string, bool)
	invalid []string
}

func (e *environment) reject(name string) { e.invalid = append(e.invalid, name) }

func (e *environment) text(name, fallback string) string {
	if value, ok := e.lookup(name); ok {
		return value
	}
	return fallback
}

// oneOf reads a variable with a closed list of values, of which the first is the default.
func (e *environment) oneOf(name string, values ...string) string {
	value := e.text(name, values[0])
	if !slices.Contains(values, value) {
		e.reject(name)
	}
	return value
}

func (e *environment) integer(name string, fallback, lowest, highest int64) int64 {
	value, ok := e.lookup(name)
	if !ok {
		return fallback
	}
	number, err := strconv.ParseInt(value, 10, 64)
	if err != nil || number < lowest || number > highest {
		e.reject(name)
	}
	return number
}

// seconds reads a positive number of seconds, which may have a fraction.
func (e *environment) seconds(name string, fallback time.Duration) time.Duration {
	value, ok := e.lookup(name)
	if !ok {
		return fallback
	}
	duration, err := time.ParseDuration(value + "s")
	if err != nil || duration <= 0 {
		e.reject(name)
	}
	return duration
}

func (e *environment) boolean(name string, fallback bool) bool {
	value, ok := e.lookup(name)
	if !ok {
		return fallback
	}
	parsed, err := strconv.ParseBool(value)
	if err != nil {
		e.reject(name)
	}
	return parsed
}

// list reads a JSON list of strings.
func (e *environment) list(name string) []string {
	value, ok := e.lookup(name)
	if !ok {
		return nil
	}
	var parsed []string
	if err := json.Unmarshal([]byte(value), &parsed); err != nil {
		e.reject(name)
	}
	return parsed
}

func (e *environment) httpURL(name, fallback string) string {
	value := e.text(name, fallback)
	parsed, err := url.Parse(value)
	if err != nil || parsed.Host == "" || (parsed.Scheme != "http" && parsed.Scheme != "https") {
		e.reject(name)
	}
	return value
}
