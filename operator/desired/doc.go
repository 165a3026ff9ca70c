// Package desired says what the objects of a TrussiumRuntime must look like.
//
// Every builder is a pure function from the TrussiumRuntime to an apply
// configuration that holds exactly the fields the operator owns; whatever is not
// in it belongs to somebody else and is left alone.
//
// The pod template is an interface. Releases since 0.1.0 render exactly the
// template built here, so any difference for an unchanged spec restarts every
// runtime of every user on an operator upgrade. The golden files in testdata
// guard it.
package desired
