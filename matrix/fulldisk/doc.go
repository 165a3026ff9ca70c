// Package fulldisk lets tests on Linux see what their code does when the disk is full.
package fulldisk
