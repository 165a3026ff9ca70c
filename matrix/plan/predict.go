package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Past is how long a cell took that ran to its end.
type Past struct {
	// Cell is its id, Provider the cluster provider it ran on.
	Cell     string
	Provider string
	Took     time.Duration
	// Finished is when it ended: the last run of a cell counts.
	Finished time.Time
	// Elsewhere tells that it may have run on another machine. Such times count only where there are no others.
	Elsewhere bool
}

// Prediction is how long a cell will take.
type Prediction struct {
	// Took is zero if nothing is known.
	Took time.Duration
	// Basis says in a few words how it is known, or why it is not.
	Basis string
}

// Known tells whether there is a time.
func (p Prediction) Known() bool { return p.Took > 0 }

// Predict says how long each cell will take if it is run: as long as its own last run, else as long as the median of
// what is known of other cells on its provider. Cells that are not run take no time, and have an empty basis.
func Predict(cells []Cell, history []Past) []Prediction {
	predictions := make([]Prediction, len(cells))
	for i, cell := range cells {
		if cell.Skip.Code == "" {
			predictions[i] = predict(cell, history)
		}
	}
	return predictions
}

func predict(cell Cell, history []Past) Prediction {
	// What was measured on this machine comes first.
	for _, elsewhere := range []bool{false, true} {
		where := ""
		if elsewhere {
			where = ", maybe on another machine"
		}
		var last *Past
		others := map[string]Past{}
		for i, past := range history {
			switch {
			case past.Elsewhere != elsewhere:
			case past.Cell == cell.ID:
				if last == nil || past.Finished.After(last.Finished) {
					last = &history[i]
				}
			case past.Provider == cell.Provider && past.Finished.After(others[past.Cell].Finished):
				others[past.Cell] = past
			}
		}
		if last != nil {
			return Prediction{last.Took, "its last run" + where}
		}
		if len(others) > 0 {
			return Prediction{median(others), fmt.Sprintf("median of %d other cells on %s%s", len(others), cell.Provider, where)}
		}
	}
	return Prediction{Basis: "unknown: no cell ran on " + cell.Provider + " yet"}
}

func median(cells map[string]Past) time.Duration {
	var times []time.Duration
	for _, past := range cells {
		times = append(times, past.Took)
	}
	slices.Sort(times)
	return times[len(times)/2]
}

// Order is the order in which cells are started, as indices: those that take longest first, so that none of them is
// left to run alone at the end; where nothing is known, those with most releases on their way.
func Order(cells []Cell, predictions []Prediction) []int {
	order := make([]int, len(cells))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(predictions[b].Took, predictions[a].Took), cmp.Compare(len(cells[b].Sources()), len(cells[a].Sources())))
	})
	return order
}

// Total is the time that cells take together when so many of them run at once, each as soon as there is room. Unknown
// is how many of those that are run have no time, which are left out. Cells that run side by side slow each other down,
// which is not counted either.
func Total(cells []Cell, predictions []Prediction, jobs int) (total time.Duration, unknown int) {
	ends := make([]time.Duration, max(jobs, 1))
	for _, i := range Order(cells, predictions) {
		p := predictions[i]
		switch {
		case cells[i].Skip.Code != "":
		case !p.Known():
			unknown++
		default:
			slices.Sort(ends)
			ends[0] += p.Took
		}
	}
	return slices.Max(ends), unknown
}
