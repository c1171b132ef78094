// Package tlog is a transparency log: a list of everything that a registry has offered, to
// which entries can be added and in which none can be changed unnoticed.
//
// An entry of the log is a Leaf, a line of text: the version of an address that was offered,
// the time, and the hashes. The hashes of all leaves form a Merkle tree (RFC 6962). Its root
// stands for the whole list, and a Checkpoint is the root with the number of leaves, signed.
// A reader who has a checkpoint can check
//
//   - that a leaf is in the list, with a Proof of a few hashes,
//   - that a later checkpoint has the same leaves at its beginning, with Consistency.
//
// Both are small, because a leaf's hash is combined with one hash at each level of the tree.
// The formats are C2SP's (tlog-checkpoint, tlog-tiles, tlog-proof, signed-note), so
// programs of others can read a log. The hashes are computed by golang.org/x/mod/sumdb/tlog,
// the checkpoint is signed by golang.org/x/mod/sumdb/note.
//
// # Files
//
// A Log lies in a Store, which several instances may share:
//
//	checkpoint               the newest checkpoint, for readers
//	key                      the public key that the log was begun with, and an ID of the Store
//	begun                    there once all is entered that was offered before the log
//	batch/N                  leaves from number N on, as they were added, of one bundle
//	tile/entries/x001/234    the 256 leaves from number 1234·256 on: a bundle
//	tile/L/x001/234          256 hashes of level L·8 of the tree: a tile
//
// A batch is created by an operation that fails if the file exists. So each number
// has one batch, of the instance that came first. An instance that came second reads the batch
// and tries again. All else follows from the batches: all instances write the same bundles and
// tiles, and no instance can sign another root for a size that has been signed before.
//
// A batch goes when full bundles have all of its leaves. An instance that was suspended
// meanwhile may create it again, with other leaves. Such a batch is told by the bundle that
// has its first leaf: every leaf has random bytes, so the two differ (Log.batch).
//
// Partial tiles and bundles are not stored. They are the beginnings of full ones, or of what
// a Head has.
//
// A log that takes the place of another one begins with a Succession, which has the newest
// checkpoint of that one.
//
// # What fails closed
//
// Nothing is signed before it is stored. Nothing is added while the Store is behind the newest
// checkpoint of the Anchor, which lies elsewhere: the Store may have been restored from a
// backup, and the numbers that are missing in it have been signed (ErrBehind). Nothing is
// added after a root that differs from a signed one (ErrForked). Reading goes on.
package tlog
