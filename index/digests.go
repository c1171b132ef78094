package index

import (
	"io/fs"

	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/cache"
	"github.com/caddy-terraform/caddy-terraform-registry/index/memo"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// Digests remembers the digests of packages that were read outside of scans, such as while
// they were published, so that scans do not read them again. A package is known by what
// identifies its file: size, times and inode. Renaming a file changes that; renaming
// the folder around it does not. The zero value is ready for use, also by several
// goroutines at once.
//
// A scan trusts it for a file of any age, though one that has just been written might
// change again without its times telling: only the registry writes to a file that is
// being published.
//
// Only the packages used last are remembered. Each takes a few hundred bytes, and is no
// longer needed once a scan has taken it over.
type Digests struct {
	known cache.Cache[tree.Stamp, memo.Record]
}

// AddPackage adds what CheckPackage found in the file that info is of. Where the file
// system has no inodes it adds nothing.
func (d *Digests) AddPackage(info fs.FileInfo, k archive.PackageDigest) { d.add(info, k.Digest) }

// AddModule is AddPackage for CheckModule.
func (d *Digests) AddModule(info fs.FileInfo, m archive.ModuleDigest) { d.add(info, m.Digest) }

func (d *Digests) add(info fs.FileInfo, read archive.Digest) {
	found := memo.Record{Digest: read, Stamp: tree.StampOf(info)}
	if found.Stamp.Inode == 0 || found.H1 == "" { // a digest that no check has returned is empty
		return
	}
	d.known.Put(found.Stamp, found, cache.UntilEvicted)
}

// get returns what is known of a file. A nil Digests knows nothing.
func (d *Digests) get(now tree.Stamp) (memo.Record, bool) {
	if d == nil {
		return memo.Record{}, false
	}
	return d.known.Get(now)
}
