// Package access decides which subjects may read, publish or manage which providers and
// modules.
//
// # Subjects
//
// A [Subject] is the sender of a request: an ID, such as the name of a token, an
// e-mail address or the `sub` of a CI job, and the groups it is in. A subject
// without an ID is anonymous and has no groups, since it is not authenticated.
//
// # Resources
//
// A [Resource] is the target of a request: a provider NAMESPACE/TYPE or a module
// NAMESPACE/NAME/SYSTEM, and the hostname under which it is requested. It is hosted by
// the registry itself, or mirrored from the registry of that hostname. The same
// namespace in two registries belongs to two publishers, so a rule about one of them
// does not apply to the other.
//
// # Rules
//
// A [Rule] is a line:
//
//	allow|deny WHO read|publish|manage PATTERN…
//
// WHO is one of these. IDs and names of groups are case-sensitive.
//
//	anonymous         after allow: everyone; after deny: subjects without an ID
//	authenticated     subjects with an ID
//	group:NAME        members of the group
//	anything else     the subject with this ID
//
// A * in an ID or in NAME matches any run of characters, even an empty one:
// repo:acme/*:ref:refs/heads/main is the main branch of every repository of acme. A *
// alone is not accepted as an ID, since it does not say whether anonymous or
// authenticated is meant.
//
// The right to manage includes the right to publish. A rule that allows a subject to
// manage allows it to publish, too. A rule that denies the right to publish denies the
// right to manage, too. The right to read is independent of both.
//
// # Patterns
//
// A pattern is [HOSTNAME/]NAMESPACE/NAME/SYSTEM, or the beginning of it up to any part.
// It covers the resources that it names and everything below: acme covers the whole
// namespace, and so does acme/*. A * matches any run of characters within a part.
// Patterns are case-insensitive.
//
//	acme                              the namespace, providers and modules
//	acme/vpc                          a provider, and a module for every system
//	acme/vpc/aws                      the module for one system
//	*/*/*                             all hosted modules
//	*/*                               everything hosted
//	registry.terraform.io/hashicorp   a namespace of another registry
//	*.example.com                     everything requested under such a hostname
//	*.*                               the same under any hostname with a dot
//	*                                 everything, hosted and mirrored
//
// The first part is a HOSTNAME if it contains a dot or a colon or is localhost; no
// namespace looks like that. A port other than 443 is part of the hostname, and a * in
// a hostname also matches dots and ports. Without HOSTNAME a pattern covers hosted
// resources, under every name of the registry, and no mirrored ones: the right to read
// the hashicorp namespace of the company is not the right to read the namespace of
// HashiCorp.
//
// If HOSTNAME is one of the registry's names, or a wildcard that matches one, the
// pattern covers hosted resources under all names of the registry
// ([Rules.WithHostnames]).
//
// # Decisions
//
// The first rule that applies to the subject, the right and the resource decides. If no
// rule applies, the request is denied. But everyone may do what anonymous may do, and
// this is decided first: a request with a token is never denied if the same request
// without the token would be allowed. With
//
//	allow anonymous     read acme/demo
//	deny  group:guests  read acme
//	allow authenticated read acme registry.terraform.io/hashicorp
//	allow ci-*          publish acme
//
// everyone may read the provider acme/demo, including guests. All authenticated
// subjects except guests may read the rest of acme. All authenticated subjects,
// including guests, may read the mirrored hashicorp: the rule that denies guests access
// is about the hosted acme only. Subjects whose ID begins with ci- may publish in acme,
// and may read there because of the rule before. All other requests are denied.
//
// # Authentication
//
// Rules do not depend on how a subject was authenticated. Packages tokenfile and oidc
// implement two ways. Clients download files without credentials, so [Links] signs
// links that give access to one file each for a limited time. [RotatingLinkKeys]
// maintains the keys for them.
package access
