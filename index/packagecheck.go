package index

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/afero"
)

// A PackageError is why a package would be withheld, in the words of a report.
type PackageError struct {
	Reason Reason
	Detail string
}

func (e *PackageError) Error() string { return e.Detail }

// CheckPackage reads the package of the provider called typ to its end, as a scan
// does, and returns its sha256 and its "h1:". The error is a *PackageError where a
// scan would withhold it, and else that of ctx or of the file.
func CheckPackage(ctx context.Context, f afero.File, size int64, typ string) (sum SHA256, h1 string, err error) {
	if size == 0 { // which a scan does not read
		return sum, "", &PackageError{Empty, "it is empty"}
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return sum, "", err
	}
	d, err := digestPackage(ctx, f, size, typ)
	var bad *finding
	if errors.As(err, &bad) {
		return d.sha256, "", &PackageError{bad.reason, bad.detail}
	}
	return d.sha256, d.h1, err
}
