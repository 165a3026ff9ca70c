// Package doctor finds out what a machine can run: what there is, whether it is enough, and what to do if it is not.
// Judging is pure; only Look asks the machine.
package doctor
