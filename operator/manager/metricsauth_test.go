package manager_test

import (
	"crypto/tls"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trussiumhq/trussium-operator/operator/manager"
	"github.com/trussiumhq/trussium-operator/operator/operatortest"
)

func TestMetricsAreServedToWhomTheClusterAllows(t *testing.T) {
	namespace := operatortest.Namespace(t, api)
	rules := slices.Concat(generatedRules(t, "manager-role.yaml"), generatedRules(t, "metrics-auth-role.yaml"))
	options := manager.DefaultOptions()
	options.MetricsAddress = freeAddress(t)
	runManager(t, userWith(t, "metrics-operator", rules), options)

	scraper, stranger := serviceAccountToken(t, namespace, "scraper"), serviceAccountToken(t, namespace, "stranger")
	grantMetrics(t, namespace, "scraper")
	url := "https://" + options.MetricsAddress + "/metrics"
	operatortest.Eventually(t, "the metrics are served", func() error {
		_, _, err := scrape(url, "")
		return err
	})

	for _, test := range []struct {
		name, authorization string
		want                int
		body                string
	}{
		{"no token", "", http.StatusUnauthorized, "bearer token"},
		{"another scheme", "Basic " + scraper, http.StatusUnauthorized, "bearer token"},
		{"an empty token", "Bearer ", http.StatusUnauthorized, "bearer token"},
		{"an invented token", "Bearer invented", http.StatusUnauthorized, "bearer token"},
		{"a token without the right", "Bearer " + stranger, http.StatusForbidden, "system:serviceaccount:" + namespace + ":stranger may not get /metrics"},
		{"a token with the right", "Bearer " + scraper, http.StatusOK, "trussium_operator_build_info{"},
		{"a scheme in lower case", "bearer " + scraper, http.StatusOK, "trussium_operator_build_info{"},
	} {
		t.Run(test.name, func(t *testing.T) {
			code, body, err := scrape(url, test.authorization)
			if err != nil {
				t.Fatal(err)
			}
			if code != test.want || !strings.Contains(body, test.body) {
				t.Errorf("answer %d %.200q, want %d with %q", code, body, test.want, test.body)
			}
			if code != http.StatusOK && strings.Contains(body, "trussium_operator_build_info") {
				t.Error("the refusal holds metrics")
			}
		})
	}
}

func TestMetricsAreNotServedWhenTheRightsCannotBeAsked(t *testing.T) {
	namespace := operatortest.Namespace(t, api)
	options := manager.DefaultOptions()
	options.MetricsAddress = freeAddress(t)
	_, lines := runManager(t, userWith(t, "operator-without-reviews", generatedRules(t, "manager-role.yaml")), options)

	token := serviceAccountToken(t, namespace, "scraper")
	operatortest.Eventually(t, "the metrics are refused", func() error {
		code, body, err := scrape("https://"+options.MetricsAddress+"/metrics", "Bearer "+token)
		if err == nil && (code != http.StatusServiceUnavailable || strings.Contains(body, token)) {
			t.Fatalf("answer %d %.200q", code, body)
		}
		return err
	})
	if log := lines.String(); !strings.Contains(log, "create TokenReview") || strings.Contains(log, token) {
		t.Errorf("the log must name the cause and not the token:\n%s", log)
	}
}

func serviceAccountToken(t *testing.T, namespace, name string) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if err := api.Create(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	request := &authenticationv1.TokenRequest{}
	if err := api.SubResource("token").Create(t.Context(), account, request); err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// grantMetrics lets a ServiceAccount scrape, as a Prometheus is allowed to.
func grantMetrics(t *testing.T, namespace, name string) {
	t.Helper()
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: namespace + "-metrics"},
		Rules:      []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}},
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: namespace + "-metrics"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
	}
	for _, object := range []client.Object{role, binding} {
		if err := api.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

func scrape(url, authorization string) (code int, body string, err error) {
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	connection := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // the operator's own certificate
	defer connection.CloseIdleConnections()
	response, err := (&http.Client{Transport: connection, Timeout: 30 * time.Second}).Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	return response.StatusCode, string(content), err
}
