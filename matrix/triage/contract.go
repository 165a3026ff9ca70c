package triage

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
	"github.com/trussiumhq/trussium-operator/matrix/compat"
	"github.com/trussiumhq/trussium-operator/operator/desired"
)

// Contract is what the operator relies on in a runtime image.
type Contract struct {
	// User is UID:GID, Port as image configurations write it: 9000/tcp.
	User string
	Port string
	// StopSignal is what the kubelet sends unless the image asks for another one.
	StopSignal string
	// Variables are the environment variables that the operator projects.
	Variables []string
	// Routes are the HTTP paths that probes and checks ask.
	Routes []string
}

// capabilityRoute is asked by users and by the matrix, not by the operator itself.
const capabilityRoute = "/v1/capabilities/availability"

// defaultStopSignal is what an image gets that names none.
const defaultStopSignal = "SIGTERM"

// OperatorContract reads the contract off the objects that the operator of this checkout makes.
func OperatorContract() (Contract, error) {
	one := int32(1)
	runtime := &v1alpha1.TrussiumRuntime{Spec: v1alpha1.TrussiumRuntimeSpec{
		Provider: v1alpha1.ProviderSpec{
			Type: "openai", BaseURL: "https://provider.example",
			CredentialsSecretRef: &v1alpha1.SecretKeyReference{Name: "credentials", Key: "key"},
		},
		Runtime: &v1alpha1.RuntimeSettings{ProviderRequestTimeoutSeconds: &one, StreamIdleTimeoutSeconds: &one, ShutdownDrainTimeoutSeconds: &one},
	}}
	deployment, err := desired.Deployment(runtime, nil)
	if err != nil {
		return Contract{}, fmt.Errorf("read the runtime contract off the operator's Deployment: %w", err)
	}
	pod := deployment.Spec.Template.Spec
	container := pod.Containers[0]
	port := container.Ports[0]
	contract := Contract{
		User:       fmt.Sprintf("%d:%d", *pod.SecurityContext.RunAsUser, *pod.SecurityContext.RunAsGroup),
		Port:       fmt.Sprintf("%d/%s", *port.ContainerPort, strings.ToLower(string(*port.Protocol))),
		StopSignal: defaultStopSignal,
		Variables:  slices.Collect(maps.Keys(desired.ConfigMap(runtime).Data)),
		Routes:     []string{*container.LivenessProbe.HTTPGet.Path, *container.ReadinessProbe.HTTPGet.Path, capabilityRoute},
	}
	for _, variable := range container.Env {
		contract.Variables = append(contract.Variables, *variable.Name)
	}
	slices.Sort(contract.Variables)
	return contract, nil
}

// finding is one part of the contract as two images show it.
type finding struct {
	part string
	// expected is empty if the contract says nothing about the part.
	expected      string
	before, after string
	// changed says that after is neither what was before nor what is expected.
	changed bool
}

// mention is a line of release notes that speaks of the contract.
type mention struct {
	version string
	line    string
	terms   []string
	// change says that the line speaks of a change, not just of the thing.
	change bool
}

// difference is what is known about a release against the last validated one.
type difference struct {
	// baseline is the last validated release; empty if there is none.
	baseline     string
	findings     []finding
	mentions     []mention
	undetermined []string
	// remarks are odd things that are no part of the contract.
	remarks []string
}

// side is a release with its image.
type side struct {
	version string
	commit  string
	image   Image
}

// compare finds what differs between the images, and what the notes of the releases since say.
// before.version may be empty.
func (c Contract) compare(before, after side, notes []Release) difference {
	d := difference{baseline: before.version}
	if after.image.State == ImagePresent {
		d.findings = c.images(before.image, after.image)
		d.remarks = remarks(after)
		if before.version != "" && before.image.State != ImagePresent {
			d.undetermined = append(d.undetermined, fmt.Sprintf("What changed in the image since %s: its image could not be looked at%s.", before.version, because(before.image)))
		}
	} else {
		d.undetermined = append(d.undetermined, "User, port, stop signal, entrypoint and platforms: there is no image to look at"+because(after.image)+".")
	}
	if before.version == "" {
		d.undetermined = append(d.undetermined, "What changed: no earlier release is validated, so there is nothing to compare with.")
	}
	for _, release := range notes {
		d.mentions = append(d.mentions, c.mentions(release)...)
	}
	d.undetermined = append(d.undetermined,
		fmt.Sprintf("Whether the runtime still reads the %d environment variables that the operator projects, and still answers on %s: an image does not show it. %s.",
			len(c.Variables), strings.Join(c.Routes, ", "), d.notesSummary()),
		"Whether it works with a read-only root filesystem and drains in time: only a run shows that.")
	return d
}

