package archive

import (
	"compress/gzip"
	"errors"
	"io"
)

// tarStream returns the tar of a module's package in a format that is no zip. A format that
// address.ModuleFormats lists is unpacked here, and nowhere else.
func tarStream(r io.Reader, format string) (io.Reader, error) {
	switch format {
	case "tar.gz":
		return gzip.NewReader(r)
	}
	return nil, errors.ErrUnsupported
}
