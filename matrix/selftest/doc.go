// Package selftest proves that the checks of the matrix can fail. Its tests run the checkout's
// chart and operator on an embedded cluster, see every check green, damage one thing, and see
// the check that must notice it turn red. A check that can't be turned red proves nothing: Run
// runs these tests and those beside the checks, and tells which damage turned which check red.
package selftest
