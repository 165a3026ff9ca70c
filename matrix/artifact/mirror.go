package artifact

import (
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Mirror is a registry that stands in for another one.
type Mirror struct {
	// Host is the registry that it stands in for, as in ghcr.io.
	Host string
	// Base is HOST[:PORT][/PREFIX]: what replaces Host in a reference.
	Base string
}

// ParseMirror reads HOST=HOST[:PORT][/PREFIX], as in ghcr.io=127.0.0.1:5000/mirror.
func ParseMirror(text string) (Mirror, error) {
	host, base, found := strings.Cut(text, "=")
	base = strings.TrimSuffix(base, "/")
	if !found || host == "" || base == "" || strings.Contains(host, "/") {
		return Mirror{}, badInput(fmt.Errorf("mirror %q: write HOST=HOST[:PORT][/PREFIX], as in ghcr.io=127.0.0.1:5000/mirror", text))
	}
	if _, scheme, found := strings.Cut(base, "://"); found {
		return Mirror{}, badInput(fmt.Errorf("mirror %q: leave the scheme out and write %s=%s", text, host, scheme))
	}
	mirror := Mirror{Host: host, Base: base}
	if _, err := name.NewTag(mirror.Rewrite(host+"/repository:tag"), name.StrictValidation); err != nil {
		return Mirror{}, badInput(fmt.Errorf("mirror %q: %w", text, err))
	}
	return mirror, nil
}

// Rewrite is the reference at the mirror, or as it was if it is for another registry.
func (m Mirror) Rewrite(ref string) string {
	host, path, found := strings.Cut(ref, "/")
	if !found || host != m.Host {
		return ref
	}
	return m.Base + "/" + path
}

// Transport is how registries are talked to: by plain HTTP on loopback only.
func Transport() http.RoundTripper {
	return plainHTTPOnLoopback{remote.DefaultTransport}
}

// plainHTTPOnLoopback refuses plain HTTP to other machines, where anyone on the way could
// exchange what a tag points to.
type plainHTTPOnLoopback struct {
	base http.RoundTripper
}

func (t plainHTTPOnLoopback) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Scheme == "http" && !loopback(request.URL.Hostname()) {
		return nil, fmt.Errorf("plain HTTP to %s is refused: it is allowed on loopback only", request.URL.Host)
	}
	return t.base.RoundTrip(request)
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
