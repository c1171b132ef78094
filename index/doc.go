// Package index reads a tree of files and says which providers and modules it offers, byte
// for byte as verified.
//
// # A path is an address
//
//	providers/[HOSTNAME/]NAMESPACE/TYPE/terraform-provider-TYPE_VERSION_OS_ARCH.zip
//	providers/[HOSTNAME/]NAMESPACE/TYPE/VERSION/…the same names…
//	providers/[HOSTNAME/]NAMESPACE/TYPE/VERSION/docs/…documentation…
//	modules/[HOSTNAME/]NAMESPACE/NAME/SYSTEM/VERSION.tar.gz, .tgz, .zip or a folder
//	keys/[HOSTNAME/]NAMESPACE.asc
//
// There is no catalogue beside the files that could disagree with them. A folder whose name
// has a dot or a port, or is "localhost", is a HOSTNAME; no namespace can look like one. A
// provider or module under no HOSTNAME is hosted: it belongs to the registry itself, under
// every name that the registry answers as.
//
// # Nothing is offered that a client would refuse
//
// Names and versions are parsed by the clients' own libraries. A package must be a zip that
// can be read to its end, with the provider in it, and with the sha256 that SHA256SUMS
// lists. A SHA256SUMS must have a form that every client reads right, and its signature, if
// there is one, must verify. A file that fails is withheld and named in the Report, with a
// Reason and a sentence that says what to do; everything else is offered all the same. A
// scan fails as a whole only if the root, or a part elsewhere, cannot be opened, if the
// server is short of open files, or if the files cannot seek. Then the previous Snapshot
// stays. Any other error than that a file does not exist keeps the state of the folder in
// which it occurs, and nothing else.
//
// # The folder of an address is the unit of work
//
// A walk finds the folders of addresses (walk.go). A folder is listed (listing.go,
// providerfolder.go, module.go), its releases are verified (release.go, package release), and
// the result is an immutable entry (entry.go): versions, problems, and the archives that have
// not been read yet. A queue reads these (queue.go, job.go), the memo remembers their
// digests, and the entry is made again. All entries with one namespace and name are a group,
// which chooses between spellings and merges hosted and mirrored versions. A Snapshot is an
// immutable map of groups. The documents that clients request are encoded once, in package
// offer. Readers take one Snapshot and need no lock. The package reads files through package
// tree only, knows no HTTP, and leaves OpenPGP to package signing.
//
// # Archives are read once
//
// Packages that write into a tree check archives while they arrive, with package archive, and
// pass the digests to scans (Digests).
package index
