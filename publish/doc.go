// Package publish takes files of releases, modules, documentation and metadata into
// a tree, each version whole or not at all.
//
// # A release is staged
//
// The files of a provider's release come one at a time, in any order and in
// parallel. They are staged in a hidden folder beside the tree's providers:
//
//	providers/.staging/NAMESPACE@TYPE@VERSION/
//	  undecided/NAME@SHA256                  until SHA256SUMS is there: any build of a file
//	  release/NAMESPACE/TYPE/VERSION/NAME    since then: the files that SHA256SUMS lists
//	  docs/                                  documentation that replaces VERSION/docs
//
// The first SHA256SUMS decides which bytes the release has. Two publishers of
// one version can therefore send their files at the same time, and one of them
// wins: nothing of the other's is in the release.
//
// When SHA256SUMS, all it lists and a signature that is needed are there, the folder
// is scanned by the index's own code as if it lay in the tree. If that offers the
// release, the folder of the version is renamed into its place. A folder appears at
// once, and never replaces another. In a bucket, where nothing can be renamed, its files
// are copied in an order that shows all of the release or nothing (index.Part's
// InstallFolder), and documentation is staged as the archive that came.
//
// # What is on the disk is all there is
//
// Nothing about a staged release is kept in memory but digests, which can be
// computed again. So a release can be staged through several instances that share
// the tree, and what has been acknowledged survives a crash. Changes to what is
// staged of a version are made under a lock that all instances share.
//
// The package knows no HTTP, and touches files through the tree's file system only.
package publish
