package offer

import (
	"context"
	"errors"
	"path"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/cache"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// trustFor is how long a file in a Bucket is assumed to be unchanged after it was checked.
// Its bytes then come from the store: for providers, clients compare them with the digests
// in the registry's documents. Modules have no digests, so a module archive that is replaced
// in the store may be downloaded unverified for that time.
const trustFor = time.Minute

// SignedURLs makes URLs of files in a Bucket, and remembers which files were checked recently.
// The zero value is ready for use.
type SignedURLs struct {
	unchanged cache.Cache[objectID, bool] // whether the store sends the file encoded
}

// An objectID identifies a verified file.
type objectID struct {
	name string
	tree.Stamp
}

// CanRedirect reports whether a file lies in a Bucket in the form that clients download, so
// that the store can serve it.
func (f *File) CanRedirect(t *tree.Tree) bool {
	part, ok := f.Part(t)
	return ok && f.Immutable() && part.SignsURLs()
}

// URL returns a URL at which the store gives a file to anyone during its life. CanRedirect must
// be true for the file. The error is ErrChanged if the file is no longer the verified file, and
// ErrEncoded if the store sends it in another form, which is checked once a minute.
func (u *SignedURLs) URL(ctx context.Context, t *tree.Tree, f *File, life time.Duration) (string, error) {
	part, _ := f.Part(t)
	id := objectID{path.Join(part.Path(), f.Path()), f.Stamp()}
	encoded, err := u.unchanged.Load(ctx, id, func(context.Context) (bool, time.Duration, error) {
		err := part.CheckObject(f.Path(), id.Stamp)
		if errors.Is(err, tree.ErrEncoded) {
			return true, trustFor, nil
		}
		return false, trustFor, err
	})
	switch {
	case err != nil:
		return "", err
	case encoded:
		return "", tree.ErrEncoded
	}
	return part.SignedURL(ctx, f.Path(), life)
}
