package compat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/invopop/jsonschema"
)

// SchemaFile is where the repository publishes the JSON Schema, relative to its root.
const SchemaFile = "docs/compatibility.schema.json"

// JSONSchema is a JSON Schema (2020-12) of the compatibility file, for editors. It never refuses a file that Load
// accepts. Load refuses more: names that the file does not list, names that it lists twice, contradictions between rows.
func JSONSchema() ([]byte, error) {
	reflector := &jsonschema.Reflector{Anonymous: true, ExpandedStruct: true, DoNotReference: true, Mapper: scalarSchema}
	schema := reflector.Reflect(fileSchema{})
	schema.Title = "compatibility.yaml, " + APIVersion
	schema.Description = "Which operator and runtime releases exist, which combinations are claimed to work, and which upgrades the matrix proves."
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(schema); err != nil {
		return nil, fmt.Errorf("encode the JSON Schema of the compatibility file: %w", err)
	}
	return out.Bytes(), nil
}

// The types below have the shape of the file. A field without omitempty is required.

type fileSchema struct {
	APIVersion       apiVersion              `json:"apiVersion" jsonschema_description:"The format of this file."`
	Operator         *operatorSchema         `json:"operator,omitempty" jsonschema_description:"The operator that this file is about. Default: the Trussium operator."`
	OperatorReleases []operatorReleaseSchema `json:"operatorReleases" jsonschema:"minItems=1" jsonschema_description:"The releases of the operator that upgrades start from."`
	RuntimeReleases  []runtimeReleaseSchema  `json:"runtimeReleases" jsonschema:"minItems=1" jsonschema_description:"The releases of the runtime that were looked at."`
	RuntimeCharts    []runtimeChartSchema    `json:"runtimeCharts,omitempty" jsonschema_description:"The releases of the runtime's own Helm chart."`
	Kubernetes       kubernetesSchema        `json:"kubernetes" jsonschema_description:"The Kubernetes versions that are declared and tested."`
	Combinations     []combinationSchema     `json:"combinations,omitempty" jsonschema_description:"The claims of the published compatibility table."`
	Upgrades         []upgradeSchema         `json:"upgrades" jsonschema:"minItems=1" jsonschema_description:"The rows of the matrix: each upgrades one operator release to the checkout."`
}

type operatorReleaseSchema struct {
	Version      version             `json:"version" jsonschema_description:"Chart version and tag of the operator image, without v."`
	Commit       commitHash          `json:"commit" jsonschema_description:"Full hash of the commit that the release was cut from; it must be an ancestor of HEAD."`
	KnownDefects []knownDefectSchema `json:"knownDefects,omitempty" jsonschema_description:"Defects that make the release unable to do its work."`
}

type knownDefectSchema struct {
	ID      identifier `json:"id" jsonschema_description:"Name of the defect in reports."`
	Summary sentence   `json:"summary" jsonschema_description:"What is wrong, in one sentence."`
	FixedIn version    `json:"fixedIn" jsonschema_description:"The operator version that no longer has the defect."`
}

type runtimeReleaseSchema struct {
	Version        runtimeVersion `json:"version" jsonschema_description:"Name of the release, with v."`
	ImageTag       version        `json:"imageTag" jsonschema_description:"Tag of its image: the same version without v."`
	Digest         imageDigest    `json:"digest,omitempty" jsonschema_description:"Digest of the image that the decision is about."`
	ContractImpact Impact         `json:"contractImpact" jsonschema_description:"contract-change: changes the contract between operator and runtime; representative: stands for the contract as it is; routine: neither."`
	Decision       Decision       `json:"decision" jsonschema_description:"validated: in the validation set; not-selected: not validated, which says nothing about whether it works; superseded: a later release was selected."`
	SupersededBy   runtimeVersion `json:"supersededBy,omitempty" jsonschema_description:"The later release that was selected instead."`
	Reason         sentence       `json:"reason,omitempty" jsonschema_description:"Why it was decided so, in one line."`
}

