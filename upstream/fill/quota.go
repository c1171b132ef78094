package fill

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/dustin/go-humanize"
	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

const (
	// spare is what is left free of a disk, in bytes: others write to it as well, and
	// the index and its keys are small.
	spare = 32 << 20

	// spareEvery is how many bytes come in until the disk is measured again.
	spareEvery = 16 << 20

	// measuredFor is how long the size of the mirrored files is relied on: others add
	// to the tree and remove from it too.
	measuredFor = time.Minute
)

// ErrMaxHeld: the mirrored files have the size that `max_held` allows. The error is
// index.ErrDiskFull as well.
var ErrMaxHeld error = full("as much is held as `max_held` allows")

// full is a kind of index.ErrDiskFull with a text of its own.
type full string

func (f full) Error() string        { return string(f) }
func (f full) Is(target error) bool { return target == tree.ErrDiskFull }

// A Quota bounds the size of what is mirrored of some hostnames, all together.
type Quota struct {
	max       int64
	hostnames []svchost.Hostname

	measuring sync.Mutex // is held by who walks the tree

	mutex    sync.Mutex
	used     int64
	measured time.Time // zero: never
	kept     int64     // since the walk began, which may have seen it or not
	reserved int64     // for what comes in now
}

// NewQuota is for the sources of these hostnames, in bytes.
func NewQuota(max int64, hostnames []svchost.Hostname) *Quota {
	return &Quota{max: max, hostnames: hostnames}
}

// measure has the mirrored files added up, unless that was done a short time ago. The walk
// may take minutes: only the first one is waited for, and until the end of another the sum
// of before counts. The snapshot is no help: what is withheld or not read yet takes up room.
func (q *Quota) measure(in ...tree.Part) {
	switch known, due := q.due(); {
	case !known:
		q.measuring.Lock()
		defer q.measuring.Unlock()
		if known, _ := q.due(); !known { // nobody has measured meanwhile
			q.walk(in)
		}
	case due && q.measuring.TryLock():
		go func() {
			defer q.measuring.Unlock()
			q.walk(in)
		}()
	}
}

// due reports whether there is a sum, and whether it is too old to be relied on.
func (q *Quota) due() (known, due bool) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	return !q.measured.IsZero(), time.Since(q.measured) >= measuredFor
}

// walk adds up the mirrored files.
func (q *Quota) walk(in []tree.Part) {
	q.mutex.Lock()
	q.kept = 0
	q.mutex.Unlock()
	var used int64
	var failed error
	for _, part := range in {
		n, err := q.sum(part)
		used += n
		if err != nil {
			failed = err
		}
	}
	q.mutex.Lock()
	defer q.mutex.Unlock()
	used += q.kept
	if failed != nil { // files that cannot be read now take up room all the same
		used = max(used, q.used)
	}
	q.used, q.measured = used, time.Now() // not when it began
}

// sum adds up the sizes of the mirrored files that can be read.
func (q *Quota) sum(in tree.Part) (used int64, failed error) {
	note := func(err error) {
		if failed == nil {
			failed = err
		}
	}
	hosts, err := in.ReadDir(".")
	note(err)
	for _, host := range hosts {
		if h, err := address.ParseHostname(host.Name()); err != nil || !slices.Contains(q.hostnames, h) {
			continue
		}
		note(in.WalkFiles(context.Background(), host.Name(), func(_ string, info fs.FileInfo) {
			if info.Mode().IsRegular() && !tree.IsTemporary(info.Name()) {
				used += info.Size()
			}
		}))
	}
	return used, failed
}

// reserve fails if there is no room for n further bytes.
func (q *Quota) reserve(n int64) error {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	if n > q.max-q.used-q.reserved { // no size makes it overflow
		return fmt.Errorf("%w, %s: raise it, or remove releases with `prune`", ErrMaxHeld, humanize.IBytes(uint64(q.max)))
	}
	q.reserved += n
	return nil
}

// end gives back what was reserved, of which some bytes were kept.
func (q *Quota) end(reserved, kept int64) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	q.reserved -= reserved
	q.used += kept
	q.kept += kept
}

// A reservedPackage is a package on its way into the tree, which takes up the room
// that is reserved for it.
type reservedPackage struct {
	*tree.TemporaryFile
	reservation *reservation
}

// Expect implements upstream.Expecter.
func (p *reservedPackage) Expect(size int64) error { return p.reservation.expect(size) }

func (p *reservedPackage) Write(b []byte) (int, error) {
	if err := p.reservation.use(int64(len(b))); err != nil {
		return 0, err
	}
	return p.TemporaryFile.Write(b)
}

// A reservation is the room for a package that comes in.
type reservation struct {
	quota *Quota                               // nil: unbounded
	free  func(address.Address) (int64, error) // nil: not known
	of    address.Address

	expected, received, unchecked int64
}

func (f *Filler) reserve(s *Source, files tree.Tree, a address.Address) *reservation {
	if s.Quota != nil {
		s.Quota.measure(files.Providers, files.Modules)
	}
	return &reservation{quota: s.Quota, free: f.options.FreeSpace, of: a}
}

// expect reserves room for a package of a size, before it comes in.
func (r *reservation) expect(size int64) error {
	if size <= r.expected {
		return nil
	}
	if err := r.checkDisk(size - r.received); err != nil {
		return err
	}
	if r.quota != nil {
		if err := r.quota.reserve(size - max(r.expected, r.received)); err != nil {
			return err
		}
	}
	r.expected = size
	return nil
}

// use is for bytes that have come in.
func (r *reservation) use(n int64) error {
	if beyond := r.received + n - max(r.expected, r.received); r.quota != nil && beyond > 0 {
		if err := r.quota.reserve(beyond); err != nil {
			return err
		}
	}
	r.received += n
	if r.unchecked += n; r.unchecked < spareEvery {
		return nil
	}
	r.unchecked = 0
	return r.checkDisk(0)
}

func (r *reservation) checkDisk(further int64) error {
	if r.free == nil {
		return nil
	}
	// Where it is not known, the disk itself reports that it is full.
	if free, err := r.free(r.of); err == nil && free-further < spare {
		return fmt.Errorf("%w: make room for the tree", tree.ErrDiskFull)
	}
	return nil
}

// end gives back what was reserved for a package that is kept or not.
func (r *reservation) end(kept bool) {
	if r.quota == nil {
		return
	}
	var size int64
	if kept {
		size = r.received
	}
	r.quota.end(max(r.expected, r.received), size)
}
