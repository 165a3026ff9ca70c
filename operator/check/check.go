// Package check tells whether an installed operator works, with no more rights than the
// operator has itself: `helm test` runs it under the operator's ServiceAccount.
package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/trussiumhq/trussium-operator/operator/controller"
	"github.com/trussiumhq/trussium-operator/operator/election"
	"github.com/trussiumhq/trussium-operator/operator/manager"
)

// poll is the pause between two looks at the Lease, which a leader renews more than once a second.
const poll = 250 * time.Millisecond

// Options say how the operator is installed. They are the manager's.
type Options struct {
	// LeaderElect says that the operator works under a Lease.
	LeaderElect bool
	// LeaderElectionNamespace holds the Lease. It must be set with LeaderElect.
	LeaderElectionNamespace string
	// WatchNamespace is the only namespace that the operator works in; empty means all.
	WatchNamespace string
	// Timeout bounds the wait for a leader.
	Timeout time.Duration
}

// Run checks that TrussiumRuntimes are served, that the operator may watch all that it
// depends on, and, with leader election, that one leads: it takes the Lease only once it has
// read all that.
// It writes one line for each to report. The error names all that is wrong, and what to do.
func Run(ctx context.Context, config *rest.Config, options Options, report io.Writer) error {
	if options.LeaderElect && options.LeaderElectionNamespace == "" {
		return errors.New("--leader-election-namespace must name the namespace that the operator runs in")
	}
	scheme, err := manager.NewScheme()
	if err != nil {
		return err
	}
	api, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("connect to the cluster: %w", err)
	}
	problem := told(report, "the operator may list and watch all that it depends on", rights(ctx, api, options.WatchNamespace))
	if options.LeaderElect {
		problem = errors.Join(problem, told(report, "an operator leads", leader(ctx, api, options)))
	}
	return problem
}

func told(report io.Writer, what string, err error) error {
	if err == nil {
		fmt.Fprintln(report, "ok:", what)
	}
	return err
}

// rights asks for each kind that the operator caches. One that the cluster does not serve is
// named as well: the CustomResourceDefinition is one of them.
func rights(ctx context.Context, api client.Client, namespace string) error {
	var problems []error
	for _, object := range controller.CachedObjects() {
		kind, err := apiutil.GVKForObject(object, api.Scheme())
		if err != nil {
			return fmt.Errorf("find the kind of %T: %w", object, err)
		}
		mapping, err := api.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			problems = append(problems, fmt.Errorf("the cluster does not serve %s: run `manager crds apply`, or apply crds/ of the chart: %w", kind, err))
			continue
		}
		for _, verb := range []string{"list", "watch"} {
			if err := allowed(ctx, api, namespace, verb, mapping.Resource); err != nil {
				problems = append(problems, err)
			}
		}
	}
	return errors.Join(problems...)
}

func allowed(ctx context.Context, api client.Client, namespace, verb string, resource schema.GroupVersionResource) error {
	where := "in all namespaces"
	if namespace != "" {
		where = "in namespace " + namespace
	}
	name := resource.GroupResource().String()
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: verb, Group: resource.Group, Version: resource.Version, Resource: resource.Resource,
		},
	}}
	if err := api.Create(ctx, review); err != nil {
		return fmt.Errorf("ask whether the operator may %s %s %s: %w", verb, name, where, err)
	}
	if !review.Status.Allowed {
		return fmt.Errorf("the operator may not %s %s %s: compare its role with the one of the chart", verb, name, where)
	}
	return nil
}

// leader waits until the Lease is renewed. That needs no clock that agrees with the leader's.
func leader(ctx context.Context, api client.Client, options Options) error {
	key := client.ObjectKey{Namespace: options.LeaderElectionNamespace, Name: election.LeaseName}
	var first, last *coordinationv1.Lease
	err := wait.PollUntilContextTimeout(ctx, poll, options.Timeout, true, func(ctx context.Context) (bool, error) {
		lease := &coordinationv1.Lease{}
		if err := api.Get(ctx, key, lease); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		if first == nil {
			first = lease
		}
		last = lease
		return holder(lease) != "" && !renewed(lease).Equal(renewed(first)), nil
	})
	switch {
	case err == nil:
		return nil
	case !wait.Interrupted(err):
		return fmt.Errorf("read Lease %s: %w", key, err)
	case last == nil || holder(last) == "":
		return fmt.Errorf("no operator holds Lease %s within %s: look at the operator's Pods and their log", key, options.Timeout)
	default:
		return fmt.Errorf("%s holds Lease %s and has not renewed it within %s: look at the log of that Pod", holder(last), key, options.Timeout)
	}
}

func holder(lease *coordinationv1.Lease) string {
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

func renewed(lease *coordinationv1.Lease) *metav1.MicroTime { return lease.Spec.RenewTime }
