// Package gobuild builds Go programs from source with visible progress and keeps
// the result in a content-keyed cache.
//
// Every program is built with CGO_ENABLED=0, -trimpath and -buildvcs=false, so that
// the same source, Go version and flags give the same bytes in every checkout.
package gobuild
