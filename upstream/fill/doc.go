// Package fill brings releases from their origins into a tree, as they are
// requested, and plans what can be removed from a tree again.
//
// # From an origin into the tree
//
// A [Filler] belongs to a tree, and has a client and a [Policy] for each hostname
// that it mirrors. It lists the versions of a provider, the packages of a version
// that are available, and fetches a package when it is requested: once for all
// requests, into a temporary file until it is verified. The documents of a package
// are written before it, so the result is a tree like any other, that needs no
// Filler.
//
// # One truth about the tree
//
// Callers pass the release as the index's snapshot has it. What the index has
// verified is not read and verified again: neither documents and signatures, nor the
// digests of packages. The provider's directory is read only where the snapshot may
// be behind, which is before something is written to it, and for files that came in
// after the last scan. A filled file is an [index.File], to be served like any other.
//
// # What it may cost
//
// The size of what is mirrored may have a [Quota], and some of the disk stays free.
// Providers, releases and packages that do not exist are remembered apart from those
// that do, so that requests for made-up names evict nothing.
package fill
