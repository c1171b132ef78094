// Package quota limits how much of the disk mirrored files take up.
package quota

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
	// spare is the space that is left free on a disk, in bytes: others write to the
	// disk, too, and the index and its keys are small.
	spare = 32 << 20

	// spareEvery is how many bytes are received until the free space is measured again.
	spareEvery = 16 << 20

	// measuredFor is how long the measured size of the mirrored files is used: others
	// add files to the tree and remove them, too.
	measuredFor = time.Minute

	// unknownFor is how long nothing is received after the first walk has failed, until the
	// next one.
	unknownFor = 15 * time.Second
)

// ErrMaxHeld: the mirrored files have the size that `max_held` allows. The error is
// tree.ErrDiskFull as well.
var ErrMaxHeld error = full("as much is held as `max_held` allows")

// full is a kind of tree.ErrDiskFull with a text of its own.
type full string

func (f full) Error() string        { return string(f) }
func (f full) Is(target error) bool { return target == tree.ErrDiskFull }

// A Quota limits the total size of the files that are mirrored from some hostnames.
type Quota struct {
	max       int64
	hostnames []svchost.Hostname

	measuring sync.Mutex // held while the tree is walked
	failure   error      // of the last walk, if no sum is known
	failedAt  time.Time

	mutex    sync.Mutex
	used     int64
	measured time.Time // zero: never
	kept     int64     // since the walk began, which may or may not have counted it
	reserved int64     // for fills in progress
}

// New returns a quota in bytes for the sources of these hostnames; nil, which limits nothing, for
// zero.
func New(max int64, hostnames []svchost.Hostname) *Quota {
	if max <= 0 {
		return nil
	}
	return &Quota{max: max, hostnames: hostnames}
}

// measure adds up the sizes of the mirrored files, unless this was done a short time
// ago. The walk may take minutes. Only the first walk is waited for; during others the
// previous sum counts. The snapshot does not help, since withheld and unread files take
// up space, too. The error is a StorageError, and means that no sum is known.
func (q *Quota) measure(in ...tree.Part) error {
	switch known, due := q.due(); {
	case !known:
		q.measuring.Lock()
		defer q.measuring.Unlock()
		if known, _ := q.due(); known { // measured meanwhile
			return nil
		}
		if q.failure == nil || time.Since(q.failedAt) >= unknownFor {
			q.failure = tree.StorageError(q.walk(in))
			q.failedAt = time.Now()
		}
		return q.failure
	case due && q.measuring.TryLock():
		go func() {
			defer q.measuring.Unlock()
			q.walk(in)
		}()
	}
	return nil
}

// due reports whether there is a sum, and whether it is too old to be used.
func (q *Quota) due() (known, due bool) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	return !q.measured.IsZero(), time.Since(q.measured) >= measuredFor
}

// walk adds up the mirrored files. It returns an error, and no sum is known, if files cannot be
// read and there is no earlier sum.
func (q *Quota) walk(in []tree.Part) error {
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
	if failed != nil { // files that cannot be read now take up space nevertheless
		if q.measured.IsZero() {
			return failed
		}
		used = max(used, q.used)
	}
	q.used, q.measured = used, time.Now() // the time of the end, not of the beginning
	return nil
}

// sum adds up the sizes of the mirrored files that can be read.
func (q *Quota) sum(in tree.Part) (used int64, failed error) {
	note := func(err error) {
		if failed == nil {
			failed = err
		}
	}
	hosts, err := in.Entries(".")
	note(err)
	for _, host := range hosts {
		if h, err := address.ParseHostname(host.Name); err != nil || !slices.Contains(q.hostnames, h) {
			continue
		}
		note(in.Walk(context.Background(), host.Name, func(_ string, info fs.FileInfo) {
			if info.Mode().IsRegular() && !tree.IsTemporary(info.Name()) {
				used += info.Size()
			}
		}))
	}
	return used, failed
}

// reserve returns an error if there is no room for n further bytes.
func (q *Quota) reserve(n int64) error {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	if n > q.max-q.used-q.reserved { // cannot overflow for any size
		return fmt.Errorf("%w, %s: raise it, or remove releases with `prune`", ErrMaxHeld, humanize.IBytes(uint64(q.max)))
	}
	q.reserved += n
	return nil
}

// end releases reserved bytes, and counts kept ones.
func (q *Quota) end(reserved, kept int64) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	q.reserved -= reserved
	q.used += kept
	q.kept += kept
}

// A Reservation is the space for a package that is being received.
type Reservation struct {
	quota   *Quota                // nil: unlimited
	unknown error                 // why it is not known what the quota leaves
	free    func() (int64, error) // nil: unknown

	expected, received, unchecked int64
}

// Reserve begins the reservation of space for a package. A nil Quota limits nothing. in are the
// parts of the tree with mirrored files, which are measured first if that is due. free returns
// the free bytes on the disk of the package; nil: that is not known.
func (q *Quota) Reserve(free func() (int64, error), in ...tree.Part) *Reservation {
	r := &Reservation{quota: q, free: free}
	if q != nil {
		r.unknown = q.measure(in...)
	}
	return r
}

// Received returns how many bytes have been received.
func (r *Reservation) Received() int64 { return r.received }

// Expect reserves space for a package of a size, before the package is received. It implements
// upstream.Expecter.
func (r *Reservation) Expect(size int64) error {
	if size <= r.expected {
		return nil
	}
	if err := r.checkDisk(size - r.received); err != nil {
		return err
	}
	if err := r.reserve(size - max(r.expected, r.received)); err != nil {
		return err
	}
	r.expected = size
	return nil
}

// use counts received bytes. It checks the quota and the disk.
func (r *Reservation) use(n int64) error {
	if beyond := r.received + n - max(r.expected, r.received); beyond > 0 {
		if err := r.reserve(beyond); err != nil {
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

// reserve reserves n further bytes.
func (r *Reservation) reserve(n int64) error {
	switch {
	case r.unknown != nil:
		return r.unknown
	case r.quota == nil:
		return nil
	}
	return r.quota.reserve(n)
}

// CheckDisk returns an error if some space is no longer free on the disk.
func (r *Reservation) CheckDisk() error { return r.checkDisk(0) }

func (r *Reservation) checkDisk(further int64) error {
	if r.free == nil {
		return nil
	}
	// If the free space is not known, the disk itself reports that it is full.
	if free, err := r.free(); err == nil && free-further < spare {
		return fmt.Errorf("%w: make room for the tree", tree.ErrDiskFull)
	}
	return nil
}

// End releases the space of a package. kept says whether the package was kept.
func (r *Reservation) End(kept bool) {
	if r.quota == nil {
		return
	}
	var size int64
	if kept {
		size = r.received
	}
	r.quota.end(max(r.expected, r.received), size)
}

// A Package is a package while it is added to the tree. It uses the space that is reserved for
// it.
type Package struct {
	tree.TemporaryFile
	*Reservation
}

func (p *Package) Write(b []byte) (int, error) {
	if err := p.use(int64(len(b))); err != nil {
		return 0, err
	}
	return p.TemporaryFile.Write(b)
}
