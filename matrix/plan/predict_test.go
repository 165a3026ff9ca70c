package plan

import (
	"slices"
	"testing"
	"time"

	"github.com/trussiumhq/trussium-operator/matrix/compat"
)

func TestPredict(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2026, 11, n, 0, 0, 0, 0, time.UTC) }
	cell := func(id, provider string) Cell { return Cell{ID: id, Provider: provider} }
	history := []Past{
		{Cell: "a", Provider: "embedded", Took: 10 * time.Second, Finished: day(1)},
		{Cell: "a", Provider: "embedded", Took: 100 * time.Second, Finished: day(3)},
		{Cell: "a", Provider: "embedded", Took: 20 * time.Second, Finished: day(2)},
		{Cell: "b", Provider: "embedded", Took: 200 * time.Second, Finished: day(1)},
		{Cell: "c", Provider: "embedded", Took: 300 * time.Second, Finished: day(1)},
		{Cell: "d", Provider: "embedded", Took: 1 * time.Second, Finished: day(9), Elsewhere: true},
		{Cell: "k", Provider: "kind", Took: 7 * time.Second, Finished: day(1), Elsewhere: true},
	}
	for name, test := range map[string]struct {
		cell  Cell
		took  time.Duration
		basis string
	}{
		"the last of its runs":          {cell("a", "embedded"), 100 * time.Second, "its last run"},
		"the median of others":          {cell("new", "embedded"), 200 * time.Second, "median of 3 other cells on embedded"},
		"others here before its own":    {cell("d", "embedded"), 200 * time.Second, "median of 3 other cells on embedded"},
		"its own elsewhere":             {cell("k", "kind"), 7 * time.Second, "its last run, maybe on another machine"},
		"others elsewhere":              {cell("new", "kind"), 7 * time.Second, "median of 1 other cells on kind, maybe on another machine"},
		"nothing known of the provider": {cell("new", "existing"), 0, "unknown: no cell ran on existing yet"},
		"left out":                      {Cell{ID: "a", Provider: "embedded", Skip: Skip{Code: SkipSameVersion}}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := Predict([]Cell{test.cell}, history)[0]
			if got != (Prediction{test.took, test.basis}) || got.Known() != (test.took > 0) {
				t.Errorf("got %+v, want %s, %q", got, test.took, test.basis)
			}
		})
	}
	if got := Predict([]Cell{cell("a", "embedded")}, nil)[0]; got.Known() {
		t.Errorf("without a history: %+v", got)
	}
}

func TestTotal(t *testing.T) {
	var cells []Cell
	var predictions []Prediction
	for _, minutes := range []int{3, 1, 2, 0, 4} {
		cells = append(cells, Cell{})
		predictions = append(predictions, Prediction{Took: time.Duration(minutes) * time.Minute})
	}
	cells = append(cells, Cell{Skip: Skip{Code: SkipSameVersion}})
	predictions = append(predictions, Prediction{})
	var got []time.Duration
	for _, jobs := range []int{0, 1, 2, 9} {
		total, unknown := Total(cells, predictions, jobs)
		got = append(got, total)
		if unknown != 1 {
			t.Errorf("%d are unknown, want 1", unknown)
		}
	}
	// Two at once, the longest first: 4 and 1 beside 3 and 2.
	if want := []time.Duration{10 * time.Minute, 10 * time.Minute, 5 * time.Minute, 4 * time.Minute}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestOrder(t *testing.T) {
	minutes := func(n ...int) []Prediction {
		var predictions []Prediction
		for _, n := range n {
			predictions = append(predictions, Prediction{Took: time.Duration(n) * time.Minute})
		}
		return predictions
	}
	chain := Cell{Through: make([]compat.OperatorRelease, 2)}
	for _, test := range []struct {
		name        string
		predictions []Prediction
		want        []int
	}{
		{"the longest first", minutes(2, 5, 3), []int{1, 2, 0}},
		{"nothing is known: the longest way first", minutes(0, 0, 0), []int{2, 0, 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := Order([]Cell{{}, {}, chain}, test.predictions); !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