func because(image Image) string {
	if image.Problem == "" {
		return ""
	}
	return " (" + code(image.Problem, maxValue) + ")"
}

func (d difference) notesSummary() string {
	if len(d.mentions) == 0 {
		return "The release notes mention none of it"
	}
	return "The release notes mention parts of the contract, see above"
}

func (c Contract) images(before, after Image) []finding {
	compare := func(part, expected string, value func(Config) string) finding {
		f := finding{part: part, expected: expected, before: across(before, value), after: across(after, value)}
		// What a validated image has works, whatever was expected.
		known := before.State == ImagePresent
		f.changed = f.after != expected && (known || expected != "") && !(known && f.after == f.before)
		return f
	}
	findings := []finding{
		compare("user", c.User, func(config Config) string { return config.User }),
		compare("port", c.Port, func(config Config) string { return strings.Join(config.Ports, " ") }),
		compare("stop signal", c.StopSignal, func(config Config) string { return cmp.Or(config.StopSignal, defaultStopSignal) }),
		compare("entrypoint", "", func(config Config) string { return words(config.Entrypoint) }),
		compare("command", "", func(config Config) string { return words(config.Cmd) }),
		compare("health check of the image", "", func(config Config) string { return words(config.Healthcheck) }),
	}
	for _, name := range c.Variables {
		f := compare("default of "+name, "", func(config Config) string { return config.Env[name] })
		if f.before != "" || f.after != "" {
			findings = append(findings, f)
		}
	}
	for _, name := range contractLabels(before, after) {
		findings = append(findings, compare("label "+name, "", func(config Config) string { return config.Labels[name] }))
	}
	platforms := finding{part: "platforms", before: platformNames(before), after: platformNames(after)}
	for _, platform := range before.Platforms {
		if !slices.ContainsFunc(after.Platforms, func(p Platform) bool { return p.Name == platform.Name }) {
			platforms.changed = true // one less; more of them harm nobody
		}
	}
	return append(findings, platforms)
}

// words writes an argument list so that its borders show.
func words(arguments []string) string {
	quoted := make([]string, len(arguments))
	for i, argument := range arguments {
		quoted[i] = argument
		if argument == "" || strings.ContainsAny(argument, " \t\n\"") {
			quoted[i] = fmt.Sprintf("%q", argument)
		}
	}
	return strings.Join(quoted, " ")
}

// across is a value that all platforms share, or the values by platform.
func across(image Image, value func(Config) string) string {
	var texts []string
	for _, platform := range image.Platforms {
		texts = append(texts, value(platform.Config))
	}
	if len(slices.Compact(slices.Clone(texts))) == 1 {
		return texts[0]
	}
	for i, platform := range image.Platforms {
		texts[i] = platform.Name + ": " + texts[i]
	}
	return strings.Join(texts, ", ")
}

func platformNames(image Image) string {
	var names []string
	for _, platform := range image.Platforms {
		names = append(names, platform.Name)
	}
	return strings.Join(names, " ")
}

const (
	contractLabelPrefix = "io.trussium."
	simulatedLabel      = "io.trussium.simulated"
	revisionLabel       = "org.opencontainers.image.revision"
	versionLabel        = "org.opencontainers.image.version"
	// maxLabels bounds how many labels of an image are compared.
	maxLabels = 20
)

