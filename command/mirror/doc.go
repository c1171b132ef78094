// Package mirror has the commands that fetch providers and modules of other registries into
// a tree (mirror), and remove them (prune).
package mirror
