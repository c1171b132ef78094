package tlog

import (
	"crypto/sha256"
	"slices"
	"sync"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// A ledger finds the leaves of a version by their numbers. It takes some four bytes a leaf and
// forty bytes a version.
type ledger struct {
	mu       sync.RWMutex
	newest   map[versionKey]int32 // the newest leaf of each version
	previous []int32              // by the number of a leaf, an older one of its version, or -1
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
		if n != int64(len(l.previous)) {
			continue
		}
		k := keyOf(leaf.Address, leaf.Version)
		previous, ok := l.newest[k]
		if !ok {
			previous = -1
		}
		l.previous = append(l.previous, previous)
		l.newest[k] = int32(n)
	}
}

// of returns the numbers below size of the leaves of a version, the oldest first.
func (l *ledger) of(a address.Address, version string, size int64) (numbers []int64) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	n, ok := l.newest[keyOf(a, version)]
	for ; ok && n >= 0; n = l.previous[n] {
		if int64(n) < size {
			numbers = append(numbers, int64(n))
		}
	}
	slices.Reverse(numbers)
	return numbers
}

// size returns how many leaves the ledger has.
func (l *ledger) size() int64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return int64(len(l.previous))
}
