package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/trussiumhq/trussium-operator/matrix/filelock"
)

const (
	// claimTimeout is how long a former cluster in the same folder may take to be gone: one whose
	// starter was killed first finishes its start, and only then notices.
	claimTimeout = 2 * time.Minute
	claimPoll    = 50 * time.Millisecond
)

// claim takes the state folder for one cluster, which is given the result and so holds it until
// its last process is gone. A former cluster that is ending still writes to the folder, and deletes
// it last of all. The folder is made if it is missing.
func claim(ctx context.Context, dir string) (*os.File, error) {
	ctx, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	for {
		folder, err := tryClaim(dir)
		if err == nil || !errors.Is(err, filelock.ErrHeld) {
			return folder, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("another cluster is starting or ending in %s: %w", dir, context.Cause(ctx))
		case <-time.After(claimPoll):
		}
	}
}

func tryClaim(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	folder, err := os.Open(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, filelock.ErrHeld // deleted just now, by a cluster that ended
	}
	if err != nil {
		return nil, err
	}
	if err := filelock.TryOpen(folder); err != nil {
		folder.Close()
		return nil, err
	}
	locked, lockedErr := folder.Stat()
	there, thereErr := os.Stat(dir)
	if lockedErr != nil || thereErr != nil || !os.SameFile(locked, there) {
		folder.Close()
		return nil, filelock.ErrHeld // deleted between the two, too
	}
	return folder, nil
}