// contractLabels are the labels in which the runtime speaks of itself.
func contractLabels(images ...Image) []string {
	var names []string
	for _, image := range images {
		for _, platform := range image.Platforms {
			for name := range platform.Config.Labels {
				if strings.HasPrefix(name, contractLabelPrefix) && name != simulatedLabel {
					names = append(names, name)
				}
			}
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return names[:min(len(names), maxLabels)]
}

// remarks compares what the image says of itself with the release that it is for.
func remarks(s side) []string {
	var all []string
	label := func(name string) string {
		return across(s.image, func(config Config) string { return config.Labels[name] })
	}
	if revision := label(revisionLabel); revision != "" && s.commit != "" && revision != s.commit {
		all = append(all, fmt.Sprintf("The image says that it was built from commit %s, which is not the commit of the tag.", code(revision, maxValue)))
	}
	if version := label(versionLabel); version != "" && imageTag(version) != imageTag(s.version) {
		all = append(all, fmt.Sprintf("The image says that it is version %s.", code(version, maxValue)))
	}
	if label(simulatedLabel) != "" {
		all = append(all, "The image says that it is a simulator, not the runtime.")
	}
	return all
}

// Bounds of what is read in release notes.
const (
	maxNotes    = 256 << 10
	maxMentions = 20
)

var (
	changeWords   = regexp.MustCompile(`(?i)\b(breaking|remov\w*|renam\w*|replac\w*|deprecat\w*|no longer|drop(s|ped)?|chang\w*|requir\w*|defaults?|moved?|moves|instead)\b`)
	breakingWord  = regexp.MustCompile(`(?i)\bbreaking\b`)
	signalWord    = regexp.MustCompile(`(?i)\b(SIG(TERM|INT|QUIT|HUP|KILL|USR1|USR2)|stop ?signal)\b`)
	entryWord     = regexp.MustCompile(`(?i)\bentry ?point\b`)
	rootWord      = regexp.MustCompile(`(?i)\b(non-?root|read-?only root|uid|gid)\b`)
	variableLimit = `(^|[^A-Za-z0-9_])%s($|[^A-Za-z0-9_])`
	routeLimit    = `%s($|[^A-Za-z0-9_/-])`
)

// mentions are the lines of the notes that speak of the contract.
func (c Contract) mentions(release Release) []mention {
	type term struct {
		name    string
		pattern *regexp.Regexp
	}
	uid, _, _ := strings.Cut(c.User, ":")
	port, _, _ := strings.Cut(c.Port, "/")
	terms := []term{
		{"breaking change", breakingWord}, {"stop signal", signalWord}, {"entrypoint", entryWord}, {"user", rootWord},
		{"user", regexp.MustCompile(`\b` + uid + `\b`)}, {"port", regexp.MustCompile(`\b` + port + `\b`)},
	}
	for _, name := range c.Variables {
		terms = append(terms, term{name, regexp.MustCompile(fmt.Sprintf(variableLimit, name))})
	}
	for _, route := range c.Routes {
		terms = append(terms, term{route, regexp.MustCompile(fmt.Sprintf(routeLimit, regexp.QuoteMeta(route)))})
	}
	var all []mention
	for line := range strings.Lines(release.Notes[:min(len(release.Notes), maxNotes)]) {
		m := mention{version: release.Version, line: line, change: changeWords.MatchString(line)}
		for _, t := range terms {
			if t.pattern.MatchString(line) && !slices.Contains(m.terms, t.name) {
				m.terms = append(m.terms, t.name)
			}
		}
		if len(m.terms) > 0 {
			all = append(all, m)
		}
		if len(all) == maxMentions {
			break
		}
	}
	return all
}

// classify suggests what the release means for the contract, and says why. newest is the newest
// release that there is.
func (d difference) classify(version, newest string) (compat.Impact, string) {
	var reasons, parts []string
	for _, f := range d.findings {
		if f.changed {
			parts = append(parts, cell(f.part))
		}
	}
	if len(parts) > 0 {
		reasons = append(reasons, "the image differs in "+strings.Join(parts, ", "))
	}
	var terms []string
	for _, m := range d.mentions {
		if m.change {
			terms = append(terms, m.terms...)
		}
	}
	if len(terms) > 0 {
		slices.Sort(terms)
		reasons = append(reasons, "the release notes speak of a change of "+strings.Join(slices.Compact(terms), ", "))
	}
	switch {
	case len(reasons) > 0:
		return compat.ImpactContractChange, strings.Join(reasons, "; ")
	case version == newest:
		return compat.ImpactRepresentative, "no change of the contract was found, and no release is newer"
	default:
		return compat.ImpactRoutine, "no change of the contract was found, and " + newest + " is newer"
	}
}
