// Package handlers answers requests over HTTP: service discovery, the provider
// registry, the module registry and the provider network mirror, one file each.
//
// A request is handled in two steps. It is resolved to a target once: which
// provider or module it names, whether that is hosted or mirrored, and what the
// rules allow (target.go). Then it is answered from one index.Snapshot, in
// memory; only files are read from the tree. If the snapshot does not have the
// answer yet, the second step is repeated with the next snapshot.
//
// Where a published protocol and the real clients disagree, the clients win. The
// checklist that comments cite is docs/clients.md.
package handlers
