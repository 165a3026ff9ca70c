// Package compat reads compatibility.yaml: which operator and runtime releases exist, which
// combinations are claimed to work, and which upgrades the matrix must prove.
//
// The file is read strictly. Every mistake is reported at once, with its line and column and
// with what to do about it; a file that Load accepts is consistent in itself. Whether the
// commits that it names exist is a question to git and is asked by CheckCommits.
//
// The format is described in docs/compatibility-file.md.
package compat
