package publish

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"sync"

	"github.com/dustin/go-humanize"
)

// A room bounds how much is staged or on its way in, of one token and of all. What this
// instance takes it knows at once, and what others take when it looks at all that is staged.
type room struct {
	max, maxEach int64 // bytes

	mutex    sync.Mutex
	stages   map[string]*stagedRoom // by their names
	incoming map[string]int64       // by subject
	looks    uint64                 // at stages, so far
}

// A stagedRoom is how much a stage has, and what this instance has taken for it, by subject:
// after a restart nobody remembers who sent what.
type stagedRoom struct {
	size int64
	look uint64 // by which that is known
	by   map[string]int64
}

func newRoom(max, maxEach int64) *room {
	return &room{max: max, maxEach: maxEach, stages: make(map[string]*stagedRoom), incoming: make(map[string]int64)}
}

// take fails if there is no room for n further bytes of a subject.
func (r *room) take(subject string, n int64) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	all, own := int64(0), r.incoming[subject]
	for _, incoming := range r.incoming {
		all += incoming
	}
	for _, s := range r.stages {
		all += s.size
		own += min(s.by[subject], s.size) // some of it may have been there, or dropped
	}
	switch { // no size makes them overflow
	case n > r.maxEach-own:
		return noRoom("%s of files of unfinished releases are staged with this token, which is the most that is taken: complete or discard them first", r.maxEach)
	case n > r.max-all:
		return noRoom("%s of files of unfinished releases are staged, which is the most that is taken: try again later, or tell the registry's operator", r.max)
	}
	r.incoming[subject] += n
	return nil
}

// giveBack ends what was taken.
func (r *room) giveBack(subject string, n int64) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.incoming[subject] -= n; r.incoming[subject] <= 0 {
		delete(r.incoming, subject)
	}
}

// look begins a look at a stage.
func (r *room) look() uint64 {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.looks++
	return r.looks
}

// holds notes how much a look has found in a stage, to which a subject has sent something;
// nothing: it is gone.
func (r *room) holds(stage string, look uint64, size int64, subject string, sent int64) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	s := r.stages[stage]
	switch {
	case s == nil && size == 0:
		return
	case s == nil:
		s = &stagedRoom{by: make(map[string]int64)}
		r.stages[stage] = s
	}
	s.by[subject] += sent
	if look < s.look {
		return
	}
	if s.size, s.look = size, look; size == 0 {
		delete(r.stages, stage)
	}
}

// names are the stages that are known.
func (r *room) names() (names []string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for name := range r.stages {
		names = append(names, name)
	}
	return names
}

func noRoom(format string, limit int64) error {
	return &Refusal{Kind: ErrNoRoom, Reasons: []string{fmt.Sprintf(format, humanize.IBytes(uint64(limit)))}}
}

// measure looks at a stage, to which a subject has sent something. What cannot be read is as
// it was known.
func (p *Publisher) measure(s stage, subject string, sent int64) {
	var size int64
	look := p.room.look()
	err := s.part.WalkFiles(context.Background(), s.in(), func(_ string, info fs.FileInfo) { size += info.Size() })
	if err == nil {
		p.room.holds(s.name(), look, size, subject, sent)
	}
}

// A roomWriter takes room for what is written, beyond what was announced.
type roomWriter struct {
	io.Writer
	room    *room
	subject string
	taken   int64
	written int64
}

func (w *roomWriter) Write(b []byte) (int, error) {
	if w.written += int64(len(b)); w.written > w.taken {
		if err := w.room.take(w.subject, w.written-w.taken); err != nil {
			return 0, err
		}
		w.taken = w.written
	}
	return w.Writer.Write(b)
}

// end gives the room back.
func (w *roomWriter) end() {
	w.room.giveBack(w.subject, w.taken)
	w.taken = 0
}
