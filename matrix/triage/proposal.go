package triage

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/trussiumhq/trussium-operator/matrix/compat"
)

// Proposal is an issue that asks for a decision about a release.
type Proposal struct {
	Version string        `json:"version"`
	Digest  string        `json:"digest"`
	Impact  compat.Impact `json:"impact"`
	Title   string        `json:"title"`
	// Labels are the keys of labels, see LabelName.
	Labels []string `json:"labels"`
	Body   string   `json:"body"`
	// Since is a time before which no issue can be about the release.
	Since time.Time `json:"since"`
}

// maxBody is how long the text of an issue or a comment may be, in bytes. GitHub allows 65,536
// characters.
const maxBody = 60_000

// proposalTitle is what people see. It is not what a proposal is known by.
func proposalTitle(version string) string { return "Runtime compatibility proposal: " + version }

// draft is everything that the text of a proposal is made of.
type draft struct {
	release  Release
	commit   string
	image    Image
	imageRef string
	impact   compat.Impact
	reason   string
	diff     difference
	rows     rows
	// moved is the digest that a decision in the compatibility file is about, if it is another one.
	moved    string
	decision compat.Decision
}

func (d draft) digest() string {
	if d.image.State != ImagePresent {
		return noImage
	}
	return d.image.Digest
}

func (d draft) proposal() Proposal {
	return Proposal{
		Version: d.release.Version, Digest: d.digest(), Impact: d.impact,
		Title: proposalTitle(d.release.Version), Labels: []string{LabelProposal, string(d.impact)},
		Body: d.body(), Since: d.release.since(),
	}
}

// since is a time before which nobody can have written about the release.
func (r Release) since() time.Time {
	if r.Published.IsZero() || r.Created.Before(r.Published) {
		return r.Created
	}
	return r.Published
}

func (d draft) body() string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	version := d.release.Version
	p("%s", identity{version, d.digest()}.marker())
	p("Runtime release %s has no decision in `compatibility.yaml` yet.", version)
	if d.moved != "" {
		p("")
		p("**The tag moved.** The decision in `compatibility.yaml`, %s, is about the image `%s`. The tag now names another image, which that decision does not cover.", d.decision, d.moved)
	}
	p("")
	p("| | |")
	p("| --- | --- |")
	p("| Release | %s, published %s |", link(version, d.release.URL), d.release.Published.UTC().Format(time.DateOnly))
	p("| Image | `%s` |", d.imageRef)
	p("| Digest | %s |", d.digestText())
	if d.image.State == ImagePresent {
		p("| Platforms | %s |", code(platformNames(d.image), maxValue))
	}
	p("| Commit | %s |", d.commitText())
	p("| Suggested impact | `%s`: %s |", d.impact, d.reason)
	for _, remark := range d.diff.remarks {
		p("")
		p("**Note:** %s", remark)
	}
	d.contractSection(p)
	d.decisionSection(p)
	p("")
	p("## Rules")
	p("")
	p("- This proposal is an intake signal. It is no claim of compatibility, and no obligation to validate the release.")
	p("- First come releases that change the runtime contract, and releases that show the contract as it is now.")
	p("- *Validated* means this exact image, tested with upgrade and rollback evidence. It says nothing about earlier or later releases.")
	p("- *Not selected* means that the release stays unvalidated by this project. That is no claim that it does not work.")
	p("- The decision is made in `compatibility.yaml`, and closes this issue. Title, labels and text may be edited; the invisible first line must stay.")
	d.notesSection(&b, p)
	return b.String()
}

// link is a Markdown link if the address is one.
func link(text, address string) string {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Host == "" || parsed.Scheme != "https" && parsed.Scheme != "http" || !plainAddress.MatchString(address) {
		return text
	}
	return fmt.Sprintf("[%s](%s)", text, address)
}

var plainAddress = regexp.MustCompile(`^[A-Za-z0-9:/.%_~+-]{1,500}$`)

