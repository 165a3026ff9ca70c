package artifact

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// headerTimeout bounds how long a client of the registry may take to send its request.
const headerTimeout = 10 * time.Second

// Registry offers artifacts of the cache on a loopback port. Clients can only read.
type Registry struct {
	server   *http.Server
	addr     string
	registry http.Handler
	blobs    *blobs
	done     chan struct{}
	// forget ends the wait for the context.
	forget func() bool

	mu    sync.Mutex
	added map[string]string
}

// anyPort is the address of a registry that may listen on any free port.
const anyPort = "127.0.0.1:0"

// Serve starts a registry with the artifacts, under the repository paths and tags of their
// references, on any free port. It ends with the context or with Close.
func Serve(ctx context.Context, artifacts ...Artifact) (*Registry, error) {
	return ServeAt(ctx, anyPort, artifacts...)
}

// ServeAt is Serve on the address of an earlier registry, which clusters that were kept still
// ask. If it is empty or can't be had, the registry listens on any free port.
func ServeAt(ctx context.Context, address string, artifacts ...Artifact) (*Registry, error) {
	blobs := &blobs{}
	r := &Registry{
		registry: registry.New(registry.WithBlobHandler(blobs), registry.Logger(log.New(io.Discard, "", 0))),
		blobs:    blobs,
		done:     make(chan struct{}),
		added:    map[string]string{},
	}
	if err := r.Add(artifacts...); err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cmp.Or(address, anyPort))
	if err != nil {
		listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", anyPort)
	}
	if err != nil {
		return nil, infrastructure(fmt.Errorf("start the artifact registry: %w", err))
	}
	r.addr = listener.Addr().String()
	r.server = &http.Server{Handler: http.HandlerFunc(r.serveReads), ReadHeaderTimeout: headerTimeout}
	go func() {
		defer close(r.done)
		// It returns when the server is closed.
		_ = r.server.Serve(listener)
	}()
	r.forget = context.AfterFunc(ctx, func() { r.server.Close() })
	return r, nil
}

// Addr is the address of the registry: HOST:PORT.
func (r *Registry) Addr() string {
	return r.addr
}

// Mirrors says which registries it stands in for, as base URLs by host.
func (r *Registry) Mirrors() map[string]string {
	mirrors := map[string]string{}
	r.mu.Lock()
	defer r.mu.Unlock()
	for ref := range r.added {
		host, _, _ := strings.Cut(ref, "/")
		mirrors[host] = "http://" + r.addr
	}
	return mirrors
}

// Local is the published reference as this registry has it, as in 127.0.0.1:5000/trussiumhq/trussium:1.30.0.
func (r *Registry) Local(ref string) string {
	_, path, _ := strings.Cut(ref, "/")
	return r.addr + "/" + path
}

// Close ends the registry and the requests under way.
func (r *Registry) Close() error {
	r.forget()
	err := r.server.Close()
	<-r.done
	if err != nil {
		return infrastructure(fmt.Errorf("end the artifact registry: %w", err))
	}
	return nil
}

// Add offers more artifacts. A reference that is taken by an artifact of another digest is bad
// input: one tag can't stand for two things.
func (r *Registry) Add(artifacts ...Artifact) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, artifact := range artifacts {
		digest, taken := r.added[artifact.Ref]
		if taken && digest != artifact.Digest {
			return badInput(fmt.Errorf("%s would be both %s and %s: the checkout needs a version that no release has", artifact.Ref, digest, artifact.Digest))
		}
		if taken {
			continue
		}
		if err := r.add(artifact); err != nil {
			return infrastructure(fmt.Errorf("offer %s: %w", artifact.Ref, err))
		}
		r.added[artifact.Ref] = artifact.Digest
	}
	return nil
}

func (r *Registry) add(artifact Artifact) error {
	tag, err := name.NewTag(artifact.Ref, name.StrictValidation)
	if err != nil {
		return err
	}
	if artifact.entry.layout == "" {
		return errors.New("it was not resolved by a Builder")
	}
	r.blobs.add(artifact.entry.layout)
	root := artifact.entry.root
	if root.MediaType.IsIndex() {
		index, err := readIndex(artifact.entry.layout, root.Digest)
		if err != nil {
			return err
		}
		for _, child := range index.Manifests {
			if err := r.putManifest(artifact.entry.layout, tag.RepositoryStr(), child.Digest.String(), child.Digest, child.MediaType); err != nil {
				return err
			}
		}
	}
	return r.putManifest(artifact.entry.layout, tag.RepositoryStr(), tag.TagStr(), root.Digest, root.MediaType)
}

// putManifest gives the library's registry a manifest; these few bytes are kept in memory.
func (r *Registry) putManifest(from layout.Path, repository, reference string, digest v1.Hash, mediaType types.MediaType) error {
	manifest, err := from.Bytes(digest)
	if err != nil {
		return err
	}
	url := fmt.Sprintf("http://registry/v2/%s/manifests/%s", repository, reference)
	request, err := http.NewRequest(http.MethodPut, url, bytes.NewReader(manifest))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", string(mediaType))
	answer := &recorder{header: http.Header{}}
	r.registry.ServeHTTP(answer, request)
	if answer.status != http.StatusCreated {
		return fmt.Errorf("the registry refused the manifest %s: status %d: %s", digest, answer.status, answer.body.String())
	}
	return nil
}

// serveReads answers clients, who can't change anything.
func (r *Registry) serveReads(w http.ResponseWriter, request *http.Request) {
	if request.Method != http.MethodGet && request.Method != http.MethodHead {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusMethodNotAllowed)
		_, _ = io.WriteString(w, `{"errors":[{"code":"UNSUPPORTED","message":"this registry is read-only"}]}`+"\n")
		return
	}
	r.registry.ServeHTTP(w, request)
}

// recorder keeps the answer of a handler that is called without a connection.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header            { return r.header }
func (r *recorder) WriteHeader(status int)         { r.status = status }
func (r *recorder) Write(text []byte) (int, error) { return r.body.Write(text) }

// blobs serves blobs from the layouts in the cache.
type blobs struct {
	mu      sync.RWMutex
	layouts []layout.Path
}

func (b *blobs) add(path layout.Path) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.layouts = append(b.layouts, path)
}

// Get implements registry.BlobHandler.
func (b *blobs) Get(_ context.Context, _ string, digest v1.Hash) (io.ReadCloser, error) {
	return b.open(digest)
}

// Stat implements registry.BlobStatHandler.
func (b *blobs) Stat(_ context.Context, _ string, digest v1.Hash) (int64, error) {
	f, err := b.open(digest)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (b *blobs) open(digest v1.Hash) (*os.File, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for _, path := range b.layouts {
		f, err := os.Open(filepath.Join(string(path), "blobs", digest.Algorithm, digest.Hex))
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return nil, registry.ErrNotFound
}
