// Package upstream is the client of one origin: a registry of providers and modules, or
// a network mirror. Package fill brings what it fetches into a tree.
//
// # What is trusted
//
// A [Client] belongs to one [Origin]. It accepts that origin's list of versions over
// verified TLS, and nothing about their bytes: a [Release] is what a signed
// SHA256SUMS vouches for, verified with the keys the caller pins or, without any,
// those the origin sends; [Client.Download] compares the package with that. What an
// origin cannot prove is marked as unsigned, and the caller decides.
//
// Modules are not signed. A [ModuleSource] is where the origin says over verified TLS
// that the files of a version are; [Client.FetchModule] brings them, and with them
// their commit or digest, by which the caller can tell when they change. What is in an
// archive or a repository is unpacked and never run, and no link in it leads out.
//
// An origin cannot reach the server's private network either. Links and redirects to
// private addresses are refused unless the host is configured by name, and the check
// is made on the address that is dialled.
//
// # What leads where
//
// What is fetched for a module may be read by more people than its source. The token of
// the origin, the credentials of a [Host], and the exemption of configured hosts from the
// check of addresses are therefore used only for locations that the origin itself named:
// in an answer of its own hosts, without a detour by others. From such a location
//
//   - a redirect on the same host, and a location that its answer names there in
//     X-Terraform-Get, are as good as that;
//   - a submodule on the same host keeps the exemption. It gets credentials if Host.Allow
//     has both its repository and the one that names it: on a host that strangers use,
//     too, the registry names their repositories, and they name any they like;
//   - a redirect to another host, from one that the operator configured, keeps the
//     exemption, without credentials;
//   - all else keeps nothing, and gets nothing back where it comes to the same host again.
//
// With Host.Allow, credentials are only for what it has, and what it has not can name
// nothing that gets them. Hosts are compared with their ports, and paths as far as all
// servers agree on them.
//
// Modules may come from git repositories. The git binary gets them through a relay in
// this process, which sends its requests as all others are sent: git itself connects to
// no server, sees no credentials, and nothing of a repository is run.
//
// # What an origin may cost
//
// Every document has a maximum size and one timeout for all attempts, and a list has
// a maximum number of versions. A package has no overall timeout as long as bytes
// keep arriving at a minimum rate. After several consecutive failures an origin gets
// no requests for a while, and callers get an error at once.
//
// # What a client may cost
//
// Any client may request anything. Clients ([ForClient]) take turns at each origin,
// and each may have a limited number of requests waiting.
//
// # Errors
//
// All failures are a [*Failure] of one kind, which callers match with errors.Is.
// Their texts name hosts and statuses, never a URL or a token, and may be shown to
// clients. When the caller's context ends, its error is the kind; errors of the
// caller's writer are returned wrapped.
package upstream
