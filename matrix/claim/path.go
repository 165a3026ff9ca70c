package claim

import (
	"slices"

	"github.com/trussiumhq/trussium-operator/matrix/evidence"
)

// Hop is one upgrade that was seen to work.
type Hop struct {
	From, To string
	// ToBroken tells that the release that it leads to is known to be broken.
	ToBroken bool
	// Proof is the cell that proves it: one that starts there, or a chain that passes through.
	Proof *evidence.Cell
}

// Hops are the upgrades that the evidence proves, each once, in the order of the documents. Straight upgrades come
// before those that are part of a chain: they prove more about what follows.
func Hops(documents []*evidence.Cell) []Hop {
	var hops []Hop
	add := func(hop Hop) {
		if !slices.ContainsFunc(hops, func(h Hop) bool { return h.From == hop.From && h.To == hop.To }) {
			hops = append(hops, hop)
		}
	}
	for _, chain := range []bool{false, true} {
		for _, document := range documents {
			if objection(document) != "" || chain != (len(document.Through) > 0) {
				continue
			}
			from := document.From
			for _, to := range append(slices.Clone(document.Through), document.To) {
				add(Hop{From: from.Version, To: to.Version, ToBroken: len(to.KnownDefects) > 0, Proof: document})
				from = to
			}
		}
	}
	return hops
}

// Path is the shortest chain of hops, nil if there is none. It stops at no release that is known to be broken. Among
// chains of the same length it takes the one whose hops come first.
func Path(hops []Hop, from, to string) []Hop {
	paths := [][]Hop{{}}
	reached := map[string]bool{from: true}
	for len(paths) > 0 {
		path := paths[0]
		paths = paths[1:]
		at := from
		if len(path) > 0 {
			at = path[len(path)-1].To
		}
		for _, hop := range hops {
			if hop.From != at || reached[hop.To] || hop.ToBroken && hop.To != to {
				continue
			}
			next := append(slices.Clone(path), hop)
			if hop.To == to {
				return next
			}
			reached[hop.To] = true
			paths = append(paths, next)
		}
	}
	return nil
}

// Reachable are the versions that hops lead to from a version, in the order in which they are found.
func Reachable(hops []Hop, from string) []string {
	found := []string{from}
	for i := 0; i < len(found); i++ {
		for _, hop := range hops {
			if hop.From == found[i] && !hop.ToBroken && !slices.Contains(found, hop.To) {
				found = append(found, hop.To)
			}
		}
	}
	return found[1:]
}
