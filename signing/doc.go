// Package signing reads, checks and makes the OpenPGP signatures that Terraform
// and OpenTofu demand of a provider.
//
// # What is signed
//
// A client never checks a signature over a provider package. It checks one over
// the release's SHA256SUMS document, which in turn vouches for the packages of
// every platform. The signature is detached and binary: the bytes of the
// packet, not the "-----BEGIN PGP SIGNATURE-----" text most tools print first.
//
// # Who may sign
//
// A namespace has a keys file: the public keys whose signatures count, one
// armor block after another. Clients do not see that file. They are handed a
// list of strings, of each string they read the first armor block and nothing
// behind it, and a single string they cannot read spoils the whole list. So
// [ReadKeyring] cuts the file into exactly one block a key, makes sure that
// each of them can be read, and leaves out those that cannot, saying which and
// why. A key's packets are passed on as they were published, never rebuilt: a
// self-signature covers them, and the same file gives the same text everywhere.
//
// # When a signature is good
//
// [Keyring.Verify] does what clients do, with the library they do it with:
//
//   - of several copies of one key the one that expires last counts;
//   - keys are tried in the order of the file; one that did not make the
//     signature is passed over, any other failure ends the search;
//   - sub-keys may sign, if they are marked for signing;
//   - one file may hold several signatures; the first one made by the key that
//     is being tried counts;
//   - a revoked key, a signature past its own lifetime and a signature dated in
//     the future are refused.
//
// Where clients disagree, the strictest of them decides. SHA-1 is
// accepted as they accept it: releases of earlier years are signed with it. A key
// that had expired before it signed is refused. A key that expired since is
// accepted, since it was valid when it signed; its PublicKey says since when,
// and newer clients warn.
//
// # Signing for others
//
// A release without a signature is signed with the registry's own [Key]. Several
// instances may share that key and must then give identical answers, so a
// signature is a function of the key and the document alone: its time is the
// key's creation time, it holds no random salt, and keys whose algorithm needs a
// random number for every signature (DSA, ECDSA) are not accepted.
//
// [Generate] makes an RSA key, the only kind that Terraform 0.13 verifies as
// well.
package signing
