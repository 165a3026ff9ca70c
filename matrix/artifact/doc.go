// Package artifact turns releases into OCI artifacts that a cluster can install: operator
// images, runtime images and charts, each with its digest.
//
// A release comes from one of three places, which is recorded with it: it is published in a
// registry, it is rebuilt from the commit of this repository that it was cut from, or it is
// the checkout itself. Images are built without a container engine, and the same source gives
// the same digest.
//
// What was built or pulled is kept in OCI layouts in a cache, under a key of its inputs.
// Serve offers artifacts on a loopback registry under the repository paths that they have
// where they are published, so that references need not change.
package artifact
