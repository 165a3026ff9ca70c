// Command serve runs a GitHub and a registry for trying triage out by hand:
//
//	go run ./matrix/triage/githubtest/serve --releases 30 --new 3
//
// It prints the command that uses them, and each request that GitHub gets.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/trussiumhq/trussium-operator/matrix/triage/githubtest"
)

// token is one that the server knows.
const token = "triage-by-hand"

func main() {
	total := flag.Int("releases", 30, "how many releases there are")
	news := flag.Int("new", 3, "how many of them are newer than v1.30.0, which compatibility.yaml lists as validated")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *total, *news); err != nil {
		fmt.Fprintln(os.Stderr, "serve:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, total, news int) error {
	if news < 0 || total <= news || total > 31+news {
		return fmt.Errorf("--releases %d --new %d: give more releases than new ones, and at most 31 old ones", total, news)
	}
	images, stop, err := listen(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	if err != nil {
		return err
	}
	defer stop()
	world := &githubtest.World{Runtime: "trussiumhq/trussium", Proposals: "trussiumhq/trussium-operator"}
	for i := range total {
		release := &githubtest.Release{
			Tag: fmt.Sprintf("v1.%d.0", 30+news-total+1+i), Published: time.Now().Add(time.Duration(i-total) * 24 * time.Hour).UTC().Truncate(time.Second),
			Notes: "## Fixed\n\n- Faster, thanks to @contributor.\n", Annotated: i%2 == 0,
		}
		release.Created = release.Published.Add(-time.Hour)
		world.Releases = append(world.Releases, release)
		if i >= total-news-1 {
			if err := push(images, release); err != nil {
				return err
			}
		}
	}
	server, err := githubtest.New(githubtest.EnterpriseServer, "http://github.invalid", world)
	if err != nil {
		return err
	}
	server.Actors[token] = githubtest.Maintainer
	address, stopGitHub, err := listen(logged{server})
	if err != nil {
		return err
	}
	defer stopGitHub()
	fmt.Printf("GITHUB_TOKEN=%s go run ./tools/matrix triage --github-url http://%s --mirror ghcr.io=%s [--apply]\n", token, address, images)
	<-ctx.Done()
	for _, violation := range server.Violations() {
		fmt.Println("not as GitHub describes it:", violation)
	}
	return nil
}

// push publishes an image of the runtime without content.
func push(address string, release *githubtest.Release) error {
	image, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{OS: "linux", Architecture: "amd64", Config: v1.Config{
		User: "10001:10001", ExposedPorts: map[string]struct{}{"9000/tcp": {}}, Entrypoint: []string{"/trussium"},
		Labels: map[string]string{"org.opencontainers.image.version": strings.TrimPrefix(release.Tag, "v"), "org.opencontainers.image.revision": release.Commit()},
	}})
	if err != nil {
		return err
	}
	tag, err := name.NewTag(address + "/trussiumhq/trussium:" + strings.TrimPrefix(release.Tag, "v"))
	if err != nil {
		return err
	}
	return remote.Write(tag, image)
}

// listen serves on a free port.
func listen(handler http.Handler) (address string, stop func(), err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			fmt.Fprintln(os.Stderr, "serve:", err)
		}
	}()
	return listener.Addr().String(), func() { server.Close() }, nil
}

// logged prints the ledger's line of each request.
type logged struct{ server *githubtest.Server }

func (l logged) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.server.ServeHTTP(w, r)
	lines := strings.Split(strings.TrimSpace(l.server.Ledger()), "\n")
	fmt.Println(lines[len(lines)-1])
}
