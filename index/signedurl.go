package index

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/sync/singleflight"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// trustFor is how long a file of a Bucket that was found to be the one that was verified is
// taken to be still that one. Its bytes then come from the store: for providers, clients
// compare them with the digests in the registry's documents. Modules have no digests, so an
// archive that is replaced in the store is downloaded unverified for so long.
const trustFor = time.Minute

// maxTrusted is how many files of a Bucket are known to be unchanged.
const maxTrusted = 4096

// unchangedObjects are the files of a Bucket that were looked at lately. The zero value is
// ready for use.
type unchangedObjects struct {
	looks singleflight.Group

	mutex sync.Mutex
	known *simplelru.LRU[objectID, time.Time] // when it was looked at
}

// An objectID is a file as it was verified.
type objectID struct {
	name string
	tree.Stamp
}

func (o *unchangedObjects) trusted(id objectID, now time.Time) bool {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.known == nil {
		o.known, _ = simplelru.NewLRU[objectID, time.Time](maxTrusted, nil) // it fails for a size below one
	}
	at, ok := o.known.Get(id)
	return ok && now.Sub(at) < trustFor
}

func (o *unchangedObjects) trust(id objectID, now time.Time) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.known.Add(id, now)
}

// CanRedirect reports whether a file lies in a Bucket as it is served, so that the store
// can serve it.
func (s *Snapshot) CanRedirect(f *File) bool {
	return f.Immutable() && f.in != nil && f.in(&s.tree).Bucket() != nil
}

// SignedURL returns a URL under which the store of a Bucket gives a file that CanRedirect to
// anyone for so long. The error is ErrChanged if it is no longer the file that was verified,
// which is looked at once a minute.
func (s *Snapshot) SignedURL(ctx context.Context, f *File, life time.Duration) (string, error) {
	part := f.in(&s.tree)
	bucket, name := part.Bucket(), path.Join(part.Dir, f.Path())
	id := objectID{name, f.stamp()}
	if objects := &s.shared.unchanged; !objects.trusted(id, time.Now()) {
		_, err, _ := objects.looks.Do(fmt.Sprint(id), func() (any, error) {
			info, err := bucket.Stat(name)
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil, tree.ErrChanged
			case err != nil:
				return nil, tree.StoreError(err)
			case tree.StampOf(info) != id.Stamp:
				return nil, tree.ErrChanged
			}
			objects.trust(id, time.Now())
			return nil, nil
		})
		if err != nil {
			return "", err
		}
	}
	url, err := bucket.SignedURL(ctx, name, life)
	return url, tree.StoreError(err)
}
