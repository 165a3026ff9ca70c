package compat

// APIVersion is the format of the file that this package reads.
const APIVersion = "compatibility.trussium.io/v1"

// File is the content of a compatibility file.
type File struct {
	// Path is the file as it was given to Load; positions refer to it.
	Path string
	// Operator is the operator that the file is about.
	Operator Operator
	// OperatorReleases are the releases of the operator, which upgrades start from.
	OperatorReleases []OperatorRelease
	// RuntimeReleases are the releases of the runtime that were looked at.
	RuntimeReleases []RuntimeRelease
	// RuntimeCharts are the releases of the runtime's own Helm chart.
	RuntimeCharts []RuntimeChart
	// Kubernetes says which Kubernetes versions are declared and tested.
	Kubernetes Kubernetes
	// Combinations are the claims of the published compatibility table.
	Combinations []Combination
	// Upgrades are the rows of the matrix.
	Upgrades []Upgrade
}

// Position is a place in the compatibility file. Lines and columns count from 1.
type Position struct {
	Line   int
	Column int
}

// OperatorRelease is a released version of the operator and its chart.
type OperatorRelease struct {
	Position
	// Version is the chart version and the tag of the operator image: X.Y.Z, without v.
	Version string
	// Commit is the full hash of the commit of this repository that the release was cut from.
	Commit string
	// CommitPosition is where the file names the commit.
	CommitPosition Position
	// KnownDefects are faults of the release that make it unable to do its work. An upgrade
	// from a release that has one starts from a broken baseline.
	KnownDefects []KnownDefect
}

// KnownDefect is a fault of a release that users have to know.
type KnownDefect struct {
	Position
	// ID names the defect in reports.
	ID string
	// Summary is one sentence for readers.
	Summary string
	// FixedIn is the operator version that no longer has the defect.
	FixedIn string
}

// Impact says what a runtime release means for the contract between operator and runtime.
type Impact string

// The impacts of a runtime release.
const (
	// ImpactContractChange is a release that changes the runtime contract.
	ImpactContractChange Impact = "contract-change"
	// ImpactRepresentative is a release that stands for the contract as it is.
	ImpactRepresentative Impact = "representative"
	// ImpactRoutine is a release that is of no interest to the contract.
	ImpactRoutine Impact = "routine"
)

// Decision is what was decided about a runtime release after review.
type Decision string

// The decisions about a runtime release.
const (
	// DecisionValidated is a release that belongs to the validation set.
	DecisionValidated Decision = "validated"
	// DecisionNotSelected is a release that is not validated; it is no claim that the release does not work.
	DecisionNotSelected Decision = "not-selected"
	// DecisionSuperseded is a release in whose place a later one was selected.
	DecisionSuperseded Decision = "superseded"
)

// RuntimeRelease is a release of the runtime.
type RuntimeRelease struct {
	Position
	// Version is the name of the release: vX.Y.Z.
	Version string
	// ImageTag is the tag of its image: X.Y.Z, never with v.
	ImageTag string
	// Digest is the image that the decision is about; empty if it was not recorded.
	Digest string
	// ContractImpact says what the release means for the runtime contract.
	ContractImpact Impact
	// Decision is the outcome of the review.
	Decision Decision
	// SupersededBy is the release that was selected instead; empty unless Decision is superseded.
	SupersededBy string
	// Reason says why it was decided so. It may be empty.
	Reason string
}

// RuntimeChart is a release of the runtime's own Helm chart.
type RuntimeChart struct {
	Position
	// Version is the chart version: X.Y.Z.
	Version string
	// DefaultRuntime is the runtime release that the chart installs by default; empty if not recorded.
	DefaultRuntime string
}

// Kubernetes holds the declared floor and the versions to test.
type Kubernetes struct {
	// Floor is the lowest minor version that the operator is declared to work on: X.Y.
	Floor string
	// Default are the versions to test on a provider that has no list of its own: exact X.Y.Z.
	Default []string
	// Providers are the versions to test per provider name.
	Providers map[string][]string
}

