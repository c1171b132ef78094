// Package catalog lists and searches what a snapshot offers.
//
// A [Catalog] has an entry for each provider and module. It is made on the first request for
// the catalog of a snapshot, with the entries of an earlier catalog for all that has not
// changed. Its search indexes are made on the first search, in the same way. A [Searcher] finds
// the entries that one audience may see: one index serves all audiences.
package catalog
