package compat

import (
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// compatibilityFile reads the whole file. What others refer to is read before them, whatever
// the order in the file.
func (r *reader) compatibilityFile(n *yaml.Node) *File {
	values, ok := r.mapping("", n, keys{
		required: []string{"apiVersion", "operatorReleases", "runtimeReleases", "kubernetes", "upgrades"},
		optional: []string{"operator", "runtimeCharts", "combinations"},
	})
	if !ok {
		return nil
	}
	if version, ok := r.text("apiVersion", values["apiVersion"]); ok && version != APIVersion {
		r.problem(values["apiVersion"], "write "+APIVersion, "apiVersion is %q, which this tool does not know", version)
	}
	file := &File{Operator: DefaultOperator()}
	if node := values["operator"]; node != nil {
		file.Operator = r.operator("operator", node)
	}
	operators := r.names("operator release")
	r.list("operatorReleases", values["operatorReleases"], true, func(path string, n *yaml.Node) {
		file.OperatorReleases = append(file.OperatorReleases, r.operatorRelease(path, n, operators))
	})
	runtimes := r.names("runtime release")
	r.list("runtimeReleases", values["runtimeReleases"], true, func(path string, n *yaml.Node) {
		file.RuntimeReleases = append(file.RuntimeReleases, r.runtimeRelease(path, n, runtimes))
	})
	runtimes.resolve()
	charts := r.names("runtime chart")
	r.list("runtimeCharts", values["runtimeCharts"], false, func(path string, n *yaml.Node) {
		file.RuntimeCharts = append(file.RuntimeCharts, r.runtimeChart(path, n, charts, runtimes))
	})
	if node := values["kubernetes"]; node != nil {
		file.Kubernetes = r.kubernetes("kubernetes", node)
	}
	combinations := r.names("combination")
	r.list("combinations", values["combinations"], false, func(path string, n *yaml.Node) {
		file.Combinations = append(file.Combinations, r.combination(path, n, combinations, runtimes, charts))
	})
	rows := r.names("row")
	r.list("upgrades", values["upgrades"], true, func(path string, n *yaml.Node) {
		file.Upgrades = append(file.Upgrades, r.upgrade(path, n, rows, operators, runtimes, file.Kubernetes.Floor))
	})
	return file
}

func (r *reader) operatorRelease(path string, n *yaml.Node, releases *names) OperatorRelease {
	values, ok := r.mapping(path, n, keys{required: []string{"version", "commit"}, optional: []string{"knownDefects"}})
	if !ok {
		return OperatorRelease{}
	}
	release := OperatorRelease{
		Position: position(n),
		Version:  r.version(path+".version", values["version"]),
		Commit:   r.commit(path+".commit", values["commit"]),
	}
	if node := values["commit"]; node != nil {
		release.CommitPosition = position(node)
	}
	releases.add(release.Version, values["version"])
	defects := r.names("known defect")
	r.list(path+".knownDefects", values["knownDefects"], false, func(path string, n *yaml.Node) {
		release.KnownDefects = append(release.KnownDefects, r.knownDefect(path, n, release.Version, defects))
	})
	return release
}

func (r *reader) knownDefect(path string, n *yaml.Node, version string, defects *names) KnownDefect {
	values, ok := r.mapping(path, n, keys{required: []string{"id", "summary", "fixedIn"}})
	if !ok {
		return KnownDefect{}
	}
	defect := KnownDefect{
		Position: position(n),
		ID:       r.identifier(path+".id", values["id"]),
		Summary:  r.sentence(path+".summary", values["summary"]),
		FixedIn:  r.version(path+".fixedIn", values["fixedIn"]),
	}
	defects.add(defect.ID, values["id"])
	if order, ok := compareVersions(defect.FixedIn, version); ok && order <= 0 {
		r.problem(values["fixedIn"], "name a later release", "%s.fixedIn is %q, which is not later than the release %q that has the defect", path, defect.FixedIn, version)
	}
	return defect
}

func (r *reader) runtimeRelease(path string, n *yaml.Node, releases *names) RuntimeRelease {
	values, ok := r.mapping(path, n, keys{
		required: []string{"version", "imageTag", "contractImpact", "decision"},
		optional: []string{"digest", "supersededBy", "reason"},
	})
	if !ok {
		return RuntimeRelease{}
	}
	release := RuntimeRelease{
		Position:       position(n),
		Version:        r.runtimeVersion(path+".version", values["version"]),
		ContractImpact: choice(r, path+".contractImpact", values["contractImpact"], ImpactContractChange, ImpactRepresentative, ImpactRoutine),
		Decision:       choice(r, path+".decision", values["decision"], DecisionValidated, DecisionNotSelected, DecisionSuperseded),
	}
	release.ImageTag = r.imageTag(path+".imageTag", values["imageTag"], release.Version)
	releases.add(release.Version, values["version"])
	if node := values["digest"]; node != nil {
		release.Digest = r.digest(path+".digest", node)
	}
	if node := values["reason"]; node != nil {
		release.Reason = r.sentence(path+".reason", node)
	}
	by := values["supersededBy"]
	switch {
	case release.Decision == DecisionSuperseded && by == nil:
		r.problem(n, "add supersededBy", "%s is superseded, but by nothing", path)
	case release.Decision != DecisionSuperseded && release.Decision != "" && by != nil:
		r.problem(by, "remove it or decide superseded", "%s.supersededBy is given, but the decision is %s", path, release.Decision)
	case by != nil:
		release.SupersededBy = r.runtimeVersion(path+".supersededBy", by)
		// The other release may stand further down.
		releases.referLater(path+".supersededBy", by, release.SupersededBy)
		if order, ok := compareVersions(release.SupersededBy, release.Version); ok && order <= 0 {
			r.problem(by, "name the later release", "%s.supersededBy is %q, which is not later than %q", path, release.SupersededBy, release.Version)
		}
	}
	return release
}

func (r *reader) runtimeChart(path string, n *yaml.Node, charts, runtimes *names) RuntimeChart {
	values, ok := r.mapping(path, n, keys{required: []string{"version"}, optional: []string{"defaultRuntime"}})
	if !ok {
		return RuntimeChart{}
	}
	chart := RuntimeChart{Position: position(n), Version: r.version(path+".version", values["version"])}
	charts.add(chart.Version, values["version"])
	if node := values["defaultRuntime"]; node != nil {
		chart.DefaultRuntime = runtimes.refer(path+".defaultRuntime", node)
	}
	return chart
}

func (r *reader) kubernetes(path string, n *yaml.Node) Kubernetes {
	values, ok := r.mapping(path, n, keys{required: []string{"floor", "versions"}})
	if !ok {
		return Kubernetes{}
	}
	kubernetes := Kubernetes{Floor: r.kubernetesFloor(path+".floor", values["floor"]), Providers: map[string][]string{}}
	node := values["versions"]
	if node == nil {
		return kubernetes
	}
	// The cluster of the provider "existing" has the version that it has.
	providers := []string{"embedded", "kind"}
	path += ".versions"
	lists, ok := r.mapping(path, node, keys{required: []string{"default"}, optional: providers})
	if !ok {
		return kubernetes
	}
	kubernetes.Default = r.kubernetesVersions(path+".default", lists["default"], kubernetes.Floor)
	for _, provider := range providers {
		if lists[provider] != nil {
			kubernetes.Providers[provider] = r.kubernetesVersions(path+"."+provider, lists[provider], kubernetes.Floor)
		}
	}
	return kubernetes
}

func (r *reader) kubernetesVersions(path string, n *yaml.Node, floor string) []string {
	var versions []string
	known := r.names("Kubernetes version")
	r.list(path, n, true, func(path string, n *yaml.Node) {
		version := r.kubernetesVersion(path, n, floor)
		known.add(version, n)
		versions = append(versions, version)
	})
	return versions
}

func (r *reader) combination(path string, n *yaml.Node, combinations, runtimes, charts *names) Combination {
	values, ok := r.mapping(path, n, keys{required: []string{"operator", "runtime", "runtimeChart", "kubernetes", "status"}})
	if !ok {
		return Combination{}
	}
	combination := Combination{
		Position:     position(n),
		Operator:     r.version(path+".operator", values["operator"]),
		Runtime:      runtimes.refer(path+".runtime", values["runtime"]),
		RuntimeChart: charts.refer(path+".runtimeChart", values["runtimeChart"]),
		Kubernetes:   r.kubernetesRange(path+".kubernetes", values["kubernetes"]),
		Status:       choice(r, path+".status", values["status"], StatusTested, StatusHistorical),
	}
	if combination.Operator != "" && combination.Runtime != "" && combination.RuntimeChart != "" {
		combinations.add("operator "+combination.Operator+", runtime "+combination.Runtime+", runtime chart "+combination.RuntimeChart, n)
	}
	return combination
}

func (r *reader) upgrade(path string, n *yaml.Node, rows, operators, runtimes *names, floor string) Upgrade {
	values, ok := r.mapping(path, n, keys{
		required: []string{"from", "runtime", "rollback", "crds"},
		optional: []string{"id", "through", "rollbackReason", "values", "kubernetes"},
	})
	if !ok {
		return Upgrade{}
	}
	row := Upgrade{
		Position: position(n),
		From:     operators.refer(path+".from", values["from"]),
		Rollback: choice(r, path+".rollback", values["rollback"], RollbackChart, RollbackRuntimeImage, RollbackNone),
		CRDs:     choice(r, path+".crds", values["crds"], CRDApply, CRDHook, CRDNone),
		Values:   ValuesDefault,
	}
	if node := values["through"]; node != nil {
		row.Through = r.through(path+".through", node, row.From, operators)
	}
	if node := values["values"]; node != nil {
		row.Values = choice(r, path+".values", node, ValuesDefault, ValuesReuse, ValuesResetThenReuse)
	}
	if node := values["runtime"]; node != nil {
		row.Baseline, row.Target = r.transition(path+".runtime", node, runtimes)
	}
	r.rollbackReason(path, n, values["rollbackReason"], &row)
	if node := values["kubernetes"]; node != nil {
		row.Kubernetes = r.kubernetesVersions(path+".kubernetes", node, floor)
	}
	r.rowID(path, n, values["id"], &row, rows)
	return row
}

// through reads the releases on the way: listed ones, each later than the one before.
func (r *reader) through(path string, n *yaml.Node, from string, operators *names) []string {
	var versions []string
	previous := from
	r.list(path, n, true, func(path string, n *yaml.Node) {
		version := operators.refer(path, n)
		if order, ok := compareVersions(version, previous); ok && order <= 0 {
			r.problem(n, "name the releases from the oldest to the newest", "%s is %q, which is not later than %q before it", path, version, previous)
		}
		previous = version
		versions = append(versions, version)
	})
	return versions
}

// transition reads the runtime releases of a row.
func (r *reader) transition(path string, n *yaml.Node, runtimes *names) (baseline, target string) {
	values, ok := r.mapping(path, n, keys{required: []string{"baseline", "target"}})
	if !ok {
		return "", ""
	}
	baseline = runtimes.refer(path+".baseline", values["baseline"])
	target = runtimes.refer(path+".target", values["target"])
	if baseline != "" && baseline == target {
		r.problem(values["target"], "name another release", "%s.target is the baseline %q: nothing would be rolled", path, target)
	}
	return baseline, target
}

func (r *reader) rollbackReason(path string, n, node *yaml.Node, row *Upgrade) {
	switch {
	case node != nil && row.Rollback == RollbackChart:
		r.problem(node, "remove it", "%s.rollbackReason is given, but the chart is rolled back", path)
	case node != nil:
		row.RollbackReason = r.sentence(path+".rollbackReason", node)
	case row.Rollback != RollbackChart && row.Rollback != "":
		r.problem(n, "add rollbackReason", "%s does not say why its rollback is %s and not %s", path, row.Rollback, RollbackChart)
	}
}

// rowID reads the id of a row or derives it from what the row does.
func (r *reader) rowID(path string, n, node *yaml.Node, row *Upgrade, rows *names) {
	if node != nil {
		row.ID = r.identifier(path+".id", node)
		rows.add(row.ID, node)
		return
	}
	row.ID = strings.Join(append([]string{row.From}, row.Through...), "-")
	if !slices.Contains([]ValuesMode{"", ValuesDefault}, row.Values) {
		row.ID += "-" + string(row.Values)
	}
	if row.CRDs == CRDNone {
		row.ID += "-crds-none"
	}
	if row.From != "" {
		rows.add(row.ID, n)
	}
}
