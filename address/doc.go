// Package address knows what things are called: hostnames, the addresses of
// providers and modules, versions and their order, platforms, and the names of
// a release's files. Every other package parses names here and nowhere else.
//
// # Addresses
//
//	[HOSTNAME/]NAMESPACE/TYPE          a provider
//	[HOSTNAME/]NAMESPACE/NAME/SYSTEM   a module
//
// An address without HOSTNAME is hosted: the registry is its origin, under every
// name the registry answers as. With HOSTNAME it is mirrored from that registry.
// The first part is a HOSTNAME if it has a dot or a colon in it or is
// "localhost" (IsHostname); no namespace looks like that.
//
// # Normal form
//
// Clients compare addresses in a normal form: lower case, hostnames in punycode
// and without the port 443. Everything this package returns is in that form, so
// values can be compared with == and used as map keys. Parsing is left to the
// clients' own libraries, since a pattern of our own would differ from them
// sooner or later; names that are evidently in normal form skip them, which
// costs no allocation.
//
// # Versions
//
// A version has the strict form MAJOR.MINOR.PATCH[-PRERELEASE][+BUILD]. Versions
// are ordered as clients order them, newest first.
package address
