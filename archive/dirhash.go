package archive

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"maps"
	"slices"

	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A fileSum is the digest of a file's content. The hashes of a package are computed of the
// digests and the names of its files.
type fileSum = wire.SHA256

// newFileHash returns the hash of a file's content that sumOf takes.
func newFileHash() hash.Hash { return sha256.New() }

// sumOf returns the digest of what has been written to a hash.
func sumOf(h hash.Hash) (sum fileSum) {
	h.Sum(sum[:0])
	return sum
}

// H1 returns the hash of files by their names, as clients compute it of a folder.
func H1(sums map[string]wire.SHA256) string { return hashesOf(sums).H1() }

// hashesOf returns the hashes of files by their names.
func hashesOf(sums map[string]fileSum) wire.FileHashes {
	return hashFiles(slices.Collect(maps.Keys(sums)), func(name string) fileSum { return sums[name] })
}

// hashFiles is Hash1 of golang.org/x/mod/sumdb/dirhash for files whose digests are
// known: the original would read each of them once more.
func hashFiles(names []string, sum func(name string) fileSum) wire.FileHashes {
	slices.Sort(names)
	h := sha256.New()
	for _, name := range names {
		fmt.Fprintf(h, "%s  %s\n", sum(name), name)
	}
	return wire.FileHashes(sumOf(h).H1())
}
