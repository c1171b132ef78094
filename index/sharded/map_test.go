package sharded_test

import (
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/index/sharded"
)

// Maps are copied and changed again and again: each has what plain maps have that are treated the
// same way, also after its copies have been changed.
func TestAMapStaysTheSameWhenItsCopyChanges(t *testing.T) {
	const keys = 600 // more than there are shards
	random := rand.New(rand.NewPCG(1, 2))
	var last *sharded.Map[int, int]
	plain := make(map[int]int)
	type pair struct {
		*sharded.Map[int, int]
		plain map[int]int
	}
	var all []pair
	for range 50 {
		last, plain = last.Copy(), maps.Clone(plain)
		for range random.IntN(100) {
			key := random.IntN(keys)
			if random.IntN(3) == 0 {
				last.Delete(key)
				delete(plain, key)
			} else {
				value := random.Int()
				last.Set(key, value)
				plain[key] = value
			}
		}
		all = append(all, pair{last, plain})
	}
	for i, p := range all {
		if got := maps.Collect(p.All()); !maps.Equal(got, p.plain) {
			t.Errorf("map %d has %v, want %v", i, got, p.plain)
		}
		for key := range keys {
			if got := p.Get(key); got != p.plain[key] {
				t.Errorf("map %d has %d at %d, want %d", i, got, key, p.plain[key])
			}
		}
	}
}

// While a map is gone through, keys can be removed, also of a shard that another map has.
func TestKeysAreRemovedWhileAMapIsGoneThrough(t *testing.T) {
	var m *sharded.Map[int, bool]
	m = m.Copy()
	for key := range 2000 {
		m.Set(key, true)
	}
	m = m.Copy()
	seen := 0
	for key := range m.Keys() {
		seen++
		m.Delete(key)
		m.Delete((key + 1) % 2000)
	}
	if left := len(maps.Collect(m.All())); left > 0 || seen == 0 || seen == 2000 {
		t.Errorf("%d keys are left, %d were seen", left, seen)
	}
}

// Nothing is found in a map that does not exist.
func TestNoMapHasNothing(t *testing.T) {
	var m *sharded.Map[string, int]
	for key := range m.All() {
		t.Errorf("it has %q", key)
	}
	if got := m.Get("a"); got != 0 {
		t.Errorf("it has %d", got)
	}
}
