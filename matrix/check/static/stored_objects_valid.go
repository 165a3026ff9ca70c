package static

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/trussiumhq/trussium-operator/matrix/check"
	"github.com/trussiumhq/trussium-operator/matrix/check/static/crdschema"
)

// StoredObjectsValid is the check of what users have stored before the upgrade.
var StoredObjectsValid = check.Check{
	ID:    "stored-objects-valid",
	Claim: "Objects that the earlier CRD accepts (every field set, every field alone, at every bound, the examples) are valid under the newer one, and lose nothing.",
}

// JudgeStoredObjects judges StoredObjectsValid for every CRD of the source.
func JudgeStoredObjects(ctx context.Context, e Edge) (check.Result, error) {
	var r check.Result
	before, err := crdsOf(e.Source.Chart)
	if err != nil {
		return r, fmt.Errorf("chart %s: %w", e.Source.Version, err)
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		stored, target, err := e.stored(ctx, name)
		if err != nil {
			return refused(err)
		}
		r.See("%s: %d objects; the earlier release itself refuses %d more (%s)", name, len(stored.members), len(stored.left), strings.Join(stored.left, ", "))
		r.Add(judgeStored(ctx, stored, target))
	}
	return r, nil
}

// stored are the objects of a CRD that users of the source can have, and the schema that the
// target reads them by.
func (e Edge) stored(ctx context.Context, name string) (corpus, *crdschema.Schema, error) {
	before, err := crdsOf(e.Source.Chart)
	if err != nil {
		return corpus{}, nil, fmt.Errorf("chart %s: %w", e.Source.Version, err)
	}
	if before[name] == nil {
		return corpus{}, nil, fmt.Errorf("%w: chart %s has no CRD %s", check.ErrNotApplicable, e.Source.Version, name)
	}
	version := storageVersion(before[name])
	source, err := crdschema.New(version.Schema.OpenAPIV3Schema)
	if err != nil {
		return corpus{}, nil, fmt.Errorf("CRD %s of chart %s: %w", name, e.Source.Version, err)
	}
	objects, err := corpusOf(ctx, e.Subject.Resource, before[name], source, e.Source.Tree)
	if err != nil {
		return corpus{}, nil, fmt.Errorf("make objects of CRD %s of chart %s: %w", name, e.Source.Version, err)
	}
	target, err := e.targetSchema(name, version.Name)
	if err != nil {
		return corpus{}, nil, refusedError{fmt.Errorf("chart %s: %w", e.Target.Version, err)}
	}
	return objects, target, nil
}

// targetSchema is the schema that the target's CRD has for a version.
func (e Edge) targetSchema(name, version string) (*crdschema.Schema, error) {
	after, err := crdsOf(e.Target.Chart)
	if err != nil {
		return nil, err
	}
	if after[name] == nil {
		return nil, fmt.Errorf("it has no CRD %s", name)
	}
	for _, v := range after[name].Spec.Versions {
		if v.Name == version {
			schema, err := crdschema.New(v.Schema.OpenAPIV3Schema)
			if err != nil {
				return nil, fmt.Errorf("CRD %s: %w", name, err)
			}
			return schema, nil
		}
	}
	return nil, fmt.Errorf("CRD %s has no version %s", name, version)
}

// judgeStored reads each object by the schema. Objects that are refused for one reason are told
// as one.
func judgeStored(ctx context.Context, stored corpus, schema *crdschema.Schema) check.Result {
	var r check.Result
	objects := map[string][]string{}
	for _, member := range stored.members {
		for _, reason := range lost(ctx, member.object, schema) {
			objects[reason] = append(objects[reason], member.name)
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(objects)) {
		names := objects[reason]
		r.Fail("%s (%d objects, the first is: %s)", reason, len(names), names[0])
	}
	return r
}

// lost are the ways in which an object suffers from being read by the schema.
func lost(ctx context.Context, object map[string]any, schema *crdschema.Schema) []string {
	var reasons []string
	read := runtime.DeepCopyJSON(object)
	if pruned := schema.Prune(read); len(pruned) > 0 {
		reasons = append(reasons, "is pruned: "+strings.Join(pruned, ", "))
	}
	schema.Default(read)
	err := schema.Validate(ctx, read)
	if err == nil {
		return reasons
	}
	labelled := runtime.DeepCopyJSON(read)
	labelled["metadata"].(map[string]any)["labels"] = map[string]any{"example.com/changed": "true"}
	if schema.ValidateUpdate(ctx, labelled, read) == nil {
		return append(reasons, fmt.Sprintf("is refused, though from Kubernetes 1.30 on the rest of it can be changed: %v", err))
	}
	return append(reasons, fmt.Sprintf("is refused, and can't even be labelled: %v", err))
}
