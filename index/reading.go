package index

import (
	"cmp"
	"context"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// A reading is the part of a scan in which the archives are read that the memo
// does not know: as many at once as there are workers, the newest versions
// first, since those are asked for. What a request waits for comes before all
// that; it does not even wait for a worker, and the others pause meanwhile.
type reading struct {
	scan    *scan
	found   *inventory
	batches *batches

	mutex   sync.Mutex
	resumed *sync.Cond
	queue   []*archive                     // not begun, in order; some have been, as urgent
	urgent  []*archive                     // not begun, and waited for
	of      map[address.Address][]*archive // by address
	wishes  map[Wanted]*wish               // of all requests that wait for the same
	hurried atomic.Int64                   // archives that are waited for and not read
	workers int                            // that read what is urgent
	ended   bool

	publishing bool           // what is waited for, soon
	hurries    sync.WaitGroup // what is urgent; added to only before the end
}

// A wish counts the archives that requests still wait for.
type wish struct{ left int }

func newReading(s *scan, found *inventory, publish func(*Snapshot)) *reading {
	slices.SortStableFunc(found.unread, func(a, b *archive) int { return cmp.Compare(a.rank, b.rank) })
	r := &reading{
		scan: s, found: found, batches: newBatches(s, found, publish),
		queue: found.unread, of: make(map[address.Address][]*archive), wishes: make(map[Wanted]*wish),
	}
	r.resumed = sync.NewCond(&r.mutex)
	for _, a := range found.unread {
		a.reading = r
		r.of[a.address] = append(r.of[a.address], a)
	}
	return r
}

// run reads everything, or as much as there is time for.
func (r *reading) run() {
	stop := context.AfterFunc(r.scan.ctx, func() {
		r.mutex.Lock()
		defer r.mutex.Unlock()
		r.resumed.Broadcast()
	})
	defer stop()
	var background sync.WaitGroup
	for range min(r.scan.options.workers(), len(r.queue)) {
		background.Go(func() {
			for a := r.take(); a != nil; a = r.take() {
				r.read(a)
			}
		})
	}
	background.Wait()
	r.mutex.Lock()
	r.ended = true
	r.mutex.Unlock()
	r.hurries.Wait()
}

// take returns the next archive to read, nil when there is none.
func (r *reading) take() *archive {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if a := r.takeUrgent(); a != nil || r.scan.ctx.Err() != nil {
		return a
	}
	for len(r.queue) > 0 {
		a := r.queue[0]
		r.queue = r.queue[1:]
		if !a.begun {
			a.begun = true
			return a
		}
	}
	return nil
}

func (r *reading) takeUrgent() *archive {
	if len(r.urgent) == 0 || r.scan.ctx.Err() != nil {
		return nil
	}
	a := r.urgent[0]
	r.urgent = r.urgent[1:]
	a.begun = true
	return a
}

// hurry has what is wanted read at once, and published when it is. What has been
// read already is published.
func (r *reading) hurry(w Wanted) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.ended || len(r.of[w.Address]) == 0 {
		return
	}
	wished, read := r.wishes[w], false
	if wished != nil && wished.left > 0 {
		return // it is urgent already
	}
	if wished == nil {
		wished = new(wish)
	}
	for _, a := range r.of[w.Address] {
		if w.Version != "" && a.version != w.Version {
			continue
		}
		if a.finished {
			read = true
			continue
		}
		wished.left++
		a.wishes = append(a.wishes, wished)
		if a.urgent {
			continue
		}
		a.urgent = true
		r.hurried.Add(1)
		if !a.begun {
			r.urgent = append(r.urgent, a)
		}
	}
	if wished.left > 0 {
		r.wishes[w] = wished
	}
	r.resumed.Broadcast() // one that pauses may be urgent now
	if read && wished.left == 0 {
		r.publishSoon()
	}
	for ; r.workers < min(r.scan.options.workers(), len(r.urgent)); r.workers++ {
		r.hurries.Go(r.readUrgent)
	}
}

func (r *reading) readUrgent() {
	for {
		r.mutex.Lock()
		a := r.takeUrgent()
		if a == nil {
			r.workers--
		}
		r.mutex.Unlock()
		if a == nil {
			return
		}
		r.read(a)
	}
}

// read reads an archive, and publishes it when a request waits for nothing else.
func (r *reading) read(a *archive) {
	d := r.scan.readArchive(a)
	r.found.reading.Lock()
	a.digest, a.pending = d, false
	r.found.reading.Unlock()
	r.batches.count(a) // before a request can take it for finished, and have it published

	r.mutex.Lock()
	a.finished = true
	if a.urgent && r.hurried.Add(-1) == 0 {
		r.resumed.Broadcast()
	}
	granted := false
	for _, wished := range a.wishes {
		wished.left--
		granted = granted || wished.left == 0
	}
	if granted {
		r.publishSoon()
	}
	r.mutex.Unlock()
	r.batches.add()
}

// publishSoon publishes what requests wait for, in the background. All that is
// read until it comes to that is in the same snapshot: under a flood of requests
// the making of snapshots must not keep the reading waiting.
func (r *reading) publishSoon() {
	if r.publishing {
		return
	}
	r.publishing = true
	r.hurries.Go(func() {
		r.batches.pause()
		r.mutex.Lock()
		r.publishing = false
		r.mutex.Unlock()
		r.batches.publish()
	})
}

// pace pauses the reading of an archive while others are waited for.
func (r *reading) pace(a *archive) {
	if r == nil || r.hurried.Load() == 0 {
		return
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for r.hurried.Load() > 0 && !a.urgent && r.scan.ctx.Err() == nil {
		r.resumed.Wait()
	}
}

// A pacedFile is read at the pace of its reading.
type pacedFile struct {
	afero.File
	archive *archive
}

func (f pacedFile) Read(p []byte) (int, error) {
	f.archive.reading.pace(f.archive)
	return f.File.Read(p)
}

func (f pacedFile) ReadAt(p []byte, offset int64) (int, error) {
	f.archive.reading.pace(f.archive)
	return f.File.ReadAt(p, offset)
}

// pacedReaderAt is the same of what is no file.
type pacedReaderAt struct {
	io.ReaderAt
	archive *archive
}

func (r pacedReaderAt) ReadAt(p []byte, offset int64) (int, error) {
	r.archive.reading.pace(r.archive)
	return r.ReaderAt.ReadAt(p, offset)
}

// read reads the archives that are not known. What is known is published at once
// in the first scan.
func (s *scan) read(found *inventory, waiting *waiting, publish func(*Snapshot)) {
	r := newReading(s, found, publish)
	waiting.begin(r)
	if s.last.snapshot == nil {
		r.batches.publish()
	}
	r.run()
	waiting.end()
}
