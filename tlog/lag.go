package tlog

import (
	"fmt"
	"time"
)

// patience is for how long a store may have fewer entries than have been signed. A client of a
// network disk may take a file of another instance for absent for a minute.
const patience = 90 * time.Second

// A lag tells a store that is behind from one that another instance has just added to.
type lag struct {
	has   int64
	since time.Time // it has so many entries, and more are signed
}

// observe returns the error of a store that has fewer entries than have been signed: ErrBehind
// if that has lasted.
func (l *lag) observe(has, signed int64) error {
	if l.since.IsZero() || l.has != has {
		l.has, l.since = has, time.Now()
	}
	if time.Since(l.since) < patience {
		return fmt.Errorf("the folder has %d entries of the log, of %d: waiting for the others", has, signed)
	}
	return fmt.Errorf("%w: %d of %d", ErrBehind, has, signed)
}

// caughtUp says that the store has all that has been signed.
func (l *lag) caughtUp() { l.since = time.Time{} }
