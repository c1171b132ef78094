package tlog

import (
	"encoding/binary"
	"errors"

	sumdb "golang.org/x/mod/sumdb/tlog"
)

// BundleSize is the number of leaves in a full bundle, and of hashes in a full tile.
const BundleSize = 1 << tileHeight

const tileHeight = 8

// EncodeBundle writes entries as C2SP's tlog-tiles does: each with its length before it, in
// two bytes, the higher one first. No entry may be longer than MaxLeaf.
func EncodeBundle(entries []string) []byte {
	size := 0
	for _, e := range entries {
		size += 2 + len(e)
	}
	b := make([]byte, 0, size)
	for _, e := range entries {
		b = binary.BigEndian.AppendUint16(b, uint16(len(e)))
		b = append(b, e...)
	}
	return b
}

// DecodeBundle reads a bundle or a batch.
func DecodeBundle(b []byte) (entries []string, err error) {
	for len(b) > 0 {
		if len(b) < 2 {
			return nil, errCutOff
		}
		n := int(binary.BigEndian.Uint16(b))
		if b = b[2:]; len(b) < n {
			return nil, errCutOff
		}
		entries, b = append(entries, string(b[:n])), b[n:]
	}
	return entries, nil
}

// decodeFull reads a full bundle. ok is false for other content.
func decodeFull(b []byte) (entries []string, ok bool) {
	entries, err := DecodeBundle(b)
	return entries, err == nil && len(entries) == BundleSize
}

// decodeBatch reads the batch that begins with a number. It ends in the bundle that it begins
// in. ok is false for other content.
func decodeBatch(first int64, b []byte) (entries []string, ok bool) {
	entries, err := DecodeBundle(b)
	return entries, err == nil && len(entries) > 0 && first%BundleSize+int64(len(entries)) <= BundleSize
}

var errCutOff = errors.New("the entries are cut off")

// leavesOf reads the leaves of entries. An entry that this release does not understand, such as
// one with an event of a later release, has a hash and a number as any other, and no leaf: the
// Leaf is the zero value.
func leavesOf(entries []string) []Leaf {
	leaves := make([]Leaf, len(entries))
	for i, e := range entries {
		leaves[i], _ = ParseLeaf(e)
	}
	return leaves
}

// hashOf returns the hash of an entry in the tree.
func hashOf(entry string) sumdb.Hash { return sumdb.RecordHash([]byte(entry)) }
