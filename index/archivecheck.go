package index

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

// What comes into a tree is checked before by the same code as in a scan, so that
// nothing is taken that would be withheld.

// A PackageError is why a package would be withheld, in the words of a report.
type PackageError struct {
	Reason tree.Reason
	Detail string
}

func (e *PackageError) Error() string { return e.Detail }

// A PackageDigest is the result of reading a provider's package.
type PackageDigest struct {
	SHA256 wire.SHA256

	// H1 are the "h1:" hashes that clients compare the package with: that of its
	// files, and that of the zip's entries where they differ (checklist 68).
	H1 []string

	digest digest
}

// CheckPackage reads a package of the provider called typ to its end, as a scan
// does. Callers that know the sha256 of the file, having just written it, save
// computing it again; zero: it is not known. The error is a *PackageError where a
// scan would withhold the package; the SHA256 is then set if the file could be read.
// Any other error is that of ctx or of the file.
func CheckPackage(ctx context.Context, f afero.File, size int64, typ string, platform address.Platform, known wire.SHA256) (PackageDigest, error) {
	d, err := checkArchive(ctx, f, size, known, func(f afero.File, d *digest) error {
		if err := d.readPackage(ctx, f, size, typ); err != nil {
			return err
		}
		if bad := decodePackageDetail(d.content).findingOn(platform); bad != nil {
			return bad
		}
		return nil
	})
	if err != nil {
		return PackageDigest{SHA256: d.sha256}, err
	}
	checked := PackageDigest{SHA256: d.sha256, H1: []string{d.h1}, digest: d}
	if packed := decodePackageDetail(d.content).packedH1; packed != "" {
		checked.H1 = append(checked.H1, packed)
	}
	return checked, nil
}

// A ModuleDigest is the result of reading a module's package.
type ModuleDigest struct {
	SHA256 wire.SHA256
	H1     string // Go's dirhash of its files, "h1:…"
	Doubts Doubts // about the package

	digest digest
}

// CheckModule is to the package of a module, VERSION.tar.gz, VERSION.tgz or
// VERSION.zip, what CheckPackage is to a provider's.
func CheckModule(ctx context.Context, f afero.File, size int64, name string, known wire.SHA256) (ModuleDigest, error) {
	_, format, _, ok := address.ParseModuleFile(name)
	if !ok {
		return ModuleDigest{}, &PackageError{tree.BadName, "it is not named VERSION.tar.gz, VERSION.tgz or VERSION.zip: rename it"}
	}
	d, err := checkArchive(ctx, f, size, known, func(f afero.File, d *digest) error { return d.readModule(ctx, f, size, format) })
	if err != nil {
		return ModuleDigest{SHA256: d.sha256}, err
	}
	_, summary := splitModuleContent(d.content)
	return ModuleDigest{SHA256: d.sha256, H1: d.h1, Doubts: doubtsOf(decodeFacts(d.content), summary), digest: d}, nil
}

// checkArchive reads an archive outside of a scan.
func checkArchive(ctx context.Context, f afero.File, size int64, known wire.SHA256, read func(f afero.File, d *digest) error) (digest, error) {
	if size == 0 { // which a scan does not read
		return digest{}, &PackageError{tree.Empty, "it is empty"}
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return digest{}, err
	}
	noted := &notedFile{File: f}
	d, err := digestArchive(ctx, noted, size, known, func(d *digest) error { return read(noted, d) })
	if failed := noted.failure(); failed != nil {
		return d, tree.StorageError(failed)
	}
	return d, asPackageError(err)
}

// A notedFile remembers that reading a file failed: who reads an archive takes an error for
// damage of the archive.
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
	if offset < 0 { // which is the archive's fault
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

// failure is why reading failed; nil if it did not.
func (f *notedFile) failure() error { return cmp.Or(tree.ReadFailure(f.File), f.failed) }

// asPackageError returns a finding as a *PackageError, and any other error as it is.
func asPackageError(err error) error {
	var bad *tree.Finding
	if errors.As(err, &bad) {
		return &PackageError{bad.Reason, bad.Detail}
	}
	return err
}

// digestArchive reads an archive to its end, twice: its bytes for the sha256, unless
// that is known, and what is in it.
func digestArchive(ctx context.Context, f io.Reader, size int64, known wire.SHA256, read func(d *digest) error) (d digest, err error) {
	d = digest{sha256: known, size: size}
	if known == (wire.SHA256{}) {
		if d.sha256, err = tree.DigestFile(ctx, f); err != nil {
			return d, err
		}
	}
	err = read(&d)
	return d, err
}
