//go:build !linux && !darwin

package disk

import (
	"errors"
	"os"
)

// renameExclusive always fails, since this system has no such rename.
func renameExclusive(fromDir *os.File, from string, toDir *os.File, to string) error {
	return errors.ErrUnsupported
}
