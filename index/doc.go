// Package index knows what is on disk: it reads a tree of files and says which
// providers and modules it offers, byte for byte as verified.
//
// # A path is an address
//
//	providers/[HOSTNAME/]NAMESPACE/TYPE/terraform-provider-TYPE_VERSION_OS_ARCH.zip
//	providers/[HOSTNAME/]NAMESPACE/TYPE/VERSION/…the same names…
//	modules/[HOSTNAME/]NAMESPACE/NAME/SYSTEM/VERSION.tar.gz, .tgz, .zip or a folder
//	keys/[HOSTNAME/]NAMESPACE.asc
//
// There is no catalogue beside the files that could disagree with them. A
// folder whose name has a dot or a port, or is "localhost", is a HOSTNAME; no
// namespace can look like one. What lies under no HOSTNAME belongs to the
// registry itself, by whatever name it is asked.
//
// # Nothing is offered that a client would refuse
//
// Names and versions are parsed by the clients' own libraries. A package must
// be a zip that can be read to its end, with the provider in it, with the
// sha256 that SHA256SUMS lists. A SHA256SUMS must have a form that no client
// stumbles over, and its signature, where there is one, must verify. What
// fails is withheld and named in the Report, with a Reason and a sentence that
// says what to do; everything else is offered all the same. Only a root, or a
// part elsewhere, that cannot be opened fails a scan, and then the Snapshot before
// it stays.
//
// # Data flows forward
//
// A scan walks the tree, digests archives it has not seen before, verifies
// releases, encodes the documents clients will ask for, and ends in an
// immutable Snapshot. Readers take one Snapshot and need no lock. The package
// reads files through afero only and knows neither HTTP nor OpenPGP: the latter
// comes in through the Keyring and Signer interfaces.
package index
