// Package sharded has the map in which a snapshot keeps its folders. The next snapshot begins
// with a copy, and must not cost more because the tree is large: a copy shares the shards that
// are never changed afterwards.
package sharded

import (
	"hash/maphash"
	"iter"
	"maps"
)

// count is the number of shards of a map. A copy costs as much as this many pointers and, for
// each key that is changed first in its shard, as one shard.
const count = 256

var seed = maphash.MakeSeed()

// A Map is a map with shards. The zero value is empty. Once a Map has been copied, only the copy
// may be changed.
type Map[K comparable, V any] struct {
	shards [count]map[K]V
	own    [count]bool // which no other Map has
}

// Copy returns a map that has the same values, until it is changed. A nil Map has none.
func (m *Map[K, V]) Copy() *Map[K, V] {
	if m == nil {
		return new(Map[K, V])
	}
	return &Map[K, V]{shards: m.shards}
}

func shardOf[K comparable](key K) int { return int(maphash.Comparable(seed, key) % count) }

// Get returns the value of a key, or the zero value. A nil Map has no values.
func (m *Map[K, V]) Get(key K) (value V) {
	if m == nil {
		return value
	}
	return m.shards[shardOf(key)][key]
}

// Set sets the value of a key.
func (m *Map[K, V]) Set(key K, value V) { m.owned(shardOf(key))[key] = value }

// Delete removes a key, if there is one.
func (m *Map[K, V]) Delete(key K) {
	i := shardOf(key)
	if _, known := m.shards[i][key]; known {
		delete(m.owned(i), key)
	}
}

// owned returns a shard that no other map has.
func (m *Map[K, V]) owned(i int) map[K]V {
	if !m.own[i] {
		m.own[i] = true
		if m.shards[i] = maps.Clone(m.shards[i]); m.shards[i] == nil {
			m.shards[i] = make(map[K]V)
		}
	}
	return m.shards[i]
}

// All yields all keys with their values, in no order. A key that is removed meanwhile is not
// yielded any more.
func (m *Map[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		if m == nil {
			return
		}
		for i := range m.shards {
			for key := range m.shards[i] {
				value, known := m.shards[i][key] // in place of this shard, there may be a copy
				if known && !yield(key, value) {
					return
				}
			}
		}
	}
}

// Keys yields all keys, as All does.
func (m *Map[K, V]) Keys() iter.Seq[K] {
	return func(yield func(K) bool) {
		for key := range m.All() {
			if !yield(key) {
				return
			}
		}
	}
}
