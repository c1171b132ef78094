// Package memo remembers the results of reading files, so that an index reads and verifies
// only new files.
//
// A Record has the results for one file, as it was when its Stamp was taken: another stamp
// means another content. A Store keeps the Memo of one instance across restarts. The
// instances that serve one tree exchange records as segments of a Shared memo.
//
// A memo is a convenience. An index without one, or with a damaged one, reads the files
// again.
package memo
