package report

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Tables stand in documents between two lines:
//
//	<!-- BEGIN matrix: combinations -->
//	<!-- END matrix: combinations -->
var markerLine = regexp.MustCompile(`^<!-- (BEGIN|END) matrix: (.*) -->\s*$`)

// fillTables writes the tables between the markers of a document, whose path is relative to the root of the checkout.
// Errors begin with path and line.
func fillTables(in Input, path string, content []byte) ([]byte, error) {
	root := strings.Repeat("../", strings.Count(path, "/"))
	var out bytes.Buffer
	open, openLine := "", 0
	line := 0
	for text := range bytes.Lines(content) {
		line++
		match := markerLine.FindSubmatch(text)
		if match == nil {
			if open == "" {
				out.Write(text)
			}
			continue
		}
		kind, name := string(match[1]), string(match[2])
		table, known := tables[name]
		switch {
		case !known:
			return nil, fmt.Errorf("%s:%d:1: there is no table %q: use one of %s", path, line, name, strings.Join(slices.Sorted(maps.Keys(tables)), ", "))
		case kind == "BEGIN" && open != "":
			return nil, fmt.Errorf("%s:%d:1: the table %s begins within the table %s of line %d: end that one first", path, line, name, open, openLine)
		case kind == "END" && open != name:
			return nil, fmt.Errorf("%s:%d:1: the table %s ends here, and did not begin: put <!-- BEGIN matrix: %s --> before it", path, line, name, name)
		case kind == "BEGIN":
			open, openLine = name, line
			out.Write(text)
			out.WriteByte('\n')
			out.Write(table(in, root))
			out.WriteByte('\n')
		default:
			open = ""
			out.Write(text)
		}
	}
	if open != "" {
		return nil, fmt.Errorf("%s:%d:1: the table %s does not end: put <!-- END matrix: %s --> after it", path, openLine, open, open)
	}
	return out.Bytes(), nil
}
