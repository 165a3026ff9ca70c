package static

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/crdify/pkg/config"
	"sigs.k8s.io/crdify/pkg/runner"
	"sigs.k8s.io/crdify/pkg/validations"
	"sigs.k8s.io/crdify/pkg/validations/crd/existingfieldremoval"
	"sigs.k8s.io/crdify/pkg/validations/crd/scope"
	"sigs.k8s.io/crdify/pkg/validations/crd/storedversionremoval"
	"sigs.k8s.io/crdify/pkg/validations/property"

	"github.com/trussiumhq/trussium-operator/matrix/check"
	"github.com/trussiumhq/trussium-operator/matrix/helm"
)

// CRDCompatible is the check of the schema that users' objects are read by after the upgrade.
var CRDCompatible = check.Check{
	ID: "crd-compatible",
	Claim: "From the earlier CRD to the newer one no field is removed, retyped or newly required, no default changes, no version is dropped, " +
		"and nothing is tightened other than where Kubernetes keeps letting unchanged values pass.",
}

// ratchetingSince is the first Kubernetes that, unless told otherwise, lets values pass that a
// tightened schema refuses but that did not change.
var ratchetingSince = version.MustParseGeneric("1.30")

// JudgeCRDs judges CRDCompatible for every CRD of the source.
func JudgeCRDs(ctx context.Context, e Edge) (check.Result, error) {
	var r check.Result
	before, err := crdsOf(e.Source.Chart)
	if err != nil {
		return r, fmt.Errorf("chart %s: %w", e.Source.Version, err)
	}
	after, err := crdsOf(e.Target.Chart)
	if err != nil {
		return refused(refusedError{fmt.Errorf("chart %s: %w", e.Target.Version, err)})
	}
	ratcheting := true
	if e.Kubernetes != "" {
		cluster, err := version.ParseGeneric(e.Kubernetes)
		if err != nil {
			return r, fmt.Errorf("the edge's Kubernetes version: %w", err)
		}
		ratcheting = cluster.AtLeast(ratchetingSince)
	}
	return compareCRDs(ctx, before, after, ratcheting)
}

// crdsOf are the definitions in the chart's crds folder, by name.
func crdsOf(chart *helm.Chart) (map[string]*apiextensionsv1.CustomResourceDefinition, error) {
	definitions := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, file := range chart.CRDs() {
		found, err := documents(file)
		if err != nil {
			return nil, fmt.Errorf("read the chart's CRDs: %w", err)
		}
		for _, document := range found {
			definition, err := as[apiextensionsv1.CustomResourceDefinition](document)
			if err != nil {
				return nil, fmt.Errorf("read the chart's CRDs: %w", err)
			}
			apiextensionsv1.SetDefaults_CustomResourceDefinition(definition)
			apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&definition.Spec)
			definitions[definition.Name] = definition
		}
	}
	return definitions, nil
}

func compareCRDs(ctx context.Context, before, after map[string]*apiextensionsv1.CustomResourceDefinition, ratcheting bool) (check.Result, error) {
	var r check.Result
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if after[name] == nil {
			r.Fail("the newer chart has no CRD %s", name)
			continue
		}
		if err := compareCRD(ctx, &r, before[name], after[name], ratcheting); err != nil {
			return r, fmt.Errorf("compare CRD %s: %w", name, err)
		}
	}
	// crdify has no order.
	slices.Sort(r.Failures)
	slices.Sort(r.Seen)
	return r, nil
}

