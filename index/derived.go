package index

import "sync"

// Derived returns the value that another package makes of a snapshot, which is made on the
// first request for it. There is one such value: the package catalog makes it. newValue gets
// the value of an earlier snapshot of the same Index, or the zero value, and can use its
// unchanged parts again.
func Derived[T any](s *Snapshot, newValue func(before T) T) T {
	s.deriving.Do(func() {
		s.derived = sync.OnceValue(func() any { // which panics each time, if newValue does
			s.derivedLast.mutex.Lock()
			defer s.derivedLast.mutex.Unlock()
			before, _ := s.derivedLast.value.(T)
			s.derivedLast.value = newValue(before)
			return s.derivedLast.value
		})
	})
	return s.derived().(T)
}

// derivedLast has the value that was made last, of any of the snapshots that share it.
type derivedLast struct {
	mutex sync.Mutex
	value any
}
