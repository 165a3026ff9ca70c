// Package e2e holds tests of the matrix's program as a whole: it is started as a user does it, and
// killed.
package e2e
