package tree

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"time"
)

// SignsURLs reports whether the files lie in a Bucket, whose store can serve them.
func (p Part) SignsURLs() bool { return p.Bucket() != nil }

// CheckObject returns ErrChanged if a file in a Bucket does not have the stamp any more.
func (p Part) CheckObject(name string, s Stamp) error {
	info, err := p.Bucket().Stat(path.Join(p.Dir, name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ErrChanged
	case err != nil:
		return StoreError(err)
	case StampOf(info) != s:
		return ErrChanged
	}
	return nil
}

// SignedURL returns a URL at which the store of a Bucket gives a file to anyone during its
// life.
func (p Part) SignedURL(ctx context.Context, name string, life time.Duration) (string, error) {
	url, err := p.Bucket().SignedURL(ctx, path.Join(p.Dir, name), life)
	return url, StoreError(err)
}
