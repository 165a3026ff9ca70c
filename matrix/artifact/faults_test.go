package artifact

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
)

// A registry that is overloaded for a moment is asked again. One that stays so is a fault of the
// registry: it has not said that the release is not there, so nothing else may stand in for it.
func TestOverloadedRegistry(t *testing.T) {
	for _, status := range []int{http.StatusTooManyRequests, http.StatusInternalServerError} {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			t.Parallel() // each waits between its attempts
			m := newMirror(t)
			digest := m.publish(t, RuntimeRepository+":1.27.0", platformImage(t, "arm64"))
			builder, _ := publishedBuilder(t, m)
			m.refusals.Store(1)
			m.status.Store(int32(status))
			got, err := builder.Runtime(t.Context(), "1.27.0", VariantNone)
			if err != nil || got.Digest != digest || got.Simulated {
				t.Errorf("for a moment: got %+v, %v, want %s", got, err, digest)
			}
			m.status.Store(int32(status)) // from now on
			_, err = builder.Runtime(t.Context(), "1.27.0", VariantNone)
			if !errors.Is(err, ErrInfrastructure) || errors.Is(err, ErrNotPublished) || !strings.Contains(err.Error(), strconv.Itoa(status)) {
				t.Errorf("for good: got %v, want infrastructure and the status", err)
			}
		})
	}
}

// What comes cut off or as something else is no artifact, and the cache keeps nothing of it.
func TestDamagedDownload(t *testing.T) {
	whole := func(m *mirror, request *http.Request) []byte {
		answer := httptest.NewRecorder()
		m.content.ServeHTTP(answer, request)
		return answer.Body.Bytes()
	}
	for name, damage := range map[string]func(w http.ResponseWriter, content []byte){
		"cut off on the way": func(w http.ResponseWriter, content []byte) {
			w.Header().Set("Content-Length", strconv.Itoa(len(content)))
			_, _ = w.Write(content[:len(content)/2])
			panic(http.ErrAbortHandler)
		},
		"cut off at the registry": func(w http.ResponseWriter, content []byte) { _, _ = w.Write(content[:len(content)/2]) },
		"something else":          func(w http.ResponseWriter, _ []byte) { _, _ = io.WriteString(w, "<html>please log in</html>") },
	} {
		t.Run(name, func(t *testing.T) {
			m := newMirror(t)
			digest := m.publish(t, RuntimeRepository+":1.27.0", platformImage(t, "arm64"))
			builder, _ := publishedBuilder(t, m)
			handler := http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
				damage(w, whole(m, request))
			})
			m.damage.Store(&handler)
			if got, err := builder.Runtime(t.Context(), "1.27.0", VariantNone); !errors.Is(err, ErrInfrastructure) {
				t.Errorf("got %+v, %v, want infrastructure", got, err)
			}
			if left, err := os.ReadDir(builder.store().dir); err != nil || len(left) > 0 {
				t.Errorf("the cache holds %v, %v", left, err)
			}
			m.damage.Store(nil)
			if got, err := builder.Runtime(t.Context(), "1.27.0", VariantNone); err != nil || got.Digest != digest {
				t.Errorf("afterwards: got %+v, %v, want %s", got, err, digest)
			}
		})
	}
}
