package tlog

import (
	"bytes"
	"cmp"
	"context"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

// A memory is a store and an anchor in memory, which several instances share.
type memory struct {
	mu      sync.Mutex
	store   Store // has the files in place of the map; may be nil
	files   map[string][]byte
	written map[string]time.Time
	signed  [][]byte // all checkpoints that were ever written, in the store or the anchor
	anchor  []byte
}

func newMemory() *memory {
	return &memory{files: make(map[string][]byte), written: make(map[string]time.Time)}
}

// copy returns the memory as a backup has it.
func (m *memory) copy() *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := newMemory()
	for name, content := range m.files {
		c.files[name] = content
	}
	c.anchor = m.anchor
	return c
}

// where returns where the files are.
func (m *memory) where() Store {
	if m.store != nil {
		return m.store
	}
	return mapStore{m}
}

// A mapStore has the files in the map of a memory, which is locked.
type mapStore struct{ *memory }

func (m mapStore) Create(ctx context.Context, name string, content []byte) error {
	if _, ok := m.files[name]; ok {
		return fs.ErrExist
	}
	return m.Replace(ctx, name, content)
}

func (m mapStore) Read(_ context.Context, name string) ([]byte, error) {
	content, ok := m.files[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return content, nil
}

func (m mapStore) Modified(ctx context.Context, name string) (time.Time, error) {
	_, err := m.Read(ctx, name)
	return m.written[name], err
}

func (m mapStore) List(_ context.Context, dir string) (names []string, err error) {
	for name := range m.files {
		if path.Dir(name) == strings.TrimSuffix(dir, "/") {
			names = append(names, path.Base(name))
		}
	}
	return names, nil
}

func (m mapStore) Replace(_ context.Context, name string, content []byte) error {
	m.files[name], m.written[name] = bytes.Clone(content), time.Now()
	return nil
}

func (m mapStore) Remove(_ context.Context, name string) error {
	delete(m.files, name)
	return nil
}

func (mapStore) Sweep(context.Context) error { return nil }

// An operation of an instance on its store or anchor.
type operation struct {
	does string
	name string
	do   func()
}

// An access is how one instance reaches a memory. Each operation is handed to before, whose
// error is the operation's. An operation with an error has no effect, unless before calls do.
type access struct {
	memory *memory
	before func(operation) error
}

// failing is how an instance reaches a memory if operations fail with an error.
func failing(m *memory, err error, fails func(operation) bool) *access {
	return &access{memory: m, before: func(o operation) error {
		if fails(o) {
			return err
		}
		return nil
	}}
}

func (a *access) run(does, name string, do func()) error {
	locked := func() {
		a.memory.mu.Lock()
		defer a.memory.mu.Unlock()
		do()
	}
	if a.before != nil {
		if err := a.before(operation{does, name, locked}); err != nil {
			return err
		}
	}
	locked()
	return nil
}

func (a *access) Create(ctx context.Context, name string, content []byte) (err error) {
	failed := a.run("create", name, func() { err = a.memory.where().Create(ctx, name, content) })
	return cmp.Or(failed, err)
}

func (a *access) Read(ctx context.Context, name string) (content []byte, err error) {
	failed := a.run("read", name, func() { content, err = a.memory.where().Read(ctx, name) })
	if failed != nil {
		return nil, failed
	}
	return content, err
}

func (a *access) Modified(ctx context.Context, name string) (written time.Time, err error) {
	failed := a.run("stat", name, func() { written, err = a.memory.where().Modified(ctx, name) })
	return written, cmp.Or(failed, err)
}

func (a *access) Sweep(ctx context.Context) error { return a.memory.where().Sweep(ctx) }

func (a *access) List(ctx context.Context, dir string) (names []string, err error) {
	failed := a.run("list", dir, func() { names, err = a.memory.where().List(ctx, dir) })
	slices.Sort(names)
	return names, cmp.Or(failed, err)
}

func (a *access) Replace(ctx context.Context, name string, content []byte) (err error) {
	failed := a.run("replace", name, func() {
		err = a.memory.where().Replace(ctx, name, content)
		if name == checkpointName {
			a.memory.signed = append(a.memory.signed, bytes.Clone(content))
		}
	})
	return cmp.Or(failed, err)
}

func (a *access) Remove(ctx context.Context, name string) (err error) {
	failed := a.run("remove", name, func() { err = a.memory.where().Remove(ctx, name) })
	return cmp.Or(failed, err)
}

// An anchorAccess is how one instance reaches the anchor.
type anchorAccess struct{ *access }

func (a anchorAccess) Load(context.Context) (content []byte, err error) {
	failed := a.run("load", "anchor", func() {
		if content = a.memory.anchor; content == nil {
			err = fs.ErrNotExist
		}
	})
	if failed != nil {
		return nil, failed
	}
	return content, err
}

func (a anchorAccess) Store(_ context.Context, checkpoint []byte) error {
	return a.run("store", "anchor", func() {
		a.memory.anchor = bytes.Clone(checkpoint)
		a.memory.signed = append(a.memory.signed, a.memory.anchor)
	})
}

// Open opens a log in one attempt.
func Open(ctx context.Context, o Options) (*Log, error) { return new(Opening).Open(ctx, o) }
