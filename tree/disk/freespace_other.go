//go:build !linux && !darwin && !windows

package disk

import "errors"

// freeSpaceOn is for systems without a known call: there, writing fails when the
// disk is full.
func freeSpaceOn(string) (int64, error) { return 0, errors.ErrUnsupported }
