// Package handlers answers requests over HTTP: service discovery, the provider
// registry, the module registry and the provider network mirror, one file each, and
// the lists, searches and details beside them. A View shows the same data to pages.
//
// A request is handled in two steps. First it is resolved to a target: which
// provider or module it names, whether that is hosted or mirrored, and what the
// rules allow (target.go). Then it is answered from one index.Snapshot, in
// memory; only files are read from the tree. If the snapshot does not have the
// answer yet, the second step is repeated with the next snapshot. The protocols and the
// details read the Offers around the snapshot, which may also have what an origin has
// (offers.go).
//
// Lists and searches have no target. They are answered from a listing, which has the
// packages of a snapshot that the rules let a user see, as if there were no others
// (listing.go).
//
// Files are published in the other direction: a Publisher takes them into the tree, after
// the rules and all other checks that do not need the content (publish.go).
//
// Where a published protocol and the real clients disagree, the clients win. The
// checklist that comments cite is docs/clients.md.
package handlers
