package index

import (
	"io/fs"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A memo remembers what reading an archive gave, so that a scan reads only
// what is new. What one scan did not ask for is forgotten with the next.
type memo struct {
	mutex        sync.Mutex
	before, seen map[string]digest // seen is of the scan that runs
	changed      bool              // since it was last saved
	young        bool              // something was too young to be remembered
	verified     atomic.Uint64     // signatures, not remembered ones
}

// A stamp tells whether a file, or a folder's files, can have changed.
type stamp struct {
	size    int64
	modTime int64       // nanoseconds
	inode   uint64      // where there are any
	changed int64       // nanoseconds: when its inode was last changed
	files   wire.SHA256 // of a folder
}

func stampOf(info fs.FileInfo) stamp {
	inode, changed := identity(info)
	s := stamp{size: info.Size(), modTime: info.ModTime().UnixNano(), inode: inode}
	if !changed.IsZero() {
		s.changed = changed.UnixNano()
	}
	return s
}

// sameContent reports whether size and time of the content agree. On file systems
// without inodes that has to do.
func (s stamp) sameContent(other stamp) bool {
	return s.size == other.size && s.modTime == other.modTime
}

// A digest is what reading an archive gave: for all kinds the sha256 of what
// is served, for a provider's package its h1, for a module folder the size and
// checksum of its packing; or why it is not offered.
type digest struct {
	stamp    stamp
	sha256   wire.SHA256
	h1       string
	size     int64
	checksum uint32
	bad      *finding
	content  []byte // of a small document; of a package, what else reading it told
}

// begin starts a scan. What one that was broken off has read is known too.
func (m *memo) begin() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.before = m.all()
	m.seen, m.young = make(map[string]digest, len(m.before)), false
}

// finish ends a scan that has seen the whole tree: what it did not ask for is
// gone. After one that was broken off everything stays known.
func (m *memo) finish() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.changed = m.changed || len(m.seen) != len(m.before)
	m.before, m.seen = m.seen, nil
}

// all is everything known, also in the middle of a scan.
func (m *memo) all() map[string]digest {
	if m.seen == nil {
		return m.before
	}
	all := maps.Clone(m.before)
	if all == nil {
		all = make(map[string]digest, len(m.seen))
	}
	maps.Copy(all, m.seen)
	return all
}

// get returns what is known of path as it is now.
func (m *memo) get(path string, now stamp) (digest, bool) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	d, ok := m.before[path]
	if !ok || d.stamp != now {
		return digest{}, false
	}
	m.seen[path] = d
	return d, true
}

// retain keeps records that were not asked for because what they prove is known
// in this process. The next one will ask.
func (m *memo) retain(records []string) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for _, record := range records {
		if d, ok := m.before[record]; ok {
			m.seen[record] = d
		}
	}
}

// put remembers d, unless the file is so young that it could still change
// without its stamp changing, or the failure may pass by itself.
func (m *memo) put(path string, d digest, now time.Time) {
	if m.tooYoung(d.stamp, 0, now) {
		return
	}
	if d.bad != nil && (d.bad.reason == Unreadable || d.bad.reason == BeingWritten || d.bad.reason == exhausted) {
		return
	}
	m.keep(path, d)
}

func (m *memo) keep(path string, d digest) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.seen[path] = d
	m.changed = true
}

// tooYoung tells whether a file's last change is so recent that there may be
// others, and that it is worth another look.
func (m *memo) tooYoung(s stamp, rest time.Duration, now time.Time) bool {
	if s.settled(now) && s.rested(now, rest) {
		return false
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.young = true
	return true
}

// forgot tells whether the last scan read something too young to be remembered,
// which is worth another look.
func (m *memo) forgot() bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.young
}

// settled tells whether a further change would give another stamp. File systems
// note times with the precision of the kernel's clock, some milliseconds; the
// coarsest have two seconds. A time in the future says that a clock was set, and
// nothing of the file's age.
func (s stamp) settled(now time.Time) bool {
	precision := 2 * time.Second
	if s.newest()%int64(time.Second) != 0 {
		precision = 50 * time.Millisecond
	}
	return s.rested(now, precision)
}

// rested tells whether the last change is so long ago.
func (s stamp) rested(now time.Time, rest time.Duration) bool {
	age := time.Duration(now.UnixNano() - s.newest())
	return age < 0 || age >= rest
}

// newest is the time of the last change, in nanoseconds.
func (s stamp) newest() int64 {
	if s.changed != 0 {
		return s.changed
	}
	return s.modTime
}