func compareCRD(ctx context.Context, r *check.Result, before, after *apiextensionsv1.CustomResourceDefinition, ratcheting bool) error {
	before = before.DeepCopy()
	// The charts' CRDs have no status: objects are stored in the version that the source stores.
	for _, v := range before.Spec.Versions {
		if v.Storage {
			before.Status.StoredVersions = append(before.Status.StoredVersions, v.Name)
		}
	}
	if err := acceptable(ctx, r, before, after); err != nil {
		return err
	}
	for _, v := range before.Spec.Versions {
		if now := validations.GetCRDVersionByName(after, v.Name); v.Served && (now == nil || !now.Served) {
			r.Fail("version %s is no longer served", v.Name)
		}
	}
	comparison, err := newComparison()
	if err != nil {
		return err
	}
	results := comparison.Run(before, after)
	for _, result := range results.CRDValidation {
		for _, text := range result.Errors {
			r.Fail("%s", text)
		}
	}
	for _, versioned := range append(results.SameVersionValidation, results.ServedVersionValidation...) {
		places := placesOf(validations.GetCRDVersionByName(after, versioned.Version))
		for _, changed := range versioned.PropertyComparisons {
			judgeChanges(r, versioned.Version, changed, places, ratcheting)
		}
	}
	for _, v := range before.Spec.Versions {
		now := validations.GetCRDVersionByName(after, v.Name)
		if now == nil {
			continue
		}
		was, is := placesOf(&v), placesOf(now)
		r.See("%s %s: %d places in the schema were compared, %d are new", before.Name, v.Name, len(was), len(is)-len(was))
	}
	return nil
}

// acceptable asks the API server's own code whether one definition may take the other's place.
func acceptable(ctx context.Context, r *check.Result, before, after *apiextensionsv1.CustomResourceDefinition) error {
	before, after = before.DeepCopy(), after.DeepCopy()
	// It is installed: its names can't change any more.
	before.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue}}
	after.Status = before.Status
	before.ResourceVersion, after.ResourceVersion = "1", "1"
	was, is := &apiextensions.CustomResourceDefinition{}, &apiextensions.CustomResourceDefinition{}
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(before, was, nil); err != nil {
		return err
	}
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(after, is, nil); err != nil {
		return err
	}
	for _, refusal := range crdvalidation.ValidateCustomResourceDefinitionUpdate(ctx, is, was) {
		r.Fail("the API server refuses the newer CRD: %v", refusal)
	}
	return nil
}

// newComparison sets crdify up. What none of its validations knows is an error too.
func newComparison() (*runner.Runner, error) {
	registry := validations.NewRegistry()
	for _, register := range []func(validations.Registry){
		existingfieldremoval.Register, scope.Register, storedversionremoval.Register,
		property.RegisterDefault, property.RegisterEnum, property.RegisterRequired, property.RegisterType,
		property.RegisterMaximum, property.RegisterMaxItems, property.RegisterMaxLength, property.RegisterMaxProperties,
		property.RegisterMinimum, property.RegisterMinItems, property.RegisterMinLength, property.RegisterMinProperties,
		property.RegisterDescription, property.RegisterPattern, property.RegisterNullable,
		registerRules, registerNested,
	} {
		register(registry)
	}
	allow := func(policy string) map[string]any { return map[string]any{policy: "Allow"} }
	return runner.New(&config.Config{Validations: []config.ValidationConfig{
		{Name: "description", Enforcement: config.EnforcementPolicyNone},
		{Name: "enum", Enforcement: config.EnforcementPolicyError, Configuration: allow("additionPolicy")},
		{Name: "pattern", Enforcement: config.EnforcementPolicyError, Configuration: allow("removalPolicy")},
		{Name: "nullable", Enforcement: config.EnforcementPolicyError, Configuration: allow("additionPolicy")},
	}}, registry)
}

// rules compares the CEL rules of one place. A rule that goes away refuses nothing; whether
// another text refuses more can't be known.
type rules struct{ enforcement config.EnforcementPolicy }

const (
	rulesName = "rules"
	// transition marks a rule that compares with the earlier value, which is never ratcheted.
	transition = "a rule that speaks of oldSelf"
)

func registerRules(registry validations.Registry) {
	registry.Register(rulesName, func(map[string]any) (validations.Validation, error) { return &rules{}, nil })
}

func (*rules) Name() string                                     { return rulesName }
func (v *rules) SetEnforcement(policy config.EnforcementPolicy) { v.enforcement = policy }

