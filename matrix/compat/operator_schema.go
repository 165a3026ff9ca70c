package compat

import (
	"math"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"
	"gopkg.in/yaml.v3"
)

// defaultScenarios is the folder of the scenarios unless the file names another one.
const defaultScenarios = "chainsaw"

// operator reads the section about the operator. Nothing in it is mixed with the default one.
func (r *reader) operator(path string, n *yaml.Node) Operator {
	values, ok := r.mapping(path, n, keys{required: []string{"chart", "image", "lease", "resource", "runtime"}, optional: []string{"scenarios", "rights"}})
	if !ok {
		return Operator{}
	}
	operator := Operator{Lease: r.objectName(path+".lease", values["lease"]), Scenarios: defaultScenarios}
	if node := values["scenarios"]; node != nil {
		operator.Scenarios = r.repositoryPath(path+".scenarios", node)
	}
	if node := values["chart"]; node != nil {
		operator.Chart = r.operatorChart(path+".chart", node)
	}
	if node := values["image"]; node != nil {
		operator.Image = r.operatorImage(path+".image", node)
	}
	if node := values["rights"]; node != nil {
		operator.Rights = r.rights(path+".rights", node)
	}
	if node := values["resource"]; node != nil {
		operator.Resource = r.resource(path+".resource", node)
	}
	if node := values["runtime"]; node != nil {
		operator.Runtime = r.runtime(path+".runtime", node)
	}
	return operator
}

func (r *reader) operatorChart(path string, n *yaml.Node) OperatorChart {
	values, ok := r.mapping(path, n, keys{required: []string{"path", "repository"}, optional: []string{"watchNamespace"}})
	if !ok {
		return OperatorChart{}
	}
	return OperatorChart{
		Path:           r.repositoryPath(path+".path", values["path"]),
		Repository:     r.imageRepository(path+".repository", values["repository"]),
		WatchNamespace: r.word(path+".watchNamespace", values["watchNamespace"]),
	}
}

func (r *reader) operatorImage(path string, n *yaml.Node) OperatorImage {
	values, ok := r.mapping(path, n, keys{required: []string{"repository", "package"}, optional: []string{"versionVariable"}})
	if !ok {
		return OperatorImage{}
	}
	return OperatorImage{
		Repository:      r.imageRepository(path+".repository", values["repository"]),
		Package:         r.mainPackage(path+".package", values["package"]),
		VersionVariable: r.word(path+".versionVariable", values["versionVariable"]),
	}
}

func (r *reader) rights(path string, n *yaml.Node) Rights {
	values, ok := r.mapping(path, n, keys{optional: []string{"needed", "refused", "packages"}})
	if !ok {
		return Rights{}
	}
	var rights Rights
	read := func(into *[]Right) func(string, *yaml.Node) {
		return func(path string, n *yaml.Node) { *into = append(*into, r.right(path, n)) }
	}
	r.list(path+".needed", values["needed"], true, read(&rights.Needed))
	r.list(path+".refused", values["refused"], true, read(&rights.Refused))
	r.list(path+".packages", values["packages"], true, func(path string, n *yaml.Node) {
		values, ok := r.mapping(path, n, keys{required: []string{"package", "workload", "namespaces"}})
		if !ok {
			return
		}
		rights.Packages = append(rights.Packages, PackageRights{
			Package:    r.repositoryPath(path+".package", values["package"]),
			Workload:   r.word(path+".workload", values["workload"]),
			Namespaces: choice(r, path+".namespaces", values["namespaces"], NamespacesAll, NamespacesWatched, NamespacesRelease),
		})
	})
	return rights
}

func (r *reader) right(path string, n *yaml.Node) Right {
	values, ok := r.mapping(path, n, keys{required: []string{"group", "resource", "verbs"}})
	if !ok {
		return Right{}
	}
	right := Right{Resource: r.word(path+".resource", values["resource"])}
	// The core group has no name.
	if node := values["group"]; node != nil && (node.Kind != yaml.ScalarNode || node.ShortTag() != "!!str" || node.Value != "") {
		right.Group = r.word(path+".group", node)
	}
	r.list(path+".verbs", values["verbs"], true, func(path string, n *yaml.Node) {
		right.Verbs = append(right.Verbs, r.word(path, n))
	})
	return right
}

