package offer

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// An OpenFile is an open File with its verified content. For a file on the local disk the
// ReadSeekCloser is an *os.File, which net/http sends without copying it.
type OpenFile struct {
	io.ReadSeekCloser

	unchanged func() error // nil: the bytes cannot change
}

// Unchanged returns ErrChanged if the file was written to meanwhile, so that the bytes read
// may mix two contents. It is called after the last read. A file that is replaced, renamed
// or removed remains readable.
func (o *OpenFile) Unchanged() error {
	if o.unchanged == nil {
		return nil
	}
	return o.unchanged()
}

// Open opens f in a tree as it was verified. The error is ErrChanged if the file on the disk
// has changed since.
func (f *File) Open(t *tree.Tree) (*OpenFile, error) {
	if !f.IsFolder() {
		return f.OpenRange(t)
	}
	r, err := archive.OpenPacked(f.made.packed, f.part(t), f.Size)
	if err != nil {
		return nil, err
	}
	return &OpenFile{r, r.Unchanged}, nil
}

// OpenRange opens f for reading a part of it. In a folder that is packed on request, only
// the files that are read are checked: reading fails with ErrChanged if one of them has
// changed.
func (f *File) OpenRange(t *tree.Tree) (*OpenFile, error) {
	switch m := f.source(); {
	case m.sign != nil:
		signature, err := m.sign()
		if err != nil {
			return nil, fmt.Errorf("signing: %w", err)
		}
		return openInMemory(signature), nil
	case m.content != nil:
		return openInMemory(m.content), nil
	case m.packed != nil:
		r := m.packed.Open(f.part(t))
		return &OpenFile{r, r.Unchanged}, nil
	}
	part := f.part(t)
	opened, err := part.OpenUnchanged(f.Path(), f.Stamp())
	if err != nil {
		return nil, err
	}
	return &OpenFile{opened, func() error { return f.stillUnchanged(part, opened) }}, nil
}

// stillUnchanged checks an open file again. Renaming or removing a file, or changing its
// permissions, changes the time of its inode, as does rewriting a file and setting its old
// time. Reading the file tells these cases apart.
func (f *File) stillUnchanged(part tree.Part, opened afero.File) error {
	info, err := opened.Stat()
	if err != nil {
		return err
	}
	now := tree.StampOf(info)
	switch {
	case part.SameFile(f.Path(), now, f.Stamp()):
		return nil
	case !now.SameContent(f.Stamp()):
		return tree.ErrChanged
	}
	hash := sha256.New()
	if _, err := tree.HashFile(hash, io.NewSectionReader(opened, 0, f.Size)); err != nil {
		return err
	}
	if wire.SHA256(hash.Sum(nil)) != f.SHA256 {
		return tree.ErrChanged
	}
	return nil
}

func openInMemory(content []byte) *OpenFile {
	return &OpenFile{ReadSeekCloser: inMemory{bytes.NewReader(content)}}
}

type inMemory struct{ *bytes.Reader }

func (inMemory) Close() error { return nil }
