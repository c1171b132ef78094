package fill

import (
	"container/list"
	"sync"
	"time"
)

// A memory keeps values for some time, and of them only those used last: what
// is asked for from outside must not fill the server.
type memory[K comparable, V any] struct {
	most  int
	room  int         // for the weight of all values; zero: any
	weigh func(V) int // nil: nothing weighs anything
	used  int

	mutex   sync.Mutex
	entries map[K]*list.Element // of *memorized[K, V]
	order   list.List           // the one used last in front
}

type memorized[K comparable, V any] struct {
	key   K
	value V
	weigh int
	until time.Time // zero: as long as there is room
}

func newMemory[K comparable, V any](most int) *memory[K, V] {
	return &memory[K, V]{most: most, entries: make(map[K]*list.Element)}
}

func (m *memory[K, V]) get(key K) (value V, ok bool) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.find(key)
}

func (m *memory[K, V]) find(key K) (value V, ok bool) {
	element := m.entries[key]
	if element == nil {
		return value, false
	}
	e := element.Value.(*memorized[K, V])
	if !e.until.IsZero() && !time.Now().Before(e.until) {
		m.remove(element)
		return value, false
	}
	m.order.MoveToFront(element)
	return e.value, true
}

// put keeps a value for so long; zero is as long as there is room.
func (m *memory[K, V]) put(key K, value V, life time.Duration) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.set(key, value, life)
}

func (m *memory[K, V]) set(key K, value V, life time.Duration) {
	e := &memorized[K, V]{key: key, value: value}
	if life > 0 {
		e.until = time.Now().Add(life)
	}
	if old := m.entries[key]; old != nil {
		m.remove(old)
	}
	if m.weigh != nil {
		e.weigh = m.weigh(value)
	}
	m.used += e.weigh
	m.entries[key] = m.order.PushFront(e)
	for m.order.Len() > m.most || m.room > 0 && m.used > m.room {
		m.remove(m.order.Back())
	}
}

func (m *memory[K, V]) drop(key K) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if element := m.entries[key]; element != nil {
		m.remove(element)
	}
}

func (m *memory[K, V]) remove(element *list.Element) {
	e := element.Value.(*memorized[K, V])
	m.used -= e.weigh
	delete(m.entries, e.key)
	m.order.Remove(element)
}
