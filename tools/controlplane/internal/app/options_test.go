//go:build linux

package app

import (
	"maps"
	"slices"
	"testing"
)

func TestOptionsSurviveTheWayToTheInnerProcess(t *testing.T) {
	o, err := parseOptions([]string{
		"--dir=/state", "--node", "--keep", "--control=key", "--mirror=ghcr.io=http://127.0.0.1:5001/a",
		"--mirror=quay.io=https://example.com", "--apiserver-arg=--v=2,x", "--controller-manager-arg=--controllers=*,-x",
	})
	if err != nil {
		t.Fatal(err)
	}
	again, err := parseOptions(o.arguments())
	if err != nil {
		t.Fatal(err)
	}
	if again.dir != o.dir || !again.node || !again.keep || again.control != "key" ||
		!maps.Equal(again.mirrors, o.mirrors) || len(o.mirrors) != 2 ||
		!slices.Equal(again.apiServerArguments, []string{"--v=2,x"}) ||
		!slices.Equal(again.controllerManagerArguments, []string{"--controllers=*,-x"}) {
		t.Errorf("got %+v from %+v", again, o)
	}
}

func TestOptionsRefuseMistakes(t *testing.T) {
	for _, arguments := range [][]string{
		{},
		{"--dir=/state", "rest"},
		{"--dir=/state", "--unknown"},
		{"--dir=/state", "--mirror=ghcr.io"},
		{"--dir=/state", "--mirror=ghcr.io=127.0.0.1:5001"},
		{"--dir=/state", "--mirror=ghcr.io=ftp://127.0.0.1"},
	} {
		if o, err := parseOptions(arguments); err == nil {
			t.Errorf("%q gave %+v", arguments, o)
		}
	}
}

func TestParseSubordinateRange(t *testing.T) {
	const content = "# comment\nother:100000:65536\nbroken:x:y\nme:200000:65536\nme:300000:65536\n1000:400000:10\n"
	tests := []struct {
		name string
		uid  int
		want idRange
	}{
		{"me", 1, idRange{200000, 65536}},
		{"", 1000, idRange{400000, 10}},
		{"broken", 2, idRange{}},
		{"nobody", 3, idRange{}},
	}
	for _, test := range tests {
		if got := parseSubordinateRange(content, test.name, test.uid); got != test.want {
			t.Errorf("%q, %d: got %v, want %v", test.name, test.uid, got, test.want)
		}
	}
}
