// Package layout knows the meaning of a path in a tree: the address of a folder, which
// files tools and people leave in a tree, and where a file belongs that lies where nothing of
// its name is offered.
package layout
