// Package nodeimage builds the image of a Kind node from Go modules and Debian packages alone, for
// machines that reach no image registry.
//
// The programs are compiled from the modules that tools/nodeimage/modules pins, the rest of the
// node is Debian with the files that Kind itself puts into its node images. The result is an
// archive for `docker load`, kept in the user's cache under the key of what it was made from. It
// needs no container engine, but root: Debian's packages are installed in a folder that becomes
// their root.
package nodeimage
