package index

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/cache"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// trustFor is how long a file of a Bucket that was found to be the one that was verified is
// taken to be still that one. Its bytes then come from the store: for providers, clients
// compare them with the digests in the registry's documents. Modules have no digests, so an
// archive that is replaced in the store is downloaded unverified for so long.
const trustFor = time.Minute

// unchangedObjects are the files of a Bucket that were looked at lately. The zero value is
// ready for use.
type unchangedObjects = cache.Cache[objectID, struct{}]

// An objectID is a file as it was verified.
type objectID struct {
	name string
	tree.Stamp
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
	_, err := s.shared.unchanged.Load(ctx, id, func(context.Context) (nothing struct{}, life time.Duration, err error) {
		info, err := bucket.Stat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nothing, 0, tree.ErrChanged
		case err != nil:
			return nothing, 0, tree.StoreError(err)
		case tree.StampOf(info) != id.Stamp:
			return nothing, 0, tree.ErrChanged
		}
		return nothing, trustFor, nil
	})
	if err != nil {
		return "", err
	}
	url, err := bucket.SignedURL(ctx, name, life)
	return url, tree.StoreError(err)
}
