package archive

import (
	"cmp"
	"context"
	"errors"
	"io"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A package is checked before it enters a tree, by the same code as in a scan, so that no
// package is accepted that a scan would withhold.

// A PackageError says why a package would be withheld, in the words of a report.
type PackageError struct {
	Reason tree.Reason
	Detail string
}

func (e *PackageError) Error() string { return e.Detail }

// CheckPackage reads a package of the provider called typ to its end, as a scan does.
// Callers that have just written the file and know its sha256 save computing it again; zero is
// an unknown sha256. The error is a *PackageError if a scan would withhold the
// package. Any other error is an error of ctx or of the file. With an error, the digest has only
// the SHA256, if the file could be read.
func CheckPackage(ctx context.Context, f afero.File, size int64, typ string, platform address.Platform, known wire.SHA256) (Digest, error) {
	return (*Arriving)(nil).CheckPackage(ctx, f, size, typ, platform, known)
}

// CheckPackage is CheckPackage for the file to which the bytes were written.
func (a *Arriving) CheckPackage(ctx context.Context, f afero.File, size int64, typ string, platform address.Platform, known wire.SHA256) (Digest, error) {
	d, err := checkArchive(ctx, f, size, func() (Digest, error) { return a.readPackage(ctx, f, size, typ, known) })
	if err == nil {
		if bad := PackageDetailOf(d.Content).FindingOn(platform); bad != nil {
			return Digest{SHA256: d.SHA256}, asPackageError(bad)
		}
	}
	return d, err
}

// CheckModule reads the package of a module, VERSION.tar.gz, VERSION.tgz or VERSION.zip, as
// CheckPackage reads a provider's. f is the file to which the bytes were written.
func (a *Arriving) CheckModule(ctx context.Context, f afero.File, size int64, name string, known wire.SHA256) (Digest, error) {
	format := address.ModuleFormatOf(name)
	if format == "" {
		return Digest{}, &PackageError{tree.BadName, "it is not named " + address.ModuleFileNames("VERSION") + ": rename it"}
	}
	return checkArchive(ctx, f, size, func() (Digest, error) { return a.readModule(ctx, f, size, format, known) })
}

// checkArchive reads an archive outside of a scan. It tells the archive's faults from the
// faults of the file.
func checkArchive(ctx context.Context, f afero.File, size int64, read func() (Digest, error)) (Digest, error) {
	if size == 0 { // a scan does not read such a file
		return Digest{}, &PackageError{tree.Empty, "it is empty"}
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return Digest{}, err
	}
	d, err := read()
	if err == nil {
		return d, nil
	}
	if bad := (*tree.Finding)(nil); ctx.Err() != nil || errors.As(err, &bad) {
		err = asPackageError(err)
	} else {
		err = tree.StorageError(err)
	}
	return Digest{SHA256: d.SHA256}, err
}

// ReadPackage reads the package of the provider called typ from the current offset of f to
// its end. Callers that know its sha256 save computing it; zero is an unknown sha256.
// The error is a *tree.Finding if the package is at fault, and otherwise an error of ctx or
// of reading the file. The SHA256 is set if the file could be read.
func ReadPackage(ctx context.Context, f afero.File, size int64, typ string, known wire.SHA256) (Digest, error) {
	return (*Arriving)(nil).readPackage(ctx, f, size, typ, known)
}

func (a *Arriving) readPackage(ctx context.Context, f afero.File, size int64, typ string, known wire.SHA256) (Digest, error) {
	return a.digest(ctx, f, size, known, walkPackage, func(f afero.File, d *Digest, w walked) error { return d.readPackage(ctx, f, size, typ, w) })
}

// ReadModule reads the package of a module, whose format address.ModuleFormats has, as ReadPackage
// reads a provider's.
func ReadModule(ctx context.Context, f afero.File, size int64, format string, known wire.SHA256) (Digest, error) {
	return (*Arriving)(nil).readModule(ctx, f, size, format, known)
}

func (a *Arriving) readModule(ctx context.Context, f afero.File, size int64, format string, known wire.SHA256) (Digest, error) {
	return a.digest(ctx, f, size, known, walkModule(format), func(f afero.File, d *Digest, w walked) error { return d.readModule(ctx, f, size, format, w) })
}

// A notedFile remembers that reading a file failed: code that reads an archive takes an
// error for damage of the archive.
type notedFile struct {
	afero.File
	failed error
}

// Read implements io.Reader.
func (f *notedFile) Read(p []byte) (int, error) {
	n, err := f.File.Read(p)
	return n, f.note(err)
}

// ReadAt implements io.ReaderAt.
func (f *notedFile) ReadAt(p []byte, offset int64) (int, error) {
	n, err := f.File.ReadAt(p, offset)
	if offset < 0 { // the archive is at fault
		return n, err
	}
	return n, f.note(err)
}

func (f *notedFile) note(err error) error {
	if err != nil && err != io.EOF {
		f.failed = err
	}
	return err
}

// failure returns the error that reading failed with; nil if it did not fail.
func (f *notedFile) failure() error { return cmp.Or(tree.ReadFailure(f.File), f.failed) }

// asPackageError returns a finding as a *PackageError, and any other error unchanged.
func asPackageError(err error) error {
	var bad *tree.Finding
	if errors.As(err, &bad) {
		return &PackageError{bad.Reason, bad.Detail}
	}
	return err
}

// digest reads an archive: its bytes for the sha256, unless that is known, and its
// entries, unless they have been walked while the archive arrived, or while the bytes are read.
func (a *Arriving) digest(ctx context.Context, f afero.File, size int64, known wire.SHA256, walk func(io.Reader) walked, read func(f afero.File, d *Digest, w walked) error) (d Digest, err error) {
	noted := &notedFile{File: f}
	d = Digest{SHA256: known, Size: size}
	w, err := a.wait(ctx, size)
	if err != nil {
		return d, err
	}
	if known == (wire.SHA256{}) {
		if d.SHA256, w, err = digestWalked(ctx, noted, walk); err != nil {
			return d, cmp.Or(noted.failure(), err)
		}
	}
	err = read(noted, &d, w)
	return d, cmp.Or(noted.failure(), err)
}
