package index

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A PackageError is why a package would be withheld, in the words of a report.
type PackageError struct {
	Reason Reason
	Detail string
}

func (e *PackageError) Error() string { return e.Detail }

// A PackageDigest is what reading a package gave.
type PackageDigest struct {
	SHA256 wire.SHA256

	// H1 are the "h1:" hashes that clients compare it with: of its files, and of
	// the zip's entries where that is another.
	H1 []string
}

// CheckPackage reads the package for a platform of the provider called typ to its
// end, as a scan does. The error is a *PackageError where a scan would withhold
// it, and then the SHA256 is known if the file could be read; else the error is
// that of ctx or of the file.
func CheckPackage(ctx context.Context, f afero.File, size int64, typ string, platform address.Platform) (PackageDigest, error) {
	if size == 0 { // which a scan does not read
		return PackageDigest{}, &PackageError{Empty, "it is empty"}
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return PackageDigest{}, err
	}
	d, err := digestPackage(ctx, f, size, typ)
	detail := decodePackageDetail(d.content)
	bad := detail.findingOn(platform)
	if err != nil && !errors.As(err, &bad) {
		return PackageDigest{}, err
	}
	if bad != nil {
		return PackageDigest{SHA256: d.sha256}, &PackageError{bad.reason, bad.detail}
	}
	checked := PackageDigest{SHA256: d.sha256, H1: []string{d.h1}}
	if detail.packedH1 != "" {
		checked.H1 = append(checked.H1, detail.packedH1)
	}
	return checked, nil
}
