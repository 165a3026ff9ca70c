// Package static judges an operator upgrade by its charts and its source alone, before there is a
// cluster: one file a check. What a check needs is gathered from an Edge; what it decides is a pure
// function of that.
//
// A check returns a Result when it could look, whatever it saw, and an error when it could not
// look: the latter says nothing about the product. ErrNotApplicable says that there is nothing to
// look at.
package static