// Compare implements validations.Comparator.
func (v *rules) Compare(a, b *apiextensionsv1.JSONSchemaProps) validations.ComparisonResult {
	var errs []error
	for _, rule := range b.XValidations {
		known := slices.ContainsFunc(a.XValidations, func(old apiextensionsv1.ValidationRule) bool { return old.Rule == rule.Rule })
		switch {
		case known:
		case strings.Contains(rule.Rule, "oldSelf"):
			errs = append(errs, fmt.Errorf("%s is new: %s", transition, rule.Rule))
		default:
			errs = append(errs, fmt.Errorf("a rule is new: %s", rule.Rule))
		}
	}
	a.XValidations, b.XValidations = nil, nil
	return validations.HandleErrors(v.Name(), v.enforcement, errs...)
}

// nested takes out the schema of a map's values: it is a place of its own.
type nested struct{}

func registerNested(registry validations.Registry) {
	registry.Register("nested", func(map[string]any) (validations.Validation, error) { return nested{}, nil })
}

func (nested) Name() string                            { return "nested" }
func (nested) SetEnforcement(config.EnforcementPolicy) {}

// Compare implements validations.Comparator.
func (n nested) Compare(a, b *apiextensionsv1.JSONSchemaProps) validations.ComparisonResult {
	if a.AdditionalProperties != nil && b.AdditionalProperties != nil && a.AdditionalProperties.Schema != nil && b.AdditionalProperties.Schema != nil {
		a.AdditionalProperties, b.AdditionalProperties = nil, nil
	}
	return validations.ComparisonResult{Name: n.Name()}
}

// placesOf are the places of a version's schema, as crdify names them. True are those whose value
// Kubernetes can tell to be unchanged by itself whatever else of the object changes: single values,
// not in a list without keys, and not under allOf and its like.
func placesOf(v *apiextensionsv1.CustomResourceDefinitionVersion) map[string]bool {
	places := map[string]bool{}
	if v == nil {
		return places
	}
	root := field.NewPath("^")
	validations.SchemaHas(v.Schema.OpenAPIV3Schema, root, root, nil,
		func(s *apiextensionsv1.JSONSchemaProps, path, place *field.Path, above []*apiextensionsv1.JSONSchemaProps) bool {
			single := s.Type != "object" && s.Type != "array" && s.Type != ""
			keyed := !slices.ContainsFunc(above, func(s *apiextensionsv1.JSONSchemaProps) bool {
				return s.Type == "array" && (s.XListType == nil || *s.XListType != "map")
			})
			combined := slices.ContainsFunc([]string{".allOf[", ".anyOf[", ".oneOf[", ".not"}, func(part string) bool {
				return strings.Contains(path.String(), part)
			})
			known, twice := places[place.String()]
			places[place.String()] = single && keyed && !combined && (known || !twice)
			return false
		})
	return places
}

// ratcheted are the validations, by the name that crdify has for them, that are not applied again
// to an unchanged value.
var ratcheted = []string{"maximum", "minimum", "maxLength", "minLength", "pattern", "enum", rulesName}

// judgeChanges judges what changed in one place. A place that is gone was judged as a whole.
func judgeChanges(r *check.Result, version string, changed validations.PropertyComparisonResult, places map[string]bool, ratcheting bool) {
	alone, there := places[changed.Property]
	if !there && !strings.Contains(version, "->") {
		return
	}
	place := version + " " + strings.TrimPrefix(strings.Replace(changed.Property, "^", "the object", 1), "the object.")
	for _, result := range changed.ComparisonResults {
		for _, text := range result.Errors {
			text = strings.Join(strings.Fields(text), " ") // what is unhandled comes in many lines
			if ratcheting && alone && slices.Contains(ratcheted, result.Name) && !strings.HasPrefix(text, transition) {
				r.See("%s is tightened, which an unchanged value does not notice: %s", place, text)
				continue
			}
			r.Fail("%s: %s", place, text)
		}
	}
}
