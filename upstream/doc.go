// Package upstream is the client of one origin: a provider registry or a network
// mirror. Package fill brings what it fetches into a tree; package lockfile says
// what a project needs.
//
// # What is trusted
//
// A [Client] belongs to one [Origin]. It believes what that origin says over
// verified TLS about which versions there are, and nothing about their bytes: a
// [Release] is what a signed SHA256SUMS vouches for, by keys the caller pins or,
// without any, by those the origin sends; [Client.Download] compares what it
// received with that. What an origin cannot prove is marked as unsigned, and the
// caller decides.
//
// Nor is an origin trusted with the network the server stands in. Links and
// redirects to private addresses are refused unless the host is configured by
// name, and it is the address that is really dialled that counts. The token goes
// to the origin's own hosts only.
//
// # What an origin may cost
//
// Every document has a largest size and a longest time, all tries together, and a
// list of versions has at most so many. A package may take as long as it likes as
// long as bytes arrive, at a least rate. An origin that fails several times in a row
// is left alone for a while, and callers are told so at once.
//
// # What a client may cost
//
// Anybody may ask for anything. Clients ([ForClient]) wait for each origin in turn,
// and each has so much waiting at most.
//
// # Errors
//
// All failures are a [*Failure] of one kind that callers can tell with
// errors.Is. Their texts name hosts and statuses, never a URL or a token, and
// may be shown to clients. When the caller's context ends, its error is the kind;
// errors of the caller's writer come back wrapped.
package upstream
