package compat

import (
	"fmt"
	"strings"
)

// nearest returns the candidate that is a likely misspelling of word away, or "".
func nearest(word string, candidates []string) string {
	// A third of the word wrong, but never fewer than two letters: a swap of neighbours counts two.
	limit := max(2, len(word)/3)
	best := ""
	for _, candidate := range candidates {
		// A candidate that is all misspelling says nothing about what was meant.
		if distance := editDistance(word, candidate); distance <= limit && distance < len(candidate) {
			limit = distance - 1
			best = candidate
		}
	}
	return best
}

// suggest is the advice for a name that is none of the candidates.
func suggest(word string, candidates []string, otherwise string) string {
	if near := nearest(word, candidates); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return otherwise
}

// oneOf lists the candidates for an error message.
func oneOf(candidates []string) string {
	return "use one of " + strings.Join(candidates, ", ")
}

// editDistance is the number of bytes to insert, delete or replace between a and b.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
