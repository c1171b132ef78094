//go:build !linux && !darwin && !windows

package module

import "errors"

// freeSpaceOn is for systems of which it is not known how to ask: there the disk
// itself says when it is full.
func freeSpaceOn(string) (int64, error) { return 0, errors.ErrUnsupported }
