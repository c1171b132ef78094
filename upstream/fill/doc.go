// Package fill brings releases from their origins into a tree, as they are
// requested, and plans what can be removed from a tree again.
//
// # From an origin into the tree
//
// A [Filler] belongs to a tree, and has a client and a [Policy] for each
// hostname that it mirrors. It lists the versions there are, says which packages
// of one can be fetched, and fetches one when it is requested: once for
// all requests, into a temporary file until it is verified. The documents that
// vouch for a package are written before it, so the result is a
// tree like any other, that needs no Filler.
//
// # What it may cost
//
// What is mirrored may have a [Quota], and some of the disk stays free. What does
// not exist is remembered apart from what does, so that requests for made-up names
// evict nothing.
package fill
