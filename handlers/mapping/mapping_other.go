//go:build !linux

package mapping

import (
	"errors"
	"os"
)

// Other systems cannot request pages before they are accessed, or not through a system call.

func identify(*os.File) (id identity, ok bool) { return identity{}, false }

func mapFile(*os.File, int64) ([]byte, error) { return nil, errors.ErrUnsupported }

func unmap([]byte) {}

func requestPages([]byte) error { return errors.ErrUnsupported }