func (d draft) digestText() string {
	switch d.image.State {
	case ImagePresent:
		return "`" + d.image.Digest + "`"
	default:
		return "**there is no such image**: the registry did not have it when this was written"
	}
}

func (d draft) commitText() string {
	if d.commit == "" {
		return "unknown: the tag could not be read"
	}
	return code(d.commit, maxValue)
}

func (d draft) contractSection(p func(string, ...any)) {
	p("")
	if d.diff.baseline == "" {
		p("## The runtime contract")
	} else {
		p("## The runtime contract, against %s", d.diff.baseline)
	}
	if len(d.diff.findings) > 0 {
		p("")
		p("| Part | The operator expects | %s | %s | |", orNone(d.diff.baseline), d.release.Version)
		p("| --- | --- | --- | --- | --- |")
		for _, f := range d.diff.findings {
			verdict := "as it was"
			switch {
			case f.changed:
				verdict = "**differs**"
			case f.before != f.after && f.after == f.expected:
				verdict = "as expected"
			case f.before != f.after:
				verdict = "not compared"
			}
			expected := "anything"
			if f.expected != "" {
				expected = "`" + f.expected + "`"
			}
			p("| %s | %s | %s | %s | %s |", cell(f.part), expected, code(f.before, maxValue), code(f.after, maxValue), verdict)
		}
	}
	if len(d.diff.mentions) > 0 {
		p("")
		p("Lines of the release notes that speak of the contract:")
		p("")
		shown := d.diff.mentions[:min(len(d.diff.mentions), maxMentions)]
		for _, m := range shown {
			p("    %s: %s", m.version, line(m.line, maxValue))
		}
		if more := len(d.diff.mentions) - len(shown); more > 0 {
			p("")
			p("and %d more.", more)
		}
	}
	p("")
	p("What could not be determined:")
	p("")
	for _, text := range d.diff.undetermined {
		p("- %s", text)
	}
}

func orNone(version string) string {
	if version == "" {
		return "before"
	}
	return version
}

// cell is the name of a part of the contract; the names of labels are the image's own.
func cell(part string) string {
	if kind, name, found := strings.Cut(part, "label "); found && kind == "" {
		return "label " + code(name, maxValue)
	}
	return part
}

func (d draft) decisionSection(p func(string, ...any)) {
	version := d.release.Version
	p("")
	p("## To decide")
	p("")
	p("To validate it, add these rows to `compatibility.yaml`, run the new row of `upgrades`, and commit all of it with the evidence:")
	p("")
	p("```yaml")
	p("%s", d.rows.yaml)
	p("```")
	p("")
	p("```sh")
	p("%s", d.rows.command)
	p("```")
	p("")
	p("%sWhatever is decided, the row of `runtimeReleases` says so, and closes this issue. One of these commands writes it:", d.rows.note)
	p("")
	p("```sh")
	suffix := " --impact " + string(d.impact)
	if d.image.State == ImagePresent {
		suffix += " --digest " + d.image.Digest
	}
	p("go run ./tools/matrix triage decide %s --validated%s", version, suffix)
	p("go run ./tools/matrix triage decide %s --not-selected --reason '...'%s", version, suffix)
	p("go run ./tools/matrix triage decide %s --superseded-by vX.Y.Z%s", version, suffix)
	p("```")
}

// notesSection shows as much of the notes as the body has room for.
func (d draft) notesSection(b *strings.Builder, p func(string, ...any)) {
	if strings.TrimSpace(d.release.Notes) == "" {
		return
	}
	const frame = 400
	room := maxBody - b.Len() - frame
	if room < frame {
		return
	}
	p("")
	p("<details><summary>Release notes, as they were published</summary>")
	p("")
	notes := codeBlock(d.release.Notes, room)
	p("%s", strings.TrimRight(notes, "\n"))
	p("")
	if len(d.release.Notes) > room || len(notes) > room-frame {
		p("The rest is on the page of the release.")
		p("")
	}
	p("</details>")
}