// Versions are the Kubernetes versions to test on a provider, as the file orders them.
func (k Kubernetes) Versions(provider string) []string {
	if versions, ok := k.Providers[provider]; ok {
		return versions
	}
	return k.Default
}

// Status says what a combination claims.
type Status string

// The statuses of a combination.
const (
	// StatusTested claims that the current matrix proves the combination. Reports show it as
	// tested only with evidence.
	StatusTested Status = "tested"
	// StatusHistorical is a combination that an earlier release tested; the matrix no longer runs it.
	StatusHistorical Status = "historical"
)

// Combination is one claim of the published compatibility table.
type Combination struct {
	Position
	// Operator is the operator version. It may be one that OperatorReleases does not list.
	Operator string
	// Runtime is a listed runtime release.
	Runtime string
	// RuntimeChart is a listed runtime chart.
	RuntimeChart string
	// Kubernetes is the declared range, as in ">=1.25".
	Kubernetes string
	// Status is the claim.
	Status Status
}

// Rollback says what is rolled back at the end of a row.
type Rollback string

// The rollbacks of a row.
const (
	// RollbackChart rolls the Helm release of the operator back to the source release.
	RollbackChart Rollback = "chart"
	// RollbackRuntimeImage rolls only the runtime image back; the operator stays upgraded.
	RollbackRuntimeImage Rollback = "runtime-image"
	// RollbackNone rolls nothing back.
	RollbackNone Rollback = "none"
)

// CRDStrategy says how the CRD gets from the source release to the target.
type CRDStrategy string

// The CRD strategies of a row.
const (
	// CRDApply applies the target chart's CRD before the chart is upgraded.
	CRDApply CRDStrategy = "apply"
	// CRDHook leaves it to the pre-upgrade hook of the target chart.
	CRDHook CRDStrategy = "hook"
	// CRDNone leaves the old CRD in place, as Helm does.
	CRDNone CRDStrategy = "none"
)

// ValuesMode says what happens to the values of the installed Helm release.
type ValuesMode string

// The values modes of a row.
const (
	// ValuesDefault upgrades with the values that are given to the upgrade, as Helm does by itself.
	ValuesDefault ValuesMode = "default"
	// ValuesReuse is helm upgrade --reuse-values.
	ValuesReuse ValuesMode = "reuse"
	// ValuesResetThenReuse is helm upgrade --reset-then-reuse-values.
	ValuesResetThenReuse ValuesMode = "reset-then-reuse"
)

// Upgrade is a row of the matrix: the upgrade of one operator release to the candidate.
type Upgrade struct {
	Position
	// ID names the row. Default: the source version and those on the way, followed by the values
	// mode and the CRD strategy where these are not the usual ones.
	ID string
	// From is a listed operator release.
	From string
	// Through are listed operator releases that are upgraded to on the way, the oldest first;
	// nil for an upgrade straight to the candidate.
	Through []string
	// Baseline and Target are the listed runtime releases that the runtime image is rolled
	// from and to.
	Baseline string
	Target   string
	// Rollback says what is rolled back at the end.
	Rollback Rollback
	// RollbackReason says why it is not the chart; empty if Rollback is chart.
	RollbackReason string
	// CRDs is the way the CRD is upgraded.
	CRDs CRDStrategy
	// Values is the values mode of the Helm upgrade.
	Values ValuesMode
	// Kubernetes are exact versions that this row is tested on instead of the file's. It may be empty.
	Kubernetes []string
}

// OperatorRelease returns the listed operator release of that version.
func (f *File) OperatorRelease(version string) (OperatorRelease, bool) {
	for _, release := range f.OperatorReleases {
		if release.Version == version {
			return release, true
		}
	}
	return OperatorRelease{}, false
}

// RuntimeRelease returns the listed runtime release of that version (vX.Y.Z).
func (f *File) RuntimeRelease(version string) (RuntimeRelease, bool) {
	for _, release := range f.RuntimeReleases {
		if release.Version == version {
			return release, true
		}
	}
	return RuntimeRelease{}, false
}
