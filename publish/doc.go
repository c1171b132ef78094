// Package publish takes files of releases, modules, documentation and metadata into
// a tree, each version whole or not at all.
//
// # A release is staged
//
// The files of a provider's release come one at a time, in any order and in
// parallel. They are staged in a hidden folder beside the tree's providers:
//
//	providers/.staging/NAMESPACE@TYPE@VERSION/
//	  undecided/NAME@SHA256                  before SHA256SUMS is there: any build of a file
//	  release/NAMESPACE/TYPE/VERSION/NAME    after that: the files that SHA256SUMS lists
//	  docs.zip, docs.tar.gz, docs.tgz        documentation that replaces VERSION/docs
//
// The first SHA256SUMS decides which bytes the release has. Two publishers of
// one version can therefore send their files at the same time. One of them
// wins, and the release contains no file of the other.
//
// When SHA256SUMS, all files in it and a signature, where one is needed, are there, the
// index scans the folder with its own code, as if the folder were in the tree. If the index
// would offer the release, the folder of the version is moved into its place (tree.Part's
// InstallFolder). A folder appears at once, and never replaces another.
//
// # The disk has the whole state
//
// The memory has nothing about a staged release but digests, which can be computed
// again. So several instances that share the tree can stage one release, and a crash loses
// nothing that was acknowledged. A lock that all instances share guards each change of a
// staged version.
//
// The package knows no HTTP, and touches files only through package tree.
package publish
