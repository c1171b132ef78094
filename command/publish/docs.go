package publish

import (
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/publish"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// docsArchive is the name of the documentation at the registry.
const docsArchive = "docs.zip"

// maxPackedDocs bounds packed documentation, in bytes. It is held in memory, and no registry
// takes more.
const maxPackedDocs = 64 << 20

// packDocs packs a folder with documentation, into the same bytes each time. Names that
// begin with a dot are left out.
func packDocs(dir string) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("%s is not a folder that can be read", cli.Printable(dir))
	}
	defer root.Close()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil || name == ".":
			return err
		case strings.HasPrefix(entry.Name(), ".") && entry.IsDir():
			return fs.SkipDir
		case strings.HasPrefix(entry.Name(), "."), entry.IsDir():
			return nil
		case !entry.Type().IsRegular():
			return fmt.Errorf("%s is not a regular file: put the file itself there", cli.Printable(path.Join(dir, name)))
		case b.Len() > maxPackedDocs:
			return fmt.Errorf("%s has more than %d bytes: name the folder with the documentation alone", cli.Printable(dir), maxPackedDocs)
		}
		return packDoc(z, root.FS(), name)
	})
	if err = errors.Join(err, z.Close()); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// packDoc adds a file. It has neither time nor mode, which differ between checkouts.
func packDoc(z *zip.Writer, dir fs.FS, name string) error {
	from, err := dir.Open(name)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := z.CreateHeader(&zip.FileHeader{Name: "docs/" + name, Method: zip.Deflate})
	if err == nil {
		_, err = io.Copy(to, io.LimitReader(from, maxPackedDocs))
	}
	return err
}

// addDocs adds packed documentation to a release.
func (p *release) addDocs(ctx context.Context, a address.Address, dir string, packed []byte) error {
	file, err := publish.ParseReleaseFile(a, p.version, docsArchive)
	if err != nil {
		return err
	}
	switch err := publish.CheckDocs(ctx, bytes.NewReader(packed), int64(len(packed)), docsArchive); {
	case errors.Is(err, publish.ErrRefused):
		p.problem(a, dir, tree.BadArchive, err.Error())
	case err != nil:
		return cmp.Or(ctx.Err(), err)
	}
	p.files = append(p.files, upload{File: file, size: int64(len(packed)), sha256: sha256.Sum256(packed), open: inMemory(packed)})
	return nil
}