func (r *reader) resource(path string, n *yaml.Node) Resource {
	values, ok := r.mapping(path, n, keys{
		required: []string{"crd", "spec", "managed", "change"},
		optional: []string{"features", "changeWithoutRoll", "upgrade", "examples", "exemplars"},
	})
	if !ok {
		return Resource{}
	}
	resource := Resource{CRD: r.crdName(path+".crd", values["crd"]), Spec: r.object(path+".spec", values["spec"])}
	features := r.names("feature")
	for _, f := range r.fields(path+".features", values["features"]) {
		features.add(f.key.Value, f.key)
		resource.Features = append(resource.Features, Feature{Field: f.key.Value, Value: r.any(path+".features."+f.key.Value, f.value)})
	}
	kinds := r.names("managed kind")
	r.list(path+".managed", values["managed"], true, func(path string, n *yaml.Node) {
		managed := r.managed(path, n, features)
		resource.Managed = append(resource.Managed, managed)
		kinds.known = append(kinds.known, managed.Kind)
	})
	resource.Change = r.change(path+".change", values["change"], kinds)
	resource.ChangeWithoutRoll = r.change(path+".changeWithoutRoll", values["changeWithoutRoll"], kinds)
	if node := values["upgrade"]; node != nil {
		resource.Upgrade = r.upgradeReport(path+".upgrade", node)
	}
	r.list(path+".examples", values["examples"], true, func(path string, n *yaml.Node) {
		pattern := r.repositoryPath(path, n)
		if _, err := filepath.Match(pattern, ""); err != nil {
			r.problem(n, "write a pattern, as in testdata/*.yaml", "%s is %q, which is not a pattern of files", path, pattern)
		}
		resource.Examples = append(resource.Examples, pattern)
	})
	for _, f := range r.fields(path+".exemplars", values["exemplars"]) {
		if resource.Exemplars == nil {
			resource.Exemplars = map[string]any{}
		}
		resource.Exemplars[f.key.Value] = r.any(path+".exemplars."+f.key.Value, f.value)
	}
	return resource
}

func (r *reader) managed(path string, n *yaml.Node, features *names) Managed {
	values, ok := r.mapping(path, n, keys{required: []string{"apiVersion", "kind"}, optional: []string{"name", "feature"}})
	if !ok {
		return Managed{}
	}
	managed := Managed{APIVersion: r.word(path+".apiVersion", values["apiVersion"]), Kind: r.word(path+".kind", values["kind"]), Name: namePlaceholder}
	if node := values["name"]; node != nil {
		managed.Name = r.formed(path+".name", node, childForm, "the name of a runtime's object", "write it with "+namePlaceholder+", as in "+namePlaceholder+"-config")
	}
	if node := values["feature"]; node != nil {
		managed.Feature = features.refer(path+".feature", node)
	}
	return managed
}

func (r *reader) change(path string, n *yaml.Node, kinds *names) *Change {
	if n == nil {
		return nil
	}
	values, ok := r.mapping(path, n, keys{required: []string{"spec", "kind", "shows"}})
	if !ok {
		return nil
	}
	return &Change{Spec: r.object(path+".spec", values["spec"]), Kind: kinds.refer(path+".kind", values["kind"]), Shows: r.object(path+".shows", values["shows"])}
}

func (r *reader) upgradeReport(path string, n *yaml.Node) *UpgradeReport {
	values, ok := r.mapping(path, n, keys{required: []string{"started", "completed", "failed", "image"}})
	if !ok {
		return nil
	}
	return &UpgradeReport{
		Started: r.word(path+".started", values["started"]), Completed: r.word(path+".completed", values["completed"]),
		Failed: r.word(path+".failed", values["failed"]), Image: r.word(path+".image", values["image"]),
	}
}

func (r *reader) runtime(path string, n *yaml.Node) Runtime {
	values, ok := r.mapping(path, n, keys{required: []string{"image"}, optional: []string{"package", "port", "paths", "started"}})
	if !ok {
		return Runtime{}
	}
	runtime := Runtime{Image: r.imageRepository(path+".image", values["image"]), Port: r.word(path+".port", values["port"])}
	if node := values["package"]; node != nil {
		runtime.Package = r.mainPackage(path+".package", node)
	}
	r.list(path+".paths", values["paths"], true, func(path string, n *yaml.Node) {
		runtime.Paths = append(runtime.Paths, r.formed(path, n, urlPathForm, "a path", "begin it with a slash"))
	})
	if (values["port"] == nil) != (values["paths"] == nil) {
		r.problem(n, "give both or none", "%s has only one of port and paths", path)
	}
	if node := values["started"]; node != nil {
		runtime.Started = r.startLine(path+".started", node)
	}
	return runtime
}

func (r *reader) startLine(path string, n *yaml.Node) *StartLine {
	values, ok := r.mapping(path, n, keys{required: []string{"line", "version"}})
	if !ok {
		return nil
	}
	return &StartLine{Line: r.object(path+".line", values["line"]), Version: r.word(path+".version", values["version"])}
}

