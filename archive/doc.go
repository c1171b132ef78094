// Package archive reads and makes the packages of providers and modules: the zip of a
// provider for one platform, and the .tar.gz or .zip of a module.
//
// Reading a package returns its Digest: the sha256 of its bytes, and the h1 of its files,
// which clients compare with the files that they have unpacked (checklist 68). Anything that
// clients would refuse is a *tree.Finding: a zip that cannot be read to its end, a provider
// that is missing or cannot be run, a module in a folder where clients do not look for it,
// entries that leave their folder. All reading is bounded, by limits.go.
//
// A package that comes over the network is unpacked while it arrives (arriving.go), so that
// after its last byte little is left to do.
//
// A module or a provider may also lie in a tree as a folder. Its archive is computed
// whenever it is read, never written, and has the same bytes on every machine: modulepack.go,
// packagefolder.go. Files that are not part of a module are left out: see leftout.go.
//
// Secrets in modules are found by secret.go. Other faults of a module are doubts: see
// Doubts.
package archive
