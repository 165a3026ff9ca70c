package desired

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
)

const (
	// ContainerPort is where every runtime image listens.
	ContainerPort = 9000

	environment = "production"
	listenHost  = "0.0.0.0"
)

// ConfigMap holds the settings of the runtime process as environment variables.
func ConfigMap(runtime *v1alpha1.TrussiumRuntime) *corev1ac.ConfigMapApplyConfiguration {
	return corev1ac.ConfigMap(runtime.Name, runtime.Namespace).
		WithLabels(Labels(runtime.Name)).
		WithOwnerReferences(ownerReference(runtime)).
		WithData(configuration(runtime))
}

// configuration maps the spec to the variables that the runtime image documents.
// What the spec leaves out stays absent, so that the image's own default applies.
func configuration(runtime *v1alpha1.TrussiumRuntime) map[string]string {
	data := map[string]string{
		"TRUSSIUM_ENVIRONMENT":    environment,
		"TRUSSIUM_RUNTIME__HOST":  listenHost,
		"TRUSSIUM_RUNTIME__PORT":  strconv.Itoa(ContainerPort),
		"TRUSSIUM_PROVIDER__NAME": string(runtime.Spec.Provider.Type),
	}
	if url := runtime.Spec.Provider.BaseURL; url != "" {
		data["TRUSSIUM_PROVIDER__BASE_URL"] = url
	}

	settings := runtime.Spec.Runtime
	if settings == nil {
		return data
	}
	seconds := map[string]*int32{
		"TRUSSIUM_TIMEOUTS__PROVIDER_REQUEST_SECONDS": settings.ProviderRequestTimeoutSeconds,
		"TRUSSIUM_TIMEOUTS__STREAM_IDLE_SECONDS":      settings.StreamIdleTimeoutSeconds,
		"TRUSSIUM_RUNTIME__GRACEFUL_SHUTDOWN_SECONDS": settings.ShutdownDrainTimeoutSeconds,
	}
	for name, value := range seconds {
		if value != nil {
			data[name] = strconv.Itoa(int(*value))
		}
	}
	return data
}

// ConfigChecksum identifies the data of the ConfigMap: the lower-case hex SHA-256
// of "len(key):key:len(value):value;" for each key in sorted order, lengths in
// bytes. The encoding is fixed: another one would restart every runtime.
func ConfigChecksum(data map[string]string) string {
	hash := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(data)) {
		value := data[key]
		// A hash never fails to write.
		_, _ = io.WriteString(hash, fmt.Sprintf("%d:%s:%d:%s;", len(key), key, len(value), value))
	}
	return hex.EncodeToString(hash.Sum(nil))
}
