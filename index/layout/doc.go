// Package layout knows what a path in a tree means: which folder is of which address, which
// files tools and people leave in a tree, and where a file belongs that lies where nothing of
// its name is offered.
package layout
