package image

import (
	"errors"
	"syscall"
)

// ownerUnavailable tells the errors of giving a file to an id that this user namespace
// doesn't have (EINVAL), or without the right to give files away at all (EPERM).
func ownerUnavailable(err error) bool {
	return errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EINVAL)
}
