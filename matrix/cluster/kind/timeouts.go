package kind

import "time"

const (
	// engineTimeout bounds a question to the container engine.
	engineTimeout = 20 * time.Second
	// loadTimeout bounds the loading of a node image into the engine; it takes 10 s.
	loadTimeout = 5 * time.Minute
	// pullTimeout bounds the pull of a published node image of some 400 MB.
	pullTimeout = 10 * time.Minute
	// readyTimeout is how long the node may take to become Ready after Kubernetes was set up on it.
	readyTimeout = 2 * time.Minute
	// dnsTimeout is how long the cluster's DNS may take after that.
	dnsTimeout = 2 * time.Minute
	// deleteTimeout bounds the end of a cluster, also after the caller's context has ended: half a
	// deletion would leave containers. It takes one to seven seconds.
	deleteTimeout = 60 * time.Second
	// pollInterval is the pause between two looks at something that is about to change.
	pollInterval = 250 * time.Millisecond
)
