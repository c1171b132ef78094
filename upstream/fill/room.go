package fill

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/dustin/go-humanize"
	svchost "github.com/hashicorp/terraform-svchost"
	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

const (
	// spare is what is left of a disk: others write to it as well, and the index
	// and its keys are small.
	spare = 32 << 20

	// spareEvery is how much comes in until the disk is looked at again.
	spareEvery = 16 << 20

	// measuredFor is how long the sum of what is held is relied on. Others add to
	// the tree and remove from it too.
	measuredFor = time.Minute
)

// ErrMaxHeld: as much is held as may be. The error is ErrDiskFull as well.
var ErrMaxHeld error = full("as much is held as `max_held` allows")

// full is a kind of ErrDiskFull with a text of its own.
type full string

func (f full) Error() string        { return string(f) }
func (f full) Is(target error) bool { return target == ErrDiskFull }

// A Quota bounds what is held of some hostnames, all together.
type Quota struct {
	max       int64
	hostnames []svchost.Hostname

	mutex    sync.Mutex
	held     int64
	measured time.Time // zero: never
	coming   int64     // of packages that come in now, once they are whole
}

// NewQuota is for the sources of these hostnames, in bytes.
func NewQuota(max int64, hostnames []svchost.Hostname) *Quota {
	return &Quota{max: max, hostnames: hostnames}
}

// measure adds up what is held, unless that was done a short time ago.
func (q *Quota) measure(in index.Part) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	if !q.measured.IsZero() && time.Since(q.measured) < measuredFor {
		return
	}
	held, err := q.sum(in)
	if err != nil { // what cannot be read now is there all the same
		held = max(held, q.held)
	}
	q.held, q.measured = held, time.Now() // not when it began: a walk may take minutes
}

// sum adds up what is held, without what an error is of.
func (q *Quota) sum(in index.Part) (held int64, failed error) {
	note := func(err error) {
		if failed == nil && !errors.Is(err, fs.ErrNotExist) {
			failed = err
		}
	}
	hosts, err := afero.ReadDir(in.Fs, in.Dir)
	note(err)
	for _, host := range hosts {
		if h, err := address.ParseHostname(host.Name()); err != nil || !slices.Contains(q.hostnames, h) {
			continue
		}
		_ = afero.Walk(in.Fs, path.Join(in.Dir, host.Name()), func(_ string, info fs.FileInfo, err error) error {
			note(err)
			if err == nil && info.Mode().IsRegular() && !isTemporary(info.Name(), partSuffix) {
				held += info.Size()
			}
			return nil
		})
	}
	return held, failed
}

// add reserves room, or says that there is none.
func (q *Quota) add(n int64) error {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	if n > q.max-q.held-q.coming { // which no size makes overflow
		return fmt.Errorf("%w, %s: raise it, or remove releases with `prune`", ErrMaxHeld, humanize.IBytes(uint64(q.max)))
	}
	q.coming += n
	return nil
}

// end gives back what was reserved, of which so much is held now.
func (q *Quota) end(reserved, kept int64) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	q.coming -= reserved
	q.held += kept
}

// A room is what there is for a package that comes in.
type room struct {
	quota *Quota                // nil: any amount
	free  func() (int64, error) // nil: it is not known

	expected, received, unchecked int64
}

func (f *Filler) newRoom(s *Source, in index.Part) *room {
	if s.Quota != nil {
		s.Quota.measure(in)
	}
	return &room{quota: s.Quota, free: f.options.FreeSpace}
}

// expect reserves room for a package of a size, before it comes in.
func (r *room) expect(size int64) error {
	if size <= r.expected {
		return nil
	}
	if err := r.onDisk(size - r.received); err != nil {
		return err
	}
	if r.quota != nil {
		if err := r.quota.add(size - max(r.expected, r.received)); err != nil {
			return err
		}
	}
	r.expected = size
	return nil
}

// take is for bytes that have come in.
func (r *room) take(n int64) error {
	if beyond := r.received + n - max(r.expected, r.received); r.quota != nil && beyond > 0 {
		if err := r.quota.add(beyond); err != nil {
			return err
		}
	}
	r.received += n
	if r.unchecked += n; r.unchecked < spareEvery {
		return nil
	}
	r.unchecked = 0
	return r.onDisk(0)
}

func (r *room) onDisk(further int64) error {
	if r.free == nil {
		return nil
	}
	// Where it is not known, the disk itself will say.
	if free, err := r.free(); err == nil && free-further < spare {
		return fmt.Errorf("%w: make room for the tree", ErrDiskFull)
	}
	return nil
}

// end gives back what was reserved. The package is kept or not.
func (r *room) end(kept bool) {
	if r.quota == nil {
		return
	}
	var size int64
	if kept {
		size = r.received
	}
	r.quota.end(max(r.expected, r.received), size)
}