// JSONSchemaExtend ties supersededBy to the decision.
func (runtimeReleaseSchema) JSONSchemaExtend(schema *jsonschema.Schema) {
	requireOnlyIf(schema, "supersededBy", "decision", string(DecisionSuperseded), true)
}

type runtimeChartSchema struct {
	Version        version        `json:"version" jsonschema_description:"Chart version, without v."`
	DefaultRuntime runtimeVersion `json:"defaultRuntime,omitempty" jsonschema_description:"The runtime release that the chart installs by default."`
}

type kubernetesSchema struct {
	Floor    kubernetesMinor          `json:"floor" jsonschema_description:"Lowest minor version that the operator is declared to work on."`
	Versions kubernetesVersionsSchema `json:"versions" jsonschema_description:"Exact versions to test."`
}

type kubernetesVersionsSchema struct {
	Default  []kubernetesVersion `json:"default" jsonschema:"minItems=1,uniqueItems=true" jsonschema_description:"Versions to test on a provider that has no list of its own."`
	Embedded []kubernetesVersion `json:"embedded,omitempty" jsonschema:"minItems=1,uniqueItems=true" jsonschema_description:"Versions to test on the embedded provider."`
	Kind     []kubernetesVersion `json:"kind,omitempty" jsonschema:"minItems=1,uniqueItems=true" jsonschema_description:"Versions to test on the kind provider."`
}

type combinationSchema struct {
	Operator     version        `json:"operator" jsonschema_description:"Operator version; it need not be listed."`
	Runtime      runtimeVersion `json:"runtime" jsonschema_description:"Listed runtime release."`
	RuntimeChart version        `json:"runtimeChart" jsonschema_description:"Listed runtime chart."`
	Kubernetes   anyText        `json:"kubernetes" jsonschema_description:"Declared range of Kubernetes versions." jsonschema:"example=>=1.25"`
	Status       Status         `json:"status" jsonschema_description:"tested: the matrix proves it, and tables say so only with evidence; historical: an earlier release tested it, and the matrix no longer runs it."`
}

type upgradeSchema struct {
	ID             identifier          `json:"id,omitempty" jsonschema_description:"Name of the row. Default: the source version, followed by the values mode and the CRD strategy where these are unusual."`
	From           version             `json:"from" jsonschema_description:"Listed operator release that the row starts from."`
	Through        []version           `json:"through,omitempty" jsonschema:"minItems=1,uniqueItems=true" jsonschema_description:"Listed operator releases that are upgraded to on the way, the oldest first."`
	Runtime        transitionSchema    `json:"runtime" jsonschema_description:"The runtime releases between which the image is rolled."`
	Rollback       Rollback            `json:"rollback" jsonschema_description:"chart: the Helm release is rolled back; runtime-image: only the runtime image is; none."`
	RollbackReason sentence            `json:"rollbackReason,omitempty" jsonschema_description:"Why the chart is not rolled back, in one line."`
	CRDs           CRDStrategy         `json:"crds" jsonschema_description:"apply: the target chart's CRD is applied first; hook: the chart's pre-upgrade hook does it; none: the old CRD stays."`
	Values         ValuesMode          `json:"values,omitempty" jsonschema:"default=default" jsonschema_description:"default: what is given to the upgrade; reuse: --reuse-values; reset-then-reuse: --reset-then-reuse-values."`
	Kubernetes     []kubernetesVersion `json:"kubernetes,omitempty" jsonschema:"minItems=1,uniqueItems=true" jsonschema_description:"Exact versions that this row is tested on instead of those of the file."`
}

// JSONSchemaExtend ties rollbackReason to the rollback.
func (upgradeSchema) JSONSchemaExtend(schema *jsonschema.Schema) {
	requireOnlyIf(schema, "rollbackReason", "rollback", string(RollbackChart), false)
}

