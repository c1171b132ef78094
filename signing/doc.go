// Package signing reads, checks and makes the OpenPGP signatures that Terraform and
// OpenTofu require of a provider.
//
// # What is signed
//
// A client never checks a signature of a provider package. It checks the signature of
// the release's SHA256SUMS document, which in turn has the digests of the packages for
// every platform. The signature is detached and binary: the bytes of the packet, not
// the "-----BEGIN PGP SIGNATURE-----" text that most tools print first.
//
// # Who may sign
//
// A namespace has a keys file: the public keys whose signatures count, one armor block
// after another. Clients do not see that file. They receive a list of strings, and read
// only the first armor block of each string. A single string that they cannot read
// makes the whole list unusable. So [ReadKeyring] splits the file into exactly one
// block a key and makes sure that clients can read each of them. It leaves out the
// other keys, and says which and why. The packets of a key are passed on as they were
// published, never rebuilt: a self-signature covers them, and the same file gives the
// same text everywhere.
//
// # When a signature is good
//
// [Keyring.Verify] does what clients do, with the same library:
//
//   - of several copies of one key, the copy that expires last counts;
//   - keys are tried in the order of the file; a key that did not make the signature is
//     skipped, any other failure ends the search;
//   - sub-keys may sign if they are marked for signing;
//   - a file may have several signatures; the first one by the key that is being tried
//     counts;
//   - a revoked key, an expired signature and a signature dated in the future are
//     refused.
//
// Where clients disagree, the strictest of them decides. SHA-1 is accepted as clients
// accept it, since releases of earlier years are signed with it. A key that had expired
// before it signed is refused. A key that has expired since then is accepted, since it
// was valid when it signed. Its PublicKey says when it expired, and newer clients warn.
//
// # Signing for others
//
// A release without a signature is signed with the registry's own [Key]. Several
// instances may share that key and must then give identical answers, so a signature
// depends on the key and the document alone: its time is the key's creation time and it
// has no random salt. Keys whose algorithm needs a random number for every signature
// (DSA, ECDSA) are not accepted.
//
// [Generate] makes an RSA key, because Terraform 0.13 verifies no other kind.
package signing
