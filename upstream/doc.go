// Package upstream implements the client of one origin: a registry of providers and
// modules, or a network mirror. Package pull stores the fetched files in a tree.
//
// # What is trusted
//
// A [Client] belongs to one [Origin]. It accepts the origin's list of versions over
// verified TLS, but not the bytes of the versions. A [Release] has a signed SHA256SUMS,
// verified with the keys that the caller pins or, without pinned keys, with the keys
// that the origin sends. [Client.Download] compares the package with SHA256SUMS. A
// release that an origin cannot prove is marked as unsigned, and the caller decides.
//
// Modules are not signed. A [ModuleSource] is the location of the files of a version,
// according to the origin over verified TLS. [Client.FetchModule] fetches the files,
// with their commit or digest, by which the caller can tell when they change. The files
// of an archive or a repository are unpacked and never run, and no link in them leads
// out.
//
// An origin cannot reach the server's private network either. Links and redirects to
// private addresses are refused unless the host is configured by name (guard.go). The
// check applies to the address that is dialled.
//
// # Which locations are trusted
//
// The files of a module may be read by more people than its source. The token of the
// origin, the credentials of a [Host], and the exemption of configured hosts from the
// check of addresses are therefore used only for locations that the origin itself
// named: in an answer of its own hosts, without a detour through other hosts. From such
// a location
//
//   - a redirect on the same host, and a location on the same host that its answer
//     names in X-Terraform-Get, are trusted like the location itself;
//   - a submodule on the same host keeps the exemption. It gets credentials if
//     Host.Allow has both its repository and the repository that names it. On a host
//     that is also used by strangers, the registry names the repositories of strangers,
//     which can name any other repository;
//   - a redirect to another host keeps the exemption, without credentials, if the
//     operator configured the redirecting host;
//   - all other locations keep nothing, and regain nothing if they lead to the same
//     host again.
//
// With Host.Allow, credentials are used only for the repositories in it, and other
// repositories cannot name anything that gets credentials. Hosts are compared with
// their ports, and paths as far as all servers agree on them.
//
// Modules may come from git repositories. The git binary fetches them through a relay
// in this process, which sends its requests like all other requests. Git itself does
// not connect to any server or see any credentials, and nothing from a repository is
// run.
//
// # Limits for an origin
//
// Every document has a maximum size and one timeout for all attempts, and a list has
// a maximum number of versions. A package has no overall timeout as long as bytes
// keep arriving at a minimum rate. After several consecutive failures a host gets no
// requests for a while, and callers get an error at once (breaker.go).
//
// # Limits for a client
//
// Any client may request anything. Clients ([ForClient]) take turns at each origin, and
// the number of waiting requests of each client is limited.
//
// # Errors
//
// All failures are a [*Failure] of one kind, which callers match with errors.Is. Their
// texts name hosts and statuses, never a URL or a token, and may be shown to clients.
// If the caller's context ends, its error is the kind. Errors of the caller's writer
// are returned wrapped.
package upstream
