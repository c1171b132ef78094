package publish

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// A room bounds how much is staged or on its way in, for one token and in all. It
// counts the files that this instance takes at once, and the files of other instances
// when it looks at all stages. What other instances have published or discarded is
// forgotten then, and when there is no room.
type room struct {
	max, maxEach int64 // bytes

	mutex    sync.Mutex
	stages   map[string]*stagedRoom // by name
	incoming map[string]int64       // by subject
	looks    uint64                 // how often stages were measured
}

// A stagedRoom is the size of a stage, and how much of it this instance has taken, by
// subject. After a restart the senders are unknown.
type stagedRoom struct {
	size int64
	look uint64 // the look in which size was measured
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
		own += min(s.by[subject], s.size) // some of the subject's bytes may have been there before, or have been dropped
	}
	switch { // written so that no size overflows
	case n > r.maxEach-own:
		return noRoom("this token may stage %s of unfinished releases, and the file does not fit in the rest of that: complete or discard others, or ask the operator to raise max_staged_each", r.maxEach)
	case n > r.max-all:
		return noRoom("%s of unfinished releases may be staged, and the file does not fit in the rest of that: try again later, or tell the registry's operator", r.max)
	}
	r.incoming[subject] += n
	return nil
}

// giveBack returns room that was taken.
func (r *room) giveBack(subject string, n int64) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.incoming[subject] -= n; r.incoming[subject] <= 0 {
		delete(r.incoming, subject)
	}
}

// look begins to measure a stage.
func (r *room) look() uint64 {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.looks++
	return r.looks
}

// record notes the size of a stage that a look has measured, to which a subject has
// sent some bytes. A stage of no size is gone.
func (r *room) record(stage string, look uint64, size int64, subject string, sent int64) {
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

// names returns the names of the known stages.
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

// measure measures a stage to which a subject has sent some bytes. A stage that cannot
// be read keeps its known size.
func (p *Publisher) measure(s stage, subject string, sent int64) {
	var size int64
	look := p.room.look()
	err := s.part.Walk(context.Background(), s.path(), func(_ string, info fs.FileInfo) { size += info.Size() })
	if err == nil {
		p.room.record(s.name(), look, size, subject, sent)
	}
}

// takeRoom takes room for n further bytes of a subject. It fails only if there is none once ended
// stages are forgotten.
func (p *Publisher) takeRoom(subject string, n int64) error {
	err := p.room.take(subject, n)
	if err == nil {
		return nil
	}
	p.forgetEnded()
	return p.room.take(subject, n)
}

// endedInterval is the time between two looks for ended stages: clients may send on although they
// are refused.
const endedInterval = time.Second

// forgetEnded forgets the stages that another instance has published or discarded.
func (p *Publisher) forgetEnded() {
	p.ended.mutex.Lock() // who comes meanwhile waits for the result
	defer p.ended.mutex.Unlock()
	if p.options.Now().Sub(p.ended.looked) < endedInterval || len(p.room.names()) == 0 {
		return
	}
	defer func() { p.ended.looked = p.options.Now() }()
	files, err := p.open()
	if err != nil {
		return // which is logged
	}
	if _, err := p.stages(files.Providers); err != nil {
		p.unavailable("looking at what is staged", err)
	}
}

// stages returns the folders of all stages, and forgets those that have ended.
func (p *Publisher) stages(providers tree.Part) ([]tree.Entry, error) {
	known, look := p.room.names(), p.room.look()
	entries, err := providers.Entries(stagingPath())
	if err != nil {
		return nil, err
	}
	for _, name := range known {
		if !slices.ContainsFunc(entries, func(e tree.Entry) bool { return e.Name == name }) {
			p.room.record(name, look, 0, "", 0) // another instance has published or dropped it
		}
	}
	return entries, nil
}

// A roomWriter takes room for bytes beyond the announced size.
type roomWriter struct {
	io.Writer
	publisher *Publisher
	subject   string
	taken     int64
	written   int64
}

func (w *roomWriter) Write(b []byte) (int, error) {
	if w.written += int64(len(b)); w.written > w.taken {
		if err := w.publisher.takeRoom(w.subject, w.written-w.taken); err != nil {
			return 0, err
		}
		w.taken = w.written
	}
	return w.Writer.Write(b)
}

// end gives the room back.
func (w *roomWriter) end() {
	w.publisher.room.giveBack(w.subject, w.taken)
	w.taken = 0
}
