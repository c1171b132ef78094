// Package access says who may do what: which subjects may read, or publish,
// which providers and modules.
//
// # Subjects
//
// A [Subject] is whoever asks: an ID, such as the name of a token, an e-mail
// address or the `sub` of a CI job, and the groups it is in. One without an ID is
// anonymous, whatever its groups: nobody has vouched for them.
//
// # Addresses
//
// An [Address] is what is asked for: a provider NAMESPACE/TYPE or a module
// NAMESPACE/NAME/SYSTEM, and the hostname it is asked for under. It is the
// registry's own, or mirrored from the registry of that hostname. The same
// namespace in two registries belongs to two publishers, so a rule for one of
// them says nothing of the other.
//
// # Rules
//
// A [Rule] is a line:
//
//	allow|deny WHO read|publish PATTERN…
//
// WHO is one of these. IDs and the names of groups have a case.
//
//	anonymous         with allow everybody, with deny those without an ID
//	authenticated     those with an ID
//	group:NAME        those in the group
//	anything else     the one with this ID
//
// A * in an ID or in NAME stands for any run of characters, also for none:
// repo:acme/*:ref:refs/heads/main is the main branch of every repository of acme.
// By itself it is refused as an ID, since it does not say whether it is to be
// anonymous or authenticated.
//
// Neither right includes the other.
//
// # Patterns
//
// A pattern is [HOSTNAME/]NAMESPACE/NAME/SYSTEM, cut off after any part. It covers
// the address it spells and all below: acme is everything in the namespace, and
// so is acme/*. A * stands for any run of characters within a part. Case does not
// count.
//
//	acme                              the namespace, providers and modules
//	acme/vpc                          a provider, and a module for every system
//	acme/vpc/aws                      the module for one system
//	*/*/*                             all modules of the registry itself
//	*/*                               all that is the registry's own
//	registry.terraform.io/hashicorp   a namespace of another registry
//	*.example.com                     all asked for under such a hostname
//	*.*                               the same under any hostname with a dot
//	*                                 everything, mirrored as well
//
// The first part is a HOSTNAME when it has a dot or a colon in it or is localhost;
// no namespace can look like one. Its port, if not 443, is part of it, and a *
// stands for dots and ports as well. Without HOSTNAME a pattern covers the registry's
// own addresses, under every name it answers as, and no mirrored one: that
// somebody may read what the company publishes as hashicorp says nothing of what
// HashiCorp does.
//
// A HOSTNAME that is one of the registry's names, or a wildcard that covers one,
// is about the registry's own addresses, by whichever of its names they are asked
// for ([Rules.WithHostnames]).
//
// # The decision
//
// The first rule with the subject, the right and the address decides. Where there
// is none, it is denied. But what anonymous may do, everybody may: a subject is
// asked for only after that is settled, so that a token is never worth less than
// no token, which the holder could have left out anyway. With
//
//	allow anonymous     read acme/demo
//	deny  group:guests  read acme
//	allow authenticated read acme registry.terraform.io/hashicorp
//	allow ci-*          publish acme
//
// everybody may read the provider acme/demo, guests too. The rest of acme is for
// those who are known, but not for guests. What is mirrored of hashicorp is for
// all who are known, guests too: the rule that denies them something is about the
// registry's own acme only. Those whose ID begins with ci- may publish in acme;
// that they may also read there, the rule before says. No other namespace is
// anybody's.
//
// # Proofs
//
// Rules do not care how a subject is known. The package knows two ways of its
// own, tokens in a file and tokens of an OpenID Connect issuer. And it signs
// links, which open one file for a while, since clients send no credentials when
// they download one.
package access
