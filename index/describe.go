package index

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"path"

	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// Bounds of reading modules on request.
const (
	maxModuleFile = 4 << 20   // bytes of one file
	maxRead       = 256 << 20 // bytes of an unpacked .tar.gz, which can only be read from its start
)

// ErrFileTooLarge: a file of a module's package is larger than is read of it.
var ErrFileTooLarge = fmt.Errorf("the file is larger than %d bytes", maxModuleFile)

// Describe returns what a module says about itself. It reads the package unless that has
// been done: what has been read is kept by its digest, and callers that ask for the
// same at once share one reading, which ends when the last of them has left. The error
// is ErrChanged when the files are no longer those that were verified.
func (s *Snapshot) Describe(ctx context.Context, v *ModuleVersion) (*moduledoc.Package, error) {
	return s.descriptions.get(ctx, v.Archive.SHA256, nil, func(ctx context.Context, _ *moduledoc.Package) (*moduledoc.Package, error) {
		return s.describe(ctx, v)
	})
}

func (s *Snapshot) describe(ctx context.Context, v *ModuleVersion) (*moduledoc.Package, error) {
	c := moduledoc.Collector{Folder: v.Folder}
	complete, err := s.eachModuleFile(ctx, v, c.Wants, func(name string, r io.Reader) error { return c.Add(name, r) })
	if err != nil {
		return nil, err
	}
	p := c.Package(v.Folder)
	if !complete {
		p.Root.Problems = append(p.Root.Problems, moduledoc.Problem{Text: fmt.Sprintf("The package unpacks to more than %d bytes: what comes after them is left out.", maxRead)})
	}
	return p, nil
}

// ReadModuleFile returns a file of a module's package, by its path from the root
// module with slashes. The error is fs.ErrNotExist if there is no such file,
// ErrFileTooLarge, or ErrChanged.
func (s *Snapshot) ReadModuleFile(ctx context.Context, v *ModuleVersion, name string) ([]byte, error) {
	name = path.Clean(name)
	if !fs.ValidPath(name) || name == "." {
		return nil, fs.ErrNotExist
	}
	name = path.Join(v.Folder, name)
	release, err := s.descriptions.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	var content []byte
	found := false
	wants := func(other string) bool { return path.Clean(other) == name }
	_, err = s.eachModuleFile(ctx, v, wants, func(_ string, r io.Reader) (err error) {
		found = true // if there are several, clients have the last one
		content, err = io.ReadAll(io.LimitReader(r, maxModuleFile+1))
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case !found:
		return nil, fs.ErrNotExist
	case len(content) > maxModuleFile:
		return nil, ErrFileTooLarge
	}
	return content, nil
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
		complete, err = archive.WalkTarGz(ctx, f, maxRead, wants, visit)
	}
	if err != nil {
		return false, err
	}
	return complete, f.Unchanged()
}

func (s *Snapshot) eachFileOfFolder(ctx context.Context, a *File, wants func(string) bool, visit func(string, io.Reader) error) error {
	return archive.WalkFolder(ctx, a.in(&s.tree), a.made.packed, wants, visit)
}

// descriptions are what modules say about themselves, by the digest of their packages.
type descriptions = readings[wire.SHA256, *moduledoc.Package]
