package static

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/trussiumhq/trussium-operator/matrix/check"
	"github.com/trussiumhq/trussium-operator/matrix/helm"
)

// ValueModesRender is the check that the newer chart takes the values of the earlier release.
var ValueModesRender = check.Check{
	ID: "value-modes-render",
	Claim: "The newer chart renders valid objects and its own images by default, with --reuse-values and with --reset-then-reuse-values, " +
		"over an installation without values and over one that names all of the earlier chart's.",
}

// way is a way to upgrade.
type way struct {
	mode helm.Values
	// named tells that the installation names every value of the source's chart.
	named bool
}

func (w way) String() string {
	flag := map[helm.Values]string{helm.DefaultValues: "no flag", helm.ReuseValues: "--reuse-values", helm.ResetThenReuseValues: "--reset-then-reuse-values"}[w.mode]
	if w.named {
		return flag + ", over all of the earlier chart's values"
	}
	return flag + ", over no values"
}

// JudgeValueModes judges ValueModesRender, whatever the edge's own way to treat values is.
func JudgeValueModes(ctx context.Context, e Edge) (check.Result, error) {
	var r check.Result
	fresh, err := e.renderInstall(ctx, nil)
	if err != nil {
		return refused(err)
	}
	usual, err := objectsOf(fresh)
	if err != nil {
		return refused(err)
	}
	for _, named := range []bool{false, true} {
		for _, mode := range []helm.Values{helm.DefaultValues, helm.ReuseValues, helm.ResetThenReuseValues} {
			w := way{mode: mode, named: named}
			var values map[string]any
			if named {
				values = e.Source.Chart.Values()
			}
			rendered, err := e.renderUpgrade(ctx, mode, values)
			var objects []object
			if err == nil {
				objects, err = objectsOf(rendered.after)
			}
			if err != nil {
				judged, err := refused(fmt.Errorf("%s: %w", w, err))
				r.Add(judged)
				if err != nil {
					return r, err
				}
				continue
			}
			r.Add(judgeRendered(w, objects, usual, e.Namespace))
		}
	}
	return r, nil
}

// judgeRendered compares what an upgrade renders with what a fresh installation does.
func judgeRendered(w way, objects, usual []object, namespace string) check.Result {
	var r check.Result
	seen := map[ref]bool{}
	for _, o := range objects {
		name := refOf(o, namespace)
		if seen[name] {
			r.Fail("%s: %s is rendered twice", w, name)
		}
		seen[name] = true
		if reason := malformed(o); reason != "" {
			r.Fail("%s: %s: %s", w, name, reason)
		}
	}
	for _, o := range usual {
		if name := refOf(o, namespace); !seen[name] {
			r.Fail("%s: %s is not rendered", w, name)
		}
	}
	if got, want := imagesOf(objects), imagesOf(usual); strings.Join(got, " ") != strings.Join(want, " ") {
		r.Fail("%s: the images are %v, a fresh installation has %v", w, got, want)
	}
	if len(r.Failures) == 0 {
		r.See("%s: %d objects", w, len(objects))
	}
	return r
}

// strict refuses what the types of Kubernetes' own kinds don't have.
var strict = serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()

// malformed says what is wrong with an object; of kinds that aren't Kubernetes' own only the name
// can be judged.
func malformed(o object) string {
	if o.GetName() == "" {
		return "has no name"
	}
	if _, _, err := strict.Decode([]byte(asJSON(o.Object)), nil, nil); err != nil && !runtime.IsNotRegisteredError(err) {
		return err.Error()
	}
	return ""
}
