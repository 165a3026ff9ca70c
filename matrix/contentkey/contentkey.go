// Package contentkey names results after what they were made from.
package contentkey

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
)

// Of is a SHA-256 over named inputs, in hexadecimal. It does not depend on their order, and no
// two different sets of inputs have the same key.
func Of(inputs map[string]string) string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(inputs)) {
		// The lengths keep the borders between names and values.
		fmt.Fprintf(h, "%d:%s%d:%s", len(name), name, len(inputs[name]), inputs[name])
	}
	return hex.EncodeToString(h.Sum(nil))
}
