package tlog

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
	"sync"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// A ledger finds the leaves of a version by their numbers, and knows in short what they say:
// what is offered is compared with them at each start. It takes some fifty bytes a leaf and
// forty bytes a version.
type ledger struct {
	mu        sync.RWMutex
	newest    map[versionKey]int32 // the newest leaf of each version
	leaves    []shortLeaf          // by number
	platforms map[address.Platform]uint16
}

// A shortLeaf is what must be known of a leaf to tell whether another one says something new.
type shortLeaf struct {
	previous int32 // an older leaf of its version, or -1
	platform uint16
	event    eventCode
	h1, zh   [16]byte // the ends of the package's first and last hash, as bytes
}

// An eventCode is a place in the list of events.
type eventCode uint8

func codeOf(e Event) eventCode { return eventCode(slices.Index(events, e)) }

// shorten returns what must be known of a leaf.
func (l *ledger) shorten(leaf Leaf) shortLeaf {
	if l.platforms == nil {
		l.platforms = map[address.Platform]uint16{{}: 0}
	}
	n, ok := l.platforms[leaf.Platform]
	if !ok {
		n = uint16(len(l.platforms))
		l.platforms[leaf.Platform] = n
	}
	s := shortLeaf{platform: n, event: codeOf(leaf.Event)}
	if last := len(leaf.Hashes) - 1; last > 0 {
		h1, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(leaf.Hashes[0], "h1:"))
		zh, _ := hex.DecodeString(strings.TrimPrefix(leaf.Hashes[last], "zh:"))
		if len(h1) == 32 && len(zh) == 32 {
			copy(s.h1[:], h1[16:])
			copy(s.zh[:], zh[16:])
		}
	}
	return s
}

// A versionKey is a digest: the texts of all addresses would take more memory.
type versionKey [16]byte

func keyOf(a address.Address, version string) (k versionKey) {
	sum := sha256.Sum256([]byte(kindOf(a) + " " + a.String() + " " + version))
	copy(k[:], sum[:])
	return k
}

// add adds leaves from the number on. It skips leaves that it has.
func (l *ledger) add(first int64, leaves []Leaf) {
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
		k := keyOf(leaf.Address, leaf.Version)
		short := l.shorten(leaf)
		var ok bool
		if short.previous, ok = l.newest[k]; !ok {
			short.previous = -1
		}
		l.leaves = append(l.leaves, short)
		l.newest[k] = int32(n)
	}
}

// of returns the numbers below size of the leaves of a version, the oldest first.
func (l *ledger) of(a address.Address, version string, size int64) (numbers []int64) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	n, ok := l.newest[keyOf(a, version)]
	for ; ok && n >= 0; n = l.leaves[n].previous {
		if int64(n) < size {
			numbers = append(numbers, int64(n))
		}
	}
	slices.Reverse(numbers)
	return numbers
}

// said returns in short what the leaves below size say of the version of a leaf, the oldest
// first, and what the leaf itself says.
func (l *ledger) said(leaf Leaf, size int64) (known []shortLeaf, says shortLeaf) {
	numbers := l.of(leaf.Address, leaf.Version, size)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range numbers {
		known = append(known, l.leaves[n])
	}
	return known, l.shorten(leaf)
}
