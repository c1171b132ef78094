package index

import (
	"context"
	"fmt"
	"io"

	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/index/content"
	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

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
		return s.eachModuleFile(ctx, v, wants, visit)
	}
	return content.Module{Digest: v.Archive.SHA256, Folder: v.Folder, Walk: walk}
}

// eachModuleFile calls visit with the files of a module's package whose names are
// wanted. It is not complete if the package unpacks to more than is read.
func (s *Snapshot) eachModuleFile(ctx context.Context, v *ModuleVersion, wants func(name string) bool, visit func(name string, r io.Reader) error) (complete bool, err error) {
	defer func() {
		if err != nil && ctx.Err() == nil {
			err = tree.WithoutPath(err)
		}
	}()
	if v.Archive.IsFolder() {
		return true, s.eachFileOfFolder(ctx, v.Archive, wants, visit)
	}
	f, err := s.Open(v.Archive)
	if err != nil {
		return false, err
	}
	defer f.Close()
	if v.Archive.ContentType == zipType {
		complete, err = true, archive.WalkZip(ctx, f.ReadSeekCloser, v.Archive.Size, wants, visit)
	} else {
		complete, err = archive.WalkTarGz(ctx, f, content.MaxUnpacked, wants, visit)
	}
	if err != nil {
		return false, err
	}
	return complete, f.Unchanged()
}

func (s *Snapshot) eachFileOfFolder(ctx context.Context, a *File, wants func(string) bool, visit func(string, io.Reader) error) error {
	return archive.WalkFolder(ctx, a.in(&s.tree), a.made.packed, wants, visit)
}

// EachModuleFile calls visit with the files of a module's package whose names are
// wanted, in the order in which they are packed: of several with one name, clients have
// the last. Symlinks are left out. The error is ErrChanged when the package is no longer
// the one that was verified, or that of visit.
func (s *Snapshot) EachModuleFile(ctx context.Context, v *ModuleVersion, wants func(name string) bool, visit func(name string, r io.Reader) error) error {
	complete, err := s.eachModuleFile(ctx, v, wants, visit)
	return requireWhole(complete, err)
}

// EachModuleFile is like Snapshot.EachModuleFile for the package that a file has been
// opened of, which the snapshot may not have yet. It reads f from where it is.
func (f *File) EachModuleFile(ctx context.Context, r io.Reader, wants func(name string) bool, visit func(name string, r io.Reader) error) error {
	if f.ContentType == zipType {
		return archive.WalkZip(ctx, r, f.Size, wants, visit)
	}
	complete, err := archive.WalkTarGz(ctx, r, content.MaxUnpacked, wants, visit)
	return requireWhole(complete, err)
}

// requireWhole returns the error of a package that was not read to its end.
func requireWhole(complete bool, err error) error {
	if err == nil && !complete {
		return fmt.Errorf("the package unpacks to more than %d bytes", content.MaxUnpacked)
	}
	return err
}

// HasDocs reports whether a release has a folder of documentation.
func (s *Snapshot) HasDocs(r *Release) bool { return r.docs != "" }

// Docs lists the documentation of a release; nil if there is none. The list is kept until
// the next scan.
func (s *Snapshot) Docs(ctx context.Context, r *Release) (*content.Docs, error) {
	if r.docs == "" {
		return nil, nil
	}
	return s.content.Docs(ctx, s.tree.Providers, r.docs, s.scanned)
}

// ReadDoc returns the text of a page, without what it says about itself. It is cut if it
// is too long. The error is fs.ErrNotExist if the file has been removed meanwhile.
func (s *Snapshot) ReadDoc(ctx context.Context, p *content.DocPage) (text string, cut bool, err error) {
	return s.content.ReadDoc(ctx, s.tree.Providers, p)
}
