package archive

import (
	"archive/tar"
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

// WalkTar calls visit with the entries of a tar and their content, and then reads r to its end, for the
// checksum of a compression. The error is an error of reading or of visit.
func WalkTar(r io.Reader, visit func(*tar.Header, io.Reader) error) error {
	for t := tar.NewReader(r); ; {
		header, err := t.Next()
		if err == io.EOF {
			_, err = io.Copy(io.Discard, r)
			return err
		}
		if err == nil {
			err = visit(header, t)
		}
		if err != nil {
			return err
		}
	}
}

// IsTarFile reports whether clients write an entry of this type in a tar as a file with its content.
// GNU tar has a type for files with holes.
func IsTarFile(kind byte) bool {
	return kind == tar.TypeReg || kind == tar.TypeGNUSparse || kind == tar.TypeCont
}

// hasNoContent reports whether an entry of this type in a tar never has content. Devices and pipes
// are passed over.
func hasNoContent(kind byte) bool {
	switch kind {
	case tar.TypeDir, tar.TypeSymlink, tar.TypeLink, tar.TypeChar, tar.TypeBlock, tar.TypeFifo:
		return true
	}
	return false
}
