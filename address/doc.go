// Package address parses names: hostnames, the addresses of providers and modules,
// versions and their order, platforms, and the names of a release's files. No other
// package parses them.
//
// # Addresses
//
//	[HOSTNAME/]NAMESPACE/TYPE          a provider
//	[HOSTNAME/]NAMESPACE/NAME/SYSTEM   a module
//
// An address without HOSTNAME is hosted: the registry is its origin, under every name
// by which clients reach the registry. An address with HOSTNAME is mirrored from that
// registry. The first part is a HOSTNAME if it contains a dot or a colon or is
// "localhost" (IsHostname); no namespace looks like that.
//
// # Normal form
//
// Clients compare addresses in a normal form: lower case, hostnames in punycode and
// without the port 443. This package returns names only in that form, so values can be
// compared with == and used as map keys. Parsing is left to the clients' own libraries,
// since a pattern of our own would differ from them sooner or later. Names that are
// certainly in normal form skip the libraries, which saves allocations.
//
// # Versions
//
// A version has the strict form MAJOR.MINOR.PATCH[-PRERELEASE][+BUILD]. Versions
// are ordered as clients order them, newest first.
package address
