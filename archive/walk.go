package archive

import (
	"archive/tar"
	"archive/zip"
	"context"
	"errors"
	"io"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// Walking a package visits its regular files, in the order of the package. wants is called
// with the name of each file, and visit reads the wanted ones.

// WalkZip calls visit with the wanted files of a zip. The zip must not unpack without bound
// or outside of its folder. The error is an error of reading, of visit or of ctx.
func WalkZip(ctx context.Context, f io.Reader, size int64, wants func(string) bool, visit func(string, io.Reader) error) error {
	at, ok := f.(io.ReaderAt)
	if !ok {
		return errors.ErrUnsupported // every file of a tree has ReadAt
	}
	z, err := openZip(ctx, at, size)
	if err != nil {
		return err
	}
	read := func(member *zip.File) error {
		r, err := member.Open()
		if err != nil {
			return err
		}
		defer r.Close()
		return visit(member.Name, r)
	}
	for _, member := range z.File {
		if !member.Mode().IsRegular() || !wants(member.Name) {
			continue
		}
		if err := read(member); err != nil {
			return err
		}
	}
	return nil
}

// WalkModule calls visit with the wanted files of a module's package. A tar can only be read
// from its start, and is read up to a number of unpacked bytes. complete reports whether it
// read the whole package.
func WalkModule(ctx context.Context, f io.Reader, size int64, format string, limit int64, wants func(string) bool, visit func(string, io.Reader) error) (complete bool, err error) {
	if format == "zip" {
		err = WalkZip(ctx, f, size, wants, visit)
		return err == nil, err
	}
	unpacked, err := tarStream(tree.WithContext(ctx, f), format)
	if err != nil {
		return false, err
	}
	bounded := &io.LimitedReader{R: unpacked, N: limit}
	err = WalkTar(bounded, func(header *tar.Header, content io.Reader) error {
		if !IsTarFile(header.Typeflag) || !wants(header.Name) {
			return nil
		}
		return visit(header.Name, content)
	})
	if err != nil && bounded.N <= 0 {
		return false, nil
	}
	return err == nil, err
}

// WalkFolder calls visit with the wanted files of a folder. The error is tree.ErrChanged if
// one of them has changed.
func WalkFolder(ctx context.Context, part tree.Part, folder Packed, wants func(string) bool, visit func(string, io.Reader) error) error {
	var wanted []File
	for _, file := range folder.Files() {
		if !wants(file.Name) {
			continue
		}
		f, err := part.OpenUnchanged(file.Path, file.Stamp())
		if err != nil {
			return err
		}
		err = visit(file.Name, tree.WithContext(ctx, f))
		f.Close()
		if err != nil {
			return err
		}
		wanted = append(wanted, file)
	}
	return filesUnchanged(part, wanted)
}
