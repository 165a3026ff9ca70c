package manager

import "runtime/debug"

// Version is the release that this binary was built as. The build sets it with
// -ldflags "-X github.com/trussiumhq/trussium-operator/operator/manager.Version=<version>".
var Version = ""

// CurrentVersion is Version, or what Go knows about a build without a release.
func CurrentVersion() string {
	if Version != "" {
		return Version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
