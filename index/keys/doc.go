// Package keys knows whose signatures count: the keys of namespaces, as files in a tree and as
// copies outside of it, and what has changed in them. It verifies nothing.
package keys
