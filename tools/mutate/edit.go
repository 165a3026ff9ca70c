package main

import (
	"bytes"
	"slices"
)

// edit replaces a part of a file; nothing is removed if it starts where it ends.
type edit struct {
	start, end int
	text       string
	// closes says that the text ends what an earlier edit began.
	closes bool
}

// edited is content with all edits made. They were found from the outside in, so that at
// one place the last that was opened is closed first.
func edited(content []byte, edits []edit) []byte {
	var ordered []edit
	for _, e := range slices.Backward(edits) {
		if e.closes {
			ordered = append(ordered, e)
		}
	}
	for _, e := range edits {
		if !e.closes {
			ordered = append(ordered, e)
		}
	}
	slices.SortStableFunc(ordered, func(a, b edit) int { return a.start - b.start })

	var result bytes.Buffer
	at := 0
	for _, e := range ordered {
		result.Write(content[at:e.start])
		result.WriteString(e.text)
		at = e.end
	}
	result.Write(content[at:])
	return result.Bytes()
}
