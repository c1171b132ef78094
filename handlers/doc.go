// Package handlers is what is on the wire: service discovery, the provider
// registry, the module registry and the provider network mirror, one file each.
//
// A Registry reads one index.Snapshot per request and answers from memory; only
// archives touch a file. Where a published protocol and the real clients
// disagree, the clients win; the numbers in comments are those of the
// conformance checklist in the tests.
package handlers
