package tlog

import (
	"context"
	"io/fs"
	"slices"

	sumdb "golang.org/x/mod/sumdb/tlog"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// A Head is a log as a signed checkpoint has it. It is immutable.
type Head struct {
	Checkpoint
	Signed []byte // the checkpoint with its signatures

	edge *edge
}

// A NumberedLeaf is a leaf at its place in a log.
type NumberedLeaf struct {
	Leaf
	Number int64
	Text   string
}

// Leaves returns the leaves of a version that a head has, the oldest first, with their
// numbers.
func (l *Log) Leaves(ctx context.Context, h *Head, a address.Address, version string) (leaves []NumberedLeaf, err error) {
	numbers, _ := l.ledger.leavesOf(a, version, h.Size)
	for _, n := range numbers {
		entry, err := l.files.entry(ctx, h.edge, n)
		if err != nil {
			return nil, err
		}
		leaf, err := ParseLeaf(entry)
		if err != nil {
			return nil, err
		}
		if leaf.Address == a && leaf.Version == version { // and no other one with that digest
			leaves = append(leaves, NumberedLeaf{Number: n, Text: entry, Leaf: leaf})
		}
	}
	return leaves, nil
}

// Latest returns the last entries of a head, the latest first. It skips entries that are no
// leaves.
func (l *Log) Latest(ctx context.Context, h *Head, entries int64) (leaves []NumberedLeaf, err error) {
	for n := h.Size - 1; n >= max(0, h.Size-entries); n-- {
		entry, err := l.files.entry(ctx, h.edge, n)
		if err != nil {
			return nil, err
		}
		if leaf, err := ParseLeaf(entry); err == nil {
			leaves = append(leaves, NumberedLeaf{Number: n, Text: entry, Leaf: leaf})
		}
	}
	return leaves, nil
}

// Addresses returns the addresses of the leaves of a head from a number on. It skips entries
// that are no leaves.
func (l *Log) Addresses(ctx context.Context, h *Head, from int64) (addresses []address.Address, err error) {
	for n := from; n < h.Size; n++ {
		entry, err := l.files.entry(ctx, h.edge, n)
		if err != nil {
			return nil, err
		}
		leaf, err := ParseLeaf(entry)
		if err == nil && !slices.Contains(addresses, leaf.Address) {
			addresses = append(addresses, leaf.Address)
		}
	}
	return addresses, nil
}

// Lookup returns the leaves of a version under several addresses, in that order, and proofs
// that a head has them.
func (l *Log) Lookup(ctx context.Context, h *Head, version string, addresses ...address.Address) (Lookup, error) {
	found := Lookup{Signed: h.Signed}
	for _, a := range addresses {
		leaves, err := l.Leaves(ctx, h, a, version)
		if err != nil {
			return Lookup{}, err
		}
		for _, leaf := range leaves {
			p, err := l.Prove(ctx, h, leaf.Number)
			if err != nil {
				return Lookup{}, err
			}
			found.Entries = append(found.Entries, ProvenEntry{leaf.Text, p})
		}
	}
	return found, nil
}

// Prove returns the proof that a head has the entry with a number.
func (l *Log) Prove(ctx context.Context, h *Head, number int64) (Proof, error) {
	hashes, err := sumdb.ProveRecord(h.Size, number, l.files.hashes(ctx, h.edge))
	return Proof{Index: number, Hashes: hashes}, err
}

// Consistency returns the proof that a head begins with its first entries.
func (l *Log) Consistency(ctx context.Context, h *Head, size int64) (Consistency, error) {
	if size == 0 || size == h.Size {
		return Consistency{}, nil
	}
	hashes, err := sumdb.ProveTree(h.Size, size, l.files.hashes(ctx, h.edge))
	return Consistency{Hashes: hashes}, err
}

// Tile returns a tile or a bundle of a head, perhaps a partial one. The error is
// fs.ErrNotExist if the head has none like that.
func (l *Log) Tile(ctx context.Context, h *Head, t sumdb.Tile) ([]byte, error) {
	level := max(t.L, 0)
	width := min(h.Size>>(tileHeight*level)-t.N<<tileHeight, BundleSize)
	if t.H != tileHeight || t.L >= 8 || t.N > h.Size || int64(t.W) > width {
		return nil, fs.ErrNotExist
	}
	if t.L < 0 {
		entries := h.edge.entries
		if t.N < h.edge.full(0) {
			var err error
			if entries, err = l.files.signedBundle(ctx, t.N); err != nil {
				return nil, err
			}
		}
		return EncodeBundle(entries[:t.W]), nil
	}
	return sumdb.ReadTileData(t, l.files.hashes(ctx, h.edge))
}
