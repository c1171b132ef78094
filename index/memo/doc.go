// Package memo remembers what reading files gave, so that an index reads and verifies only
// what is new.
//
// A Record has what is known of one file, as it was when its Stamp was taken: another stamp
// means another content. A Store keeps the Memo of one instance across restarts. The
// instances that serve one tree exchange records as segments of a Shared memo.
//
// A memo is a convenience. Whoever has none, or a damaged one, reads the files again.
package memo
