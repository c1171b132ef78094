package index

import (
	"io/fs"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// maxDigests bounds how many packages are remembered. Each takes a few hundred bytes,
// until the next scan has taken it over.
const maxDigests = 4096

// Digests remembers what reading packages gave outside of scans, such as while they
// were published, so that scans do not read them again. A package is known by what
// identifies its file: size, times and inode. Renaming a file changes that; renaming
// the folder around it does not. The zero value is ready for use, also by several
// goroutines at once.
//
// A scan trusts it for a file of any age, though one that has just been written might
// change again without its times telling: nobody else writes to a file that is being
// published.
type Digests struct {
	mutex sync.Mutex
	known *simplelru.LRU[tree.Stamp, digest]
}

// AddPackage adds what CheckPackage found in the file that info is of. Where the file
// system has no inodes it adds nothing.
func (d *Digests) AddPackage(info fs.FileInfo, k archive.PackageDigest) { d.add(info, k.Digest) }

// AddModule is AddPackage for CheckModule.
func (d *Digests) AddModule(info fs.FileInfo, m archive.ModuleDigest) { d.add(info, m.Digest) }

func (d *Digests) add(info fs.FileInfo, read archive.Digest) {
	found := digest{Digest: read, stamp: tree.StampOf(info)}
	if found.stamp.Inode == 0 || found.H1 == "" { // a digest that no check has returned is empty
		return
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.known == nil {
		d.known, _ = simplelru.NewLRU[tree.Stamp, digest](maxDigests, nil) // it fails for a size below one
	}
	d.known.Add(found.stamp, found)
}

// get returns what is known of a file. A nil Digests knows nothing.
func (d *Digests) get(now tree.Stamp) (digest, bool) {
	if d == nil {
		return digest{}, false
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.known == nil {
		return digest{}, false
	}
	return d.known.Get(now)
}
