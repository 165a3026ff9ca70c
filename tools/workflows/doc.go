// Package workflows holds the tests of the workflows in .github/workflows: what actionlint does not look at.
//
// A workflow holds no logic of its own. Each of its steps is one make target or one command of a tool, so that
// whatever it does can be run, and tested, on a person's machine.
package workflows
