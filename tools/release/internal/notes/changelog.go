// Package notes writes the notes of a release.
package notes

import (
	"regexp"
	"strings"
)

// Section is what the changelog, in the form of keepachangelog.com, says of a version: the text below its dated
// heading.
func Section(changelog []byte, version string) (text string, found bool) {
	heading := regexp.MustCompile(`(?m)^## \[` + regexp.QuoteMeta(version) + `\] - \d{4}-\d{2}-\d{2}[ \t]*$`)
	at := heading.FindIndex(changelog)
	if at == nil {
		return "", false
	}
	rest := string(changelog[at[1]:])
	if end := endOfSection.FindStringIndex(rest); end != nil {
		rest = rest[:end[0]]
	}
	return strings.TrimSpace(rest), true
}

// endOfSection is the next version, or the links at the end of the file.
var endOfSection = regexp.MustCompile(`(?m)^(## |\[[^\]]+\]: )`)
