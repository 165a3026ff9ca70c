package claim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/trussiumhq/trussium-operator/matrix/compat"
)

// Problems are the claims of the file that nothing proves, in its order: combinations that are said to be tested, and
// rows of which no cell is tested. A row whose cells are all left out for a reason claims nothing.
func Problems(file *compat.File, cells []Cell, combinations []Combination) []compat.Problem {
	var problems []compat.Problem
	problem := func(at compat.Position, advice, format string, args ...any) {
		problems = append(problems, compat.Problem{
			File: file.Path, Line: at.Line, Column: at.Column, Message: fmt.Sprintf(format, args...), Advice: advice,
		})
	}
	for _, c := range combinations {
		if c.Status == compat.StatusTested && !c.Tested() {
			problem(c.Position, "run `go run ./tools/matrix` and commit the evidence, or make its status historical",
				"operator %s with runtime %s is said to be tested, and nothing proves it: %s", c.Operator, c.Runtime, c.Reason)
		}
	}
	for _, row := range file.Upgrades {
		reasons, tested := rowReasons(row.ID, cells)
		if tested || len(reasons) == 0 {
			continue
		}
		problem(row.Position, fmt.Sprintf("run `go run ./tools/matrix run --row %s` and commit the evidence", row.ID),
			"no cell of the row %s is tested: %s", row.ID, strings.Join(reasons, "; "))
	}
	return problems
}

// rowReasons are why the cells of a row that should be run are not tested, each reason once.
func rowReasons(id string, cells []Cell) (reasons []string, tested bool) {
	for _, c := range cells {
		switch {
		case c.Planned == nil || c.Planned.Row.ID != id || c.Planned.Skip.Code != "":
		case c.State == Tested:
			return nil, true
		case !slices.Contains(reasons, c.Reason):
			reasons = append(reasons, c.Reason)
		}
	}
	return reasons, false
}
