package doctor

// State is how serious a finding is.
type State string

// The states of a finding.
const (
	// OK is as it should be.
	OK State = "ok"
	// Note works, but worse than it could.
	Note State = "note"
	// Missing prevents what the finding is needed for.
	Missing State = "missing"
)

// Finding is one thing that was looked at.
type Finding struct {
	// What was looked at, in a word or two.
	What string `json:"what"`
	// NeededFor is the cluster provider that needs it; empty if everything does.
	NeededFor string `json:"neededFor,omitempty"`
	State     State  `json:"state"`
	// Says is what was seen, Advice what to do about it; empty if nothing needs to be done.
	Says   string `json:"says"`
	Advice string `json:"advice,omitempty"`
}

// CanRun tells whether nothing is missing that the provider needs.
func CanRun(findings []Finding, provider string) bool {
	for _, f := range findings {
		if f.State == Missing && (f.NeededFor == "" || f.NeededFor == provider) {
			return false
		}
	}
	return true
}
