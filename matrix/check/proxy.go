package check

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// longestAnswer bounds what is read of an answer, in bytes.
const longestAnswer = 64 << 10

// get asks a pod or a Service of the namespace through the API server's proxy and returns the
// answer's status and body. name is NAME:PORT or SCHEME:NAME:PORT. The client's own request functions
// drop both of an answer that is not JSON.
func (t Target) get(ctx context.Context, namespace, resource, name, path string) (status int, body string, err error) {
	url := t.Clientset.CoreV1().RESTClient().Get().Namespace(namespace).Resource(resource).Name(name).
		SubResource("proxy").Suffix(strings.TrimPrefix(path, "/")).URL()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url.String(), nil)
	if err != nil {
		return 0, "", fmt.Errorf("ask %s %s/%s for %s: %w", resource, namespace, name, path, err)
	}
	response, err := t.HTTP.Do(request)
	if err != nil {
		return 0, "", fmt.Errorf("ask %s %s/%s for %s: %w", resource, namespace, name, path, err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(io.LimitReader(response.Body, longestAnswer))
	if err != nil {
		return 0, "", fmt.Errorf("ask %s %s/%s for %s: %w", resource, namespace, name, path, err)
	}
	return response.StatusCode, string(content), nil
}
