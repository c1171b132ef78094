package tlog

import (
	"crypto/sha256"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A ledger finds the leaves of a version by their numbers, and has them in short, to compare
// packages with them. It takes some fifty bytes a leaf and forty bytes a version.
type ledger struct {
	mu        sync.RWMutex
	newest    map[versionKey]int32 // the newest leaf of each version
	leaves    []shortLeaf          // by number
	platforms map[address.Platform]uint32
}

// A shortLeaf has the parts of a leaf that tell whether another one says something new.
type shortLeaf struct {
	previous int32  // an older leaf of its version, or -1
	seconds  uint32 // the time of the leaf
	origin   uint32 // the time at the origin; 0: not known
	platform uint32
	event    eventCode
	files    bool     // its files count, and not its bytes: see sameFiles
	h1, zh   [16]byte // the ends of the package's first and last hash, as bytes
}

// An eventCode is a place in the list of events.
type eventCode uint8

func codeOf(e Event) eventCode { return eventCode(slices.Index(events, e)) }

// noPlatform is the number of a platform that no leaf has.
const noPlatform = math.MaxUint32

// platform returns the number of a platform. Leaves without one have the number 0.
func (l *ledger) platform(p address.Platform) uint32 {
	if p == (address.Platform{}) {
		return 0
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	if n, ok := l.platforms[p]; ok {
		return n
	}
	return noPlatform
}

// number gives the platforms of leaves their numbers.
func (l *ledger) number(leaves []Leaf) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.platforms == nil {
		l.platforms = map[address.Platform]uint32{{}: 0}
	}
	for _, leaf := range leaves {
		if _, ok := l.platforms[leaf.Platform]; !ok {
			l.platforms[leaf.Platform] = uint32(len(l.platforms))
		}
	}
}

// shorten returns the parts of a leaf that say whether it is new.
func shorten(leaf Leaf, platform uint32) shortLeaf {
	s := shortLeaf{seconds: uint32(leaf.Time.Unix()), platform: platform, event: codeOf(leaf.Event), files: leaf.Pack != 0}
	if at := leaf.Origin.Unix(); at > 0 && at <= math.MaxUint32 {
		s.origin = uint32(at)
	}
	if last := len(leaf.Hashes) - 1; last > 0 {
		h1, isH1 := wire.ParseH1(leaf.Hashes[0])
		zh, isZH := wire.ParseZH(leaf.Hashes[last])
		if isH1 && isZH {
			copy(s.h1[:], h1[16:])
			copy(s.zh[:], zh[16:])
		}
	}
	return s
}

// sameFiles reports whether two packages are folders that the registry has packed, with the
// same files. Packages of others with the same "h1:" need not be the same: it does not cover
// links, and what else clients unpack.
func (s shortLeaf) sameFiles(other shortLeaf) bool {
	return s.files && other.files && s.h1 == other.h1
}

// A versionKey is a digest: the texts of all addresses would take more memory.
type versionKey [16]byte

func keyOf(a address.Address, version string) versionKey {
	var space [128]byte // of most texts: a start asks for all versions
	text := append(space[:0], kindOf(a)...)
	text = append(append(text, ' '), a.String()...)
	text = append(append(text, ' '), version...)
	sum := sha256.Sum256(text)
	return versionKey(sum[:])
}

// add adds leaves from the number on. It skips leaves that it has.
func (l *ledger) add(first int64, leaves []Leaf) {
	l.number(leaves)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.newest == nil {
		l.newest = make(map[versionKey]int32)
	}
	for i, leaf := range leaves {
		n := first + int64(i)
		if n != int64(len(l.leaves)) {
			continue
		}
		if leaf.Event == "" { // no leaf: it belongs to no version
			l.leaves = append(l.leaves, shortLeaf{previous: -1})
			continue
		}
		k := keyOf(leaf.Address, leaf.Version)
		short := shorten(leaf, l.platforms[leaf.Platform])
		var ok bool
		if short.previous, ok = l.newest[k]; !ok {
			short.previous = -1
		}
		l.leaves = append(l.leaves, short)
		l.newest[k] = int32(n)
	}
}

// truncate forgets the leaves from a number on.
func (l *ledger) truncate(size int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if int64(len(l.leaves)) <= size {
		return
	}
	for k, n := range l.newest {
		for int64(n) >= size {
			n = l.leaves[n].previous
		}
		if l.newest[k] = n; n < 0 {
			delete(l.newest, k)
		}
	}
	l.leaves = l.leaves[:size]
}

// each calls do with the leaves below size of a version, the newest first, and their numbers.
func (l *ledger) each(a address.Address, version string, size int64, do func(number int64, leaf *shortLeaf)) {
	key := keyOf(a, version)
	l.mu.RLock()
	defer l.mu.RUnlock()
	n, ok := l.newest[key]
	for ; ok && n >= 0; n = l.leaves[n].previous {
		if int64(n) < size {
			do(int64(n), &l.leaves[n])
		}
	}
}

// leavesOf returns the leaves below size of a version, the oldest first, with their numbers.
func (l *ledger) leavesOf(a address.Address, version string, size int64) (numbers []int64, leaves []shortLeaf) {
	l.each(a, version, size, func(n int64, leaf *shortLeaf) { numbers, leaves = append(numbers, n), append(leaves, *leaf) })
	slices.Reverse(numbers)
	slices.Reverse(leaves)
	return numbers, leaves
}

// A Record says what a log has of a package.
type Record int

const (
	// NotOnRecord: it has no package of the version, for the platform.
	NotOnRecord Record = iota

	// OnRecord: it has these bytes, or both are packed folders with the same files.
	OnRecord

	// Replaced: it has only others.
	Replaced
)

// A Comparison says what a log has of a package, and since when.
type Comparison struct {
	Record  Record
	Since   time.Time // when it was entered, or the other package that is on record
	Offered time.Time // when that was first offered, here or at its origin; zero: not known
}

// Compare returns what the log has of the package of a leaf. It reads nothing.
func (l *Log) Compare(leaf Leaf) Comparison {
	says := shorten(leaf, l.ledger.platform(leaf.Platform))
	var oldest, same shortLeaf
	record := NotOnRecord
	l.ledger.each(leaf.Address, leaf.Version, l.Head().Size, func(_ int64, known *shortLeaf) {
		switch {
		case !events[known.event].HasPackage() || known.platform != says.platform:
		case known.zh == says.zh || known.sameFiles(says):
			same, record = *known, OnRecord
		case record == NotOnRecord:
			oldest, record = *known, Replaced
		default:
			oldest = *known
		}
	})
	switch record {
	case OnRecord:
		return same.comparison(OnRecord)
	case Replaced:
		return oldest.comparison(Replaced)
	}
	return Comparison{}
}

func (s *shortLeaf) comparison(r Record) Comparison {
	c := Comparison{Record: r, Since: time.Unix(int64(s.seconds), 0).UTC()}
	switch {
	case s.origin != 0:
		c.Offered = time.Unix(int64(s.origin), 0).UTC()
	case events[s.event] != Found: // which may be of any age
		c.Offered = c.Since
	}
	return c
}

// Has reports whether the log has a package of a version, for a platform unless it is zero. It
// reads nothing.
func (l *Log) Has(a address.Address, version string, on address.Platform) bool {
	_, known := l.ledger.leavesOf(a, version, l.Head().Size)
	platform := l.ledger.platform(on)
	return slices.ContainsFunc(known, func(k shortLeaf) bool {
		return events[k.event].HasPackage() && (on == address.Platform{} || k.platform == platform)
	})
}

// An Appearance is the first entry of a version.
type Appearance struct {
	Number int64
	Time   time.Time
	Found  bool // it was there before the log: it may be of any age
}

// Appearance returns the first entry of a version with a package. It reads nothing.
func (l *Log) Appearance(a address.Address, version string) (first Appearance, ok bool) {
	numbers, known := l.ledger.leavesOf(a, version, l.Head().Size)
	for i, k := range known {
		if e := events[k.event]; e.HasPackage() {
			return Appearance{numbers[i], time.Unix(int64(k.seconds), 0).UTC(), e == Found}, true
		}
	}
	return Appearance{}, false
}

// WithdrawnAt returns when a version was withdrawn; zero if it is not withdrawn, as far as the
// log has it. It reads nothing.
func (l *Log) WithdrawnAt(a address.Address, version string) (at time.Time) {
	_, known := l.ledger.leavesOf(a, version, l.Head().Size)
	for _, k := range known {
		switch events[k.event] {
		case Withdrawn:
			at = time.Unix(int64(k.seconds), 0)
		case Restored:
			at = time.Time{}
		}
	}
	return at
}