type transitionSchema struct {
	Baseline runtimeVersion `json:"baseline" jsonschema_description:"Listed runtime release that the row starts with."`
	Target   runtimeVersion `json:"target" jsonschema_description:"Listed runtime release that the image is rolled to."`
}

// requireOnlyIf makes a field required if the other one has the value, and forbidden otherwise; with is false, the other
// way round.
func requireOnlyIf(schema *jsonschema.Schema, field, other, value string, is bool) {
	condition := &jsonschema.Schema{Properties: jsonschema.NewProperties(), Required: []string{other}}
	condition.Properties.Set(other, &jsonschema.Schema{Const: value})
	required := &jsonschema.Schema{Required: []string{field}}
	forbidden := &jsonschema.Schema{Properties: jsonschema.NewProperties()}
	forbidden.Properties.Set(field, jsonschema.FalseSchema)
	schema.If, schema.Then, schema.Else = condition, required, forbidden
	if !is {
		schema.Then, schema.Else = forbidden, required
	}
}

// The kinds of text that the file holds.
type (
	apiVersion        string
	anyText           string
	sentence          string
	version           string
	runtimeVersion    string
	commitHash        string
	imageDigest       string
	identifier        string
	kubernetesMinor   string
	kubernetesVersion string
)

const (
	numberForm = `(0|[1-9][0-9]*)`
	// coreForm is X.Y.Z.
	coreForm = numberForm + `\.` + numberForm + `\.` + numberForm
	// versionForm is X.Y.Z or X.Y.Z-pre, without build metadata.
	versionForm = coreForm + `(-(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*))*)?`
)

// scalarSchema is the schema of a text; nil for types that are none.
func scalarSchema(t reflect.Type) *jsonschema.Schema {
	pattern := func(form string) *jsonschema.Schema { return &jsonschema.Schema{Type: "string", Pattern: form} }
	enum := func(values ...any) *jsonschema.Schema { return &jsonschema.Schema{Type: "string", Enum: values} }
	switch t {
	case reflect.TypeFor[apiVersion]():
		return &jsonschema.Schema{Type: "string", Const: APIVersion}
	case reflect.TypeFor[anyText]():
		return pattern(`\S`)
	case reflect.TypeFor[sentence]():
		// Blank ends mean nothing; in between is one line.
		return pattern(`^\s*[^\x00-\x20\x7f]([^\x00-\x1f\x7f]*[^\x00-\x20\x7f])?\s*$`)
	case reflect.TypeFor[version]():
		return pattern("^" + versionForm + "$")
	case reflect.TypeFor[runtimeVersion]():
		return pattern("^v" + versionForm + "$")
	case reflect.TypeFor[commitHash]():
		return pattern(fullHash.String())
	case reflect.TypeFor[imageDigest]():
		return pattern(digestForm.String())
	case reflect.TypeFor[identifier]():
		schema := pattern(identifierForm.String())
		schema.MaxLength = new(uint64(maxIdentifier))
		schema.Not = pattern("--")
		return schema
	case reflect.TypeFor[kubernetesMinor]():
		return pattern(minorForm.String())
	case reflect.TypeFor[kubernetesVersion]():
		return pattern("^" + coreForm + "$")
	case reflect.TypeFor[Impact]():
		return enum(ImpactContractChange, ImpactRepresentative, ImpactRoutine)
	case reflect.TypeFor[Decision]():
		return enum(DecisionValidated, DecisionNotSelected, DecisionSuperseded)
	case reflect.TypeFor[Status]():
		return enum(StatusTested, StatusHistorical)
	case reflect.TypeFor[Rollback]():
		return enum(RollbackChart, RollbackRuntimeImage, RollbackNone)
	case reflect.TypeFor[CRDStrategy]():
		return enum(CRDApply, CRDHook, CRDNone)
	case reflect.TypeFor[ValuesMode]():
		return enum(ValuesDefault, ValuesReuse, ValuesResetThenReuse)
	default:
		return operatorScalarSchema(t)
	}
}
