package memo

import (
	"sync"
	"time"
)

// savePause is the least time between two saves of the memo, and so the most that a crash
// loses. Saving costs a pass over the whole memo.
const savePause = time.Minute

// Saving saves a memo when it has changed: immediately if savePause has passed, otherwise
// when it has, and when the index is closed. A nil *Saving saves nothing.
type Saving struct {
	memo     *Memo
	store    Store
	identity string
	warn     func(reason string)

	mutex  sync.Mutex
	next   time.Time   // not before
	timer  *time.Timer // runs until next; nil if nothing is to be saved
	closed bool
	failed string // the reason why the last save failed, which is logged once
}

// NewSaving returns a Saving that saves a memo of the tree called identity to a store. warn
// is called when saving fails.
func NewSaving(m *Memo, store Store, identity string, warn func(reason string)) *Saving {
	return &Saving{memo: m, store: store, identity: identity, warn: warn}
}

// Changed is called when the memo may have changed.
func (s *Saving) Changed() {
	if s == nil {
		return
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.closed || s.timer != nil {
		return
	}
	if rest := time.Until(s.next); rest > 0 {
		s.timer = time.AfterFunc(rest, s.due)
		return
	}
	s.save()
}

func (s *Saving) due() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if !s.closed {
		s.timer = nil
		s.save()
	}
}

// Close saves the last changes.
func (s *Saving) Close() {
	if s == nil {
		return
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	if s.timer != nil {
		s.timer.Stop()
	}
	s.save()
}

// save saves the memo if it has changed. A failure only costs time at the next start, and
// saving is tried again after a pause.
func (s *Saving) save() {
	saved, err := s.memo.save(s.store, s.identity)
	if saved || err != nil {
		s.next = time.Now().Add(savePause)
	}
	if err == nil {
		if saved {
			s.failed = ""
		}
		return
	}
	if !s.closed {
		s.timer = time.AfterFunc(savePause, s.due)
	}
	if reason := err.Error(); reason != s.failed {
		s.failed = reason
		s.warn(reason)
	}
}
