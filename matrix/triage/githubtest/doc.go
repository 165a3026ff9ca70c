// Package githubtest is GitHub for tests: an HTTP server that keeps releases, issues, labels and
// comments, and that checks every request and every response against GitHub's own description of
// its API. It fails in the ways in which GitHub fails, when it is told to, and writes down what it
// was asked.
package githubtest
