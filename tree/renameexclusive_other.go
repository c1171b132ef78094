//go:build !linux && !darwin

package tree

import (
	"errors"
	"os"
)

// renameExclusive is not to be had here.
func renameExclusive(fromDir *os.File, from string, toDir *os.File, to string) error {
	return errors.ErrUnsupported
}
