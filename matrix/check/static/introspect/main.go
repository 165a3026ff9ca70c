// Introspect tells what the operator's code of a release does. It is compiled inside the source
// tree of any release, which it is laid into, so it uses only what all of them have.
//
// It reads TrussiumRuntimes, as the API server hands them out, as a JSON list from stdin.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
	"github.com/trussiumhq/trussium-operator/operator/controller"
	"github.com/trussiumhq/trussium-operator/operator/desired"
)

// facts are what it prints, as JSON.
type facts struct {
	// Workloads are what the operator asks for, one for each runtime.
	Workloads []workload `json:"workloads"`
	// Cached are the kinds that the operator must list and watch before it can work.
	Cached []resource `json:"cached"`
}

type workload struct {
	Selector any    `json:"selector,omitempty"`
	Template any    `json:"template,omitempty"`
	Error    string `json:"error,omitempty"`
}

type resource struct {
	Group    string `json:"group"`
	Resource string `json:"resource"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	var runtimes []*v1alpha1.TrussiumRuntime
	if err := json.NewDecoder(os.Stdin).Decode(&runtimes); err != nil {
		return fmt.Errorf("read the runtimes: %w", err)
	}
	told := facts{Workloads: []workload{}}
	for _, runtime := range runtimes {
		told.Workloads = append(told.Workloads, workloadOf(runtime))
	}
	var err error
	if told.Cached, err = cached(); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(told)
}

// workloadOf calls the builder of the Deployment for a runtime that has none yet. Releases before
// 0.5.0 take no live Deployment.
func workloadOf(runtime *v1alpha1.TrussiumRuntime) workload {
	builder := reflect.ValueOf(desired.Deployment)
	arguments := []reflect.Value{reflect.ValueOf(runtime)}
	for i := 1; i < builder.Type().NumIn(); i++ {
		arguments = append(arguments, reflect.Zero(builder.Type().In(i)))
	}
	results := builder.Call(arguments)
	if err, failed := results[1].Interface().(error); failed {
		return workload{Error: err.Error()}
	}
	spec := results[0].Interface().(*appsv1ac.DeploymentApplyConfiguration).Spec
	return workload{Selector: spec.Selector, Template: spec.Template}
}

func cached() ([]resource, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	var resources []resource
	for _, object := range controller.CachedObjects() {
		kind, err := apiutil.GVKForObject(object, scheme)
		if err != nil {
			return nil, fmt.Errorf("name the kind of a cached object: %w", err)
		}
		plural, _ := meta.UnsafeGuessKindToResource(kind)
		resources = append(resources, resource{Group: plural.Group, Resource: plural.Resource})
	}
	return resources, nil
}
