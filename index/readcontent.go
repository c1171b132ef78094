package index

import (
	"context"
	"io"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index/content"
	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
	"github.com/caddy-terraform/caddy-terraform-registry/index/offer"
)

// Open opens f as it was verified. The error is ErrChanged if the file on the disk has
// changed since.
func (s *Snapshot) Open(f *File) (*OpenFile, error) { return f.Open(&s.tree) }

// OpenRange opens f for reading a part of it: see File.OpenRange.
func (s *Snapshot) OpenRange(f *File) (*OpenFile, error) { return f.OpenRange(&s.tree) }

// Describe returns what a module says about itself: see content.Reader. The error is
// ErrChanged when the files are no longer those that were verified.
func (s *Snapshot) Describe(ctx context.Context, v *ModuleVersion) (*moduledoc.Package, error) {
	return s.content.Describe(ctx, s.contentOf(v))
}

// ReadModuleFile returns a file of a module's package, by its path from the root module
// with slashes. The error is fs.ErrNotExist if there is no such file,
// content.ErrFileTooLarge, or ErrChanged.
func (s *Snapshot) ReadModuleFile(ctx context.Context, v *ModuleVersion, name string) ([]byte, error) {
	return s.content.ReadModuleFile(ctx, s.contentOf(v), name)
}

// ListModule lists the files of a module's package: see content.Reader. The error is
// ErrChanged when the files are no longer those that were verified.
func (s *Snapshot) ListModule(ctx context.Context, v *ModuleVersion) (*content.Files, error) {
	return s.content.ListModule(ctx, s.contentOf(v))
}

func (s *Snapshot) contentOf(v *ModuleVersion) content.Module {
	walk := func(ctx context.Context, wants func(string) bool, visit func(string, io.Reader) error) (complete bool, err error) {
		return v.EachFile(ctx, &s.tree, wants, visit)
	}
	return content.Module{Digest: v.Archive.SHA256, Folder: v.Folder, Walk: walk}
}

// EachModuleFile calls visit with the files of a module's package whose names are
// wanted, in the order in which they are packed: of several with one name, clients have
// the last. Symlinks are left out. The error is ErrChanged when the package is no longer
// the one that was verified, or an error of visit.
func (s *Snapshot) EachModuleFile(ctx context.Context, v *ModuleVersion, wants func(name string) bool, visit func(name string, r io.Reader) error) error {
	complete, err := v.EachFile(ctx, &s.tree, wants, visit)
	return offer.RequireWhole(complete, err)
}

// Docs lists the documentation of a release; nil if there is none. The list is kept until
// the next scan.
func (s *Snapshot) Docs(ctx context.Context, r *Release) (*content.Docs, error) {
	if r.Docs() == "" {
		return nil, nil
	}
	return s.content.Docs(ctx, s.tree.Providers, r.Docs(), s.scanned)
}

// ReadDoc returns the text of a page, without what it says about itself. It is cut if it
// is too long. The error is fs.ErrNotExist if the file has been removed meanwhile.
func (s *Snapshot) ReadDoc(ctx context.Context, p *content.DocPage) (text string, cut bool, err error) {
	return s.content.ReadDoc(ctx, s.tree.Providers, p)
}

// CanRedirect reports whether the store of a Bucket can serve a file.
func (s *Snapshot) CanRedirect(f *File) bool { return f.CanRedirect(&s.tree) }

// SignedURL returns a URL at which the store gives a file to anyone during its life.
// CanRedirect must be true for the file. The error is ErrChanged if the file has changed, and
// ErrEncoded if clients would get other bytes from the store.
func (s *Snapshot) SignedURL(ctx context.Context, f *File, life time.Duration) (string, error) {
	return s.caches.signedURLs.URL(ctx, &s.tree, f, life)
}
