package git

import (
	"context"
	"os"
	"path/filepath"
)

// A Checkout is a folder with a commit of a source and the contents of its files, but for large ones.
// Fetch takes from it what it has (Source.From). It may be read by several at a time.
type Checkout struct {
	// Size is about how many bytes it takes on the disk, as far as its owner knows.
	Size int64

	commit, format, objects string
}

// allButLarge is the option to fetch the contents of all files but those that no module has. Each of
// these is fetched when it is needed after all.
const allButLarge = "--filter=blob:limit=1m"

// FetchAll fetches a whole commit of a source, which its Ref names, for several that need parts of it.
// Git writes only to folder, which FetchAll makes, and which the caller removes when the checkout is no
// longer used.
func FetchAll(ctx context.Context, s Source, folder string) (*Checkout, error) {
	c := &Checkout{commit: s.Ref, format: "sha1"}
	switch {
	case !IsCommit(s.Ref):
		return nil, ErrNoCommit
	case len(s.Ref) == 64:
		c.format = "sha256"
	}
	if err := s.prepare(folder); err != nil {
		return nil, err
	}
	r, err := s.connect(ctx, folder, c.format)
	if err != nil {
		return nil, err
	}
	if err := r.fetch(ctx, []string{s.Ref}, "--depth=1", allButLarge); err != nil {
		return nil, err
	}
	if commit, err := r.commit(ctx, s.Ref); err != nil || commit != s.Ref {
		return nil, ErrNoCommit
	}
	c.objects, err = filepath.Abs(filepath.Join(r.dir, "objects"))
	return c, err
}

// borrow makes a repository that has the objects of the source's checkout, without asking the source.
func (s Source) borrow(ctx context.Context, folder string) (r *Repository, commit string, err error) {
	if r, err = s.connect(ctx, folder, s.From.format); err != nil {
		return nil, "", err
	}
	alternates := filepath.Join(r.dir, "objects", "info", "alternates")
	if err := os.WriteFile(alternates, []byte(s.From.objects+"\n"), 0o600); err != nil {
		return nil, "", err
	}
	r.thin = []string{s.Ref}
	commit, err = r.commit(ctx, s.Ref)
	return r, commit, err
}
