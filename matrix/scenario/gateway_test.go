package scenario

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// gateway stands between chainsaw and the API server and tells when a scenario has looked
// at its runtime, so that the played operator needs no guess at chainsaw's pace.
type gateway struct {
	kubeconfig string

	mu     sync.Mutex
	begun  int
	change chan struct{}
}

// newGateway serves the API server of config on a local port until the test ends.
func newGateway(t *testing.T, config *rest.Config, runtime string) *gateway {
	t.Helper()
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	g := &gateway{kubeconfig: filepath.Join(t.TempDir(), "kubeconfig"), change: make(chan struct{})}
	proxy := &httputil.ReverseProxy{
		Transport: transport,
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/trussiumruntimes/"+runtime) {
			g.count()
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	writeKubeconfig(t, g.kubeconfig, server.URL)
	return g
}

// writeKubeconfig writes a kubeconfig that reaches the server without credentials.
func writeKubeconfig(t *testing.T, file, server string) {
	t.Helper()
	kubeconfig := clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"gateway": {Server: server}},
		Contexts:       map[string]*clientcmdapi.Context{"gateway": {Cluster: "gateway"}},
		CurrentContext: "gateway",
	}
	if err := clientcmd.WriteToFile(kubeconfig, file); err != nil {
		t.Fatal(err)
	}
}

func (g *gateway) count() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.begun++
	close(g.change)
	g.change = make(chan struct{})
}

// looked returns once the scenario has begun to read its runtime twice more: the answer to
// the first of the two readings has then arrived, and it showed what is there now.
func (g *gateway) looked(ctx context.Context) error {
	g.mu.Lock()
	wanted := g.begun + 2
	g.mu.Unlock()
	for {
		g.mu.Lock()
		begun, change := g.begun, g.change
		g.mu.Unlock()
		if begun >= wanted {
			return nil
		}
		select {
		case <-change:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