// The forms of text that only the section about the operator has.
var (
	wordForm = regexp.MustCompile(`^[^\x00-\x20\x7f]+$`)
	// objectForm is what Kubernetes allows as the name of most objects, crdForm PLURAL.GROUP.
	objectForm = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	crdForm    = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?){2,}$`)
	// repositoryForm is HOST/PATH, where the host has a dot or a port.
	repositoryForm = regexp.MustCompile(`^[a-zA-Z0-9-]*[.:][a-zA-Z0-9.:-]*(/[a-z0-9][a-z0-9._-]*)+$`)
	pathForm       = regexp.MustCompile(`^[^/\x00-\x20\x7f]+(/[^/\x00-\x20\x7f]+)*$`)
	packageForm    = regexp.MustCompile(`^\.(/[^/\x00-\x20\x7f]+)*$`)
	urlPathForm    = regexp.MustCompile(`^/[^\x00-\x20\x7f]*$`)
	childForm      = regexp.MustCompile(`^[^\x00-\x20\x7f]*\$name[^\x00-\x20\x7f]*$`)
)

// formed reads a text of a form; empty if the file lacks it.
func (r *reader) formed(path string, n *yaml.Node, form *regexp.Regexp, what, advice string) string {
	value, ok := r.text(path, n)
	if ok && !form.MatchString(value) {
		r.problem(n, advice, "%s is %q, which is not %s", path, value, what)
	}
	return value
}

func (r *reader) word(path string, n *yaml.Node) string {
	return r.formed(path, n, wordForm, "one word", "write it without blanks")
}

func (r *reader) objectName(path string, n *yaml.Node) string {
	return r.formed(path, n, objectForm, "the name of an object", "use lower-case letters, digits, dots and dashes")
}

func (r *reader) crdName(path string, n *yaml.Node) string {
	return r.formed(path, n, crdForm, "the name of a CustomResourceDefinition", "write PLURAL.GROUP, as in kiosks.fair.example.com")
}

func (r *reader) imageRepository(path string, n *yaml.Node) string {
	const what, advice = "a repository", "write HOST/PATH, as in registry.example.com/fair/kiosk"
	value := r.formed(path, n, repositoryForm, what, advice)
	if _, err := name.NewRepository(value, name.StrictValidation); err != nil && repositoryForm.MatchString(value) {
		r.problem(n, advice, "%s is %q, which is not %s", path, value, what)
	}
	return value
}

// repositoryPath reads a path relative to the root of the repository, with slashes.
func (r *reader) repositoryPath(path string, n *yaml.Node) string {
	const what, advice = "a path in the repository", "write it relative to the root of the repository, as in charts/operator"
	value := r.formed(path, n, pathForm, what, advice)
	if pathForm.MatchString(value) && !filepath.IsLocal(filepath.FromSlash(value)) {
		r.problem(n, advice, "%s is %q, which is not %s", path, value, what)
	}
	return value
}

// mainPackage reads ./PATH.
func (r *reader) mainPackage(path string, n *yaml.Node) string {
	const what, advice = "a package of the repository", "write it relative to the root of the repository, as in ./operator"
	value := r.formed(path, n, packageForm, what, advice)
	if packageForm.MatchString(value) && !filepath.IsLocal(filepath.FromSlash(value)) {
		r.problem(n, advice, "%s is %q, which is not %s", path, value, what)
	}
	return value
}

// freeField is a key of a mapping whose keys are free, and its value.
type freeField struct{ key, value *yaml.Node }

// fields are those of a mapping whose keys are free; nil if the file lacks it.
func (r *reader) fields(path string, n *yaml.Node) []freeField {
	if n == nil {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		r.wrongKind(path, n, "a mapping of keys to values")
		return nil
	}
	var fields []freeField
	var seen []string
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		switch {
		case key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge":
			r.problem(key, "write the keys out", "%s has a key that is not text", path)
		case slices.Contains(seen, key.Value):
			r.problem(key, "keep one of them", "%s has the key %q twice", path, key.Value)
		default:
			seen = append(seen, key.Value)
			fields = append(fields, freeField{key, n.Content[i+1]})
		}
	}
	return fields
}

// object reads a mapping with free keys and values, as a part of a Kubernetes object.
func (r *reader) object(path string, n *yaml.Node) map[string]any {
	if n == nil {
		return nil
	}
	object := map[string]any{}
	for _, f := range r.fields(path, n) {
		object[f.key.Value] = r.any(path+"."+f.key.Value, f.value)
	}
	return object
}

// any reads any value that JSON has.
func (r *reader) any(path string, n *yaml.Node) any {
	switch n.Kind {
	case yaml.MappingNode:
		return r.object(path, n)
	case yaml.SequenceNode:
		list := []any{}
		for _, item := range n.Content {
			list = append(list, r.any(path+"[]", item))
		}
		return list
	case yaml.AliasNode:
		r.wrongKind(path, n, "the value")
		return nil
	}
	switch tag := n.ShortTag(); tag {
	case "!!null":
		return nil
	case "!!str":
		return n.Value
	case "!!bool":
		var value bool
		r.scalar(path, n, &value)
		return value
	case "!!int":
		var value int64
		r.scalar(path, n, &value)
		return value
	case "!!float":
		var value float64
		r.scalar(path, n, &value)
		if math.IsNaN(value) || math.IsInf(value, 0) {
			r.problem(n, "write a finite number", "%s is %q, which JSON can't hold", path, n.Value)
		}
		return value
	default:
		r.problem(n, "quote it", "%s is %s, which Kubernetes objects don't have", path, scalarName(tag))
		return nil
	}
}

// scalar decodes a number or a boolean.
func (r *reader) scalar(path string, n *yaml.Node, into any) {
	if err := n.Decode(into); err != nil {
		r.problem(n, "quote it, or write another value", "%s is %q, which can't be read", path, n.Value)
	}
}
