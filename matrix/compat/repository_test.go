package compat_test

import (
	"testing"

	"github.com/trussiumhq/trussium-operator/matrix/compat"
	"github.com/trussiumhq/trussium-operator/matrix/git"
)

// TestRepositoryFile checks the compatibility file of this repository: it is valid, and every
// commit that it names is an ancestor of HEAD.
func TestRepositoryFile(t *testing.T) {
	file, err := compat.Load("../../compatibility.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := file.CheckCommits(t.Context(), git.Repository{Dir: "../.."}); err != nil {
		t.Error(err)
	}
}
