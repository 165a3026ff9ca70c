package static

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/trussiumhq/trussium-operator/matrix/check"
)

// TemplateGolden is the check that the operator upgrade alone rolls no runtime.
var TemplateGolden = check.Check{
	ID:    "template-golden",
	Claim: "The code of both releases makes the same pod template and selector of the same stored runtime, unless a template revision is declared.",
}

// JudgeTemplates judges TemplateGolden: it runs the builders of both source trees. What a
// published image holds beside its source is for the cluster to show.
func JudgeTemplates(ctx context.Context, e Edge) (check.Result, error) {
	var r check.Result
	stored, target, err := e.stored(ctx, e.Subject.Resource.CRD)
	if err != nil {
		return refused(err)
	}
	var names []string
	var before, after []map[string]any
	for _, member := range stored.members {
		read := runtime.DeepCopyJSON(member.object)
		target.Prune(read)
		target.Default(read)
		names, before, after = append(names, member.name), append(before, member.object), append(after, read)
	}
	was, err := e.Source.Tree.introspect(ctx, before)
	if err != nil {
		return r, fmt.Errorf("release %s: %w", e.Source.Version, err)
	}
	is, err := e.Target.Tree.introspect(ctx, after)
	if err != nil {
		return r, fmt.Errorf("release %s: %w", e.Target.Version, err)
	}
	return compareTemplates(names, was.Workloads, is.Workloads, e.Source.TemplateRevision, e.Target.TemplateRevision), nil
}

// compareTemplates compares what two releases make of the named runtimes. What differs in the
// same way for many is told once.
func compareTemplates(names []string, before, after []workload, wasRevision, isRevision int) check.Result {
	var r check.Result
	objects := map[string][]string{}
	for i, name := range names {
		for _, difference := range check.Differences(before[i].fields(), after[i].fields()) {
			objects[difference] = append(objects[difference], name)
		}
	}
	for _, difference := range slices.Sorted(maps.Keys(objects)) {
		names := objects[difference]
		text := fmt.Sprintf("%s (%d runtimes, the first is: %s)", difference, len(names), names[0])
		if wasRevision == isRevision {
			r.Fail("%s", text)
		} else {
			r.See("declared revision %d to %d: %s", wasRevision, isRevision, text)
		}
	}
	if len(objects) == 0 && wasRevision != isRevision {
		r.Fail("the pod template is declared to change from revision %d to %d, and does not", wasRevision, isRevision)
	}
	r.See("%d runtimes were given to the code of both releases", len(names))
	return r
}

func (w workload) fields() map[string]any {
	fields := map[string]any{"selector": w.Selector, "template": w.Template}
	if w.Error != "" {
		fields["error"] = w.Error
	}
	return fields
}
