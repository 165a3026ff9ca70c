package compat

import (
	"regexp"
	"strings"

	"github.com/Masterminds/semver/v3"
	"gopkg.in/yaml.v3"
)

// The readers below return the text even when it is wrong, so that what refers to it does not
// look wrong too.

// version reads an operator or chart version: X.Y.Z or X.Y.Z-pre, without v.
func (r *reader) version(path string, n *yaml.Node) string {
	value, ok := r.text(path, n)
	if !ok {
		return ""
	}
	if !validVersion(value) {
		advice := `write it as X.Y.Z, as in "1.0.4"`
		if bare := strings.TrimPrefix(value, "v"); validVersion(bare) {
			advice = "leave the v out: \"" + bare + `"`
		}
		r.problem(n, advice, "%s is %q, which is not a version", path, value)
	}
	return value
}

// runtimeVersion reads the name of a runtime release: vX.Y.Z.
func (r *reader) runtimeVersion(path string, n *yaml.Node) string {
	value, ok := r.text(path, n)
	if !ok {
		return ""
	}
	bare, hasV := strings.CutPrefix(value, "v")
	switch {
	case !validVersion(bare):
		r.problem(n, `write it as vX.Y.Z, as in "v1.30.0"`, "%s is %q, which is not the name of a runtime release", path, value)
	case !hasV:
		r.problem(n, `write "v`+value+`"`, "%s is %q, but the names of runtime releases start with v", path, value)
	}
	return value
}

// imageTag reads the image tag of a runtime release, which is its version without v.
func (r *reader) imageTag(path string, n *yaml.Node, version string) string {
	value, ok := r.text(path, n)
	if !ok {
		return ""
	}
	bare := strings.TrimPrefix(version, "v")
	switch {
	case validVersion(strings.TrimPrefix(value, "v")) && strings.HasPrefix(value, "v"):
		r.problem(n, "leave the v out: \""+value[1:]+`"`, "%s is %q, but image tags of the runtime have no v", path, value)
	case version != "" && validVersion(bare) && value != bare:
		r.problem(n, `write "`+bare+`"`, "%s is %q, which is not the tag of the release %q", path, value, version)
	}
	return value
}

// commit reads the full hash of a commit.
func (r *reader) commit(path string, n *yaml.Node) string {
	value, ok := r.text(path, n)
	if !ok {
		return ""
	}
	if !fullHash.MatchString(value) {
		r.problem(n, "write the 40 hexadecimal digits that `git rev-parse` prints", "%s is %q, which is not the full hash of a commit", path, value)
	}
	return value
}

var fullHash = regexp.MustCompile(`^[0-9a-f]{40}$`)

// digest reads the digest of an image.
func (r *reader) digest(path string, n *yaml.Node) string {
	value, ok := r.text(path, n)
	if !ok {
		return ""
	}
	if !digestForm.MatchString(value) {
		r.problem(n, "write sha256: and 64 hexadecimal digits", "%s is %q, which is not the digest of an image", path, value)
	}
	return value
}

var digestForm = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// identifier reads a name that becomes part of file names and of the command line.
func (r *reader) identifier(path string, n *yaml.Node) string {
	value, ok := r.text(path, n)
	if !ok {
		return ""
	}
	if len(value) > maxIdentifier || !identifierForm.MatchString(value) || strings.Contains(value, "--") {
		r.problem(n, "use lower-case letters, digits, dots and single dashes, as in \"0.3.1-reuse\"", "%s is %q, which is not a valid id", path, value)
	}
	return value
}

// maxIdentifier keeps the names of a cell's files well below what file systems allow.
const maxIdentifier = 63

var identifierForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`)

// kubernetesFloor reads the declared lowest minor version: X.Y.
func (r *reader) kubernetesFloor(path string, n *yaml.Node) string {
	value, ok := r.text(path, n)
	if !ok {
		return ""
	}
	if !minorForm.MatchString(value) {
		r.problem(n, `write the minor version, as in "1.25"`, "%s is %q, which is not a Kubernetes minor version", path, value)
	}
	return value
}

var minorForm = regexp.MustCompile(`^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)$`)

// kubernetesVersion reads an exact Kubernetes version, which must not be below the floor.
func (r *reader) kubernetesVersion(path string, n *yaml.Node, floor string) string {
	value, ok := r.text(path, n)
	if !ok {
		return ""
	}
	if err := CheckKubernetes(value); err != nil {
		r.problem(n, `write the exact version without v, as in "1.34.4"`, "%s is %q, which is not an exact Kubernetes version", path, value)
		return value
	}
	if order, ok := compareVersions(value, floor+".0"); ok && order < 0 {
		r.problem(n, "raise the version or lower the floor", "%s is %q, which is below the declared floor %q", path, value, floor)
	}
	return value
}

// kubernetesRange reads a declared range of Kubernetes versions.
func (r *reader) kubernetesRange(path string, n *yaml.Node) string {
	value, ok := r.text(path, n)
	if !ok {
		return ""
	}
	if _, err := semver.NewConstraint(value); err != nil {
		r.problem(n, `write a range, as in ">=1.25"`, "%s is %q, which is not a range of versions", path, value)
	}
	return value
}

// CheckKubernetes returns an error unless version is an exact Kubernetes version: X.Y.Z, without v.
func CheckKubernetes(version string) error {
	parsed, err := semver.StrictNewVersion(version)
	if err != nil {
		return err
	}
	if parsed.Prerelease() != "" || parsed.Metadata() != "" {
		return semver.ErrInvalidSemVer
	}
	return nil
}

// validVersion tells whether the text is a version that can be an image tag too: a tag has no +.
func validVersion(text string) bool {
	version, err := semver.StrictNewVersion(text)
	return err == nil && version.Metadata() == ""
}

// compareVersions orders two versions, with or without v; ok is false if one is none.
func compareVersions(a, b string) (order int, ok bool) {
	first, errFirst := semver.StrictNewVersion(strings.TrimPrefix(a, "v"))
	second, errSecond := semver.StrictNewVersion(strings.TrimPrefix(b, "v"))
	if errFirst != nil || errSecond != nil {
		return 0, false
	}
	return first.Compare(second), true
}
