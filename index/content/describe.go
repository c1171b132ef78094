package content

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"path"

	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// Bounds of reading modules on request.
const (
	maxModuleFile = 4 << 20   // bytes of one file
	MaxUnpacked   = 256 << 20 // bytes of an unpacked .tar.gz, which can only be read from its start
)

// ErrFileTooLarge: a file of a module's package is larger than is read of it.
var ErrFileTooLarge = fmt.Errorf("the file is larger than %d bytes", maxModuleFile)

// A Module is the package of a module, which has been verified.
type Module struct {
	Digest wire.SHA256
	Folder string // in which the module lies; empty for the package's root

	// Walk calls visit with the files of the package whose names are wanted. It is not
	// complete if the package unpacks to more than is read.
	Walk func(ctx context.Context, wants func(name string) bool, visit func(name string, r io.Reader) error) (complete bool, err error)
}

// A Reader reads the documentation of modules and providers on request, and keeps some of it. The zero value is ready for use.
type Reader struct {
	modules descriptions
	files   readings[wire.SHA256, *Files]
	docs    documentation
}

// Describe returns the documentation of a module. It reads the package unless the result is
// kept by its digest. Callers that ask for the same at once share one reading, which ends when
// the last of them has left. The error comes from Walk or ctx.
func (r *Reader) Describe(ctx context.Context, m Module) (*moduledoc.Package, error) {
	return r.modules.get(ctx, m.Digest, nil, func(ctx context.Context, _ *moduledoc.Package) (*moduledoc.Package, error) {
		c := moduledoc.Collector{Folder: m.Folder}
		complete, err := m.Walk(ctx, c.Wants, func(name string, r io.Reader) error { return c.Add(name, r) })
		if err != nil {
			return nil, err
		}
		p := c.Package(m.Folder)
		if !complete {
			p.Root.Problems = append(p.Root.Problems, moduledoc.Problem{Text: fmt.Sprintf("The package unpacks to more than %d bytes: what comes after them is left out.", MaxUnpacked)})
		}
		return p, nil
	})
}

// ReadModuleFile returns a file of a module's package, by its path from the root module
// with slashes. The error is fs.ErrNotExist if there is no such file, ErrFileTooLarge, or
// an error of Walk.
func (r *Reader) ReadModuleFile(ctx context.Context, m Module, name string) ([]byte, error) {
	name = path.Clean(name)
	if !fs.ValidPath(name) || name == "." {
		return nil, fs.ErrNotExist
	}
	name = path.Join(m.Folder, name)
	release, err := r.modules.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	var content []byte
	found := false
	wants := func(other string) bool { return path.Clean(other) == name }
	_, err = m.Walk(ctx, wants, func(_ string, r io.Reader) (err error) {
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

// descriptions are the documentation of modules, by the digest of their packages.
type descriptions = readings[wire.SHA256, *moduledoc.Package]
