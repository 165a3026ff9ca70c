// Package triage turns new releases of the runtime into proposals: issues in which a maintainer
// decides whether a release belongs to the validation set. Decisions are kept in
// compatibility.yaml; an issue is only where they are prepared, and a decision closes it.
//
// What to do is decided by World.Plan, which is pure: releases, images, decisions, evidence and
// issues in, steps out. Run reads that world, and carries the steps out if it is told to. It needs
// no memory of its own: a proposal carries a marker that says which release and which image it is
// about, so a run that was interrupted, or that ran beside another one, is made good by the next.
//
// Everything that a release or an image says of itself is taken for hostile. See docs/triage.md.
package triage
