package memo

import (
	"io/fs"

	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/cache"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// Digests remembers the digests of packages that were read outside of scans, such as while
// they were published, so that scans do not read them again. A package is identified by its
// file's size, times and inode. Renaming a file changes these; renaming the folder around it
// does not. The zero value is ready for use, even by several goroutines at once.
//
// A scan trusts a digest for a file of any age, though a file that has just been written
// might change again without new times: only the registry writes to a file that is being
// published.
//
// Only the packages used last are remembered. Each takes a few hundred bytes, and is no
// longer needed once a scan has read it from here.
type Digests struct {
	known cache.Cache[tree.Stamp, Record]
}

// Add adds the result of CheckPackage or CheckModule for the file with that info. If the file
// system has no inodes, it adds nothing.
func (d *Digests) Add(info fs.FileInfo, read archive.Digest) {
	found := Record{Digest: read, Stamp: tree.StampOf(info)}
	if found.Stamp.Inode == 0 || found.FileHashes == "" { // a digest that no check has returned is empty
		return
	}
	d.known.Put(found.Stamp, found, cache.UntilEvicted)
}

// Get returns the digest of the file with that stamp. A nil Digests is empty.
func (d *Digests) Get(now tree.Stamp) (Record, bool) {
	if d == nil {
		return Record{}, false
	}
	return d.known.Get(now)
}
