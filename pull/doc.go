// Package pull fetches releases from their origins into a tree when they are requested,
// and plans which releases can be removed from a tree.
//
// # From an origin into the tree
//
// A [Filler] belongs to a tree, and has a client and a [Policy] for each hostname that
// it mirrors. It lists the versions of a provider and the available packages of a
// version, and fetches a package when it is requested: once for all requests, into a
// temporary file until it is verified. The documents of a package are written before
// it, so the result is a tree like any other, which needs no Filler.
//
// [Offers] are what a request reads: a snapshot together with what a Filler can fetch.
// Who reads them does not know whether the tree had a package before.
//
// # One truth about the tree
//
// Callers pass the release in the index's snapshot. Documents, signatures and digests
// of packages that the index has verified are not read and verified again. The
// provider's directory is read only where the snapshot may be out of date: before a
// file is written to it, and for files that were added after the last scan. A filled file
// is an [index.File], and is served like any other.
//
// # Limits
//
// The size of the mirrored files may be limited by a [quota.Quota], and some of the disk
// stays free. Providers, releases and packages that do not exist are remembered
// separately from existing ones, so that requests for made-up names evict nothing.
package pull
