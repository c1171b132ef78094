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

func (m *memory) set(name string, content []byte) {
	if m.store == nil {
		m.files[name], m.written[name] = bytes.Clone(content), time.Now()
	}
	if name == checkpointName {
		m.signed = append(m.signed, bytes.Clone(content))
	}
}

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
	failed := a.run("create", name, func() {
		if a.memory.store != nil {
			err = a.memory.store.Create(ctx, name, content)
			return
		}
		if _, ok := a.memory.files[name]; ok {
			err = fs.ErrExist
			return
		}
		a.memory.set(name, content)
	})
	if failed != nil {
		return failed
	}
	return err
}

func (a *access) Read(ctx context.Context, name string) (content []byte, err error) {
	failed := a.run("read", name, func() {
		if a.memory.store != nil {
			content, err = a.memory.store.Read(ctx, name)
			return
		}
		var ok bool
		if content, ok = a.memory.files[name]; !ok {
			err = fs.ErrNotExist
		}
	})
	if failed != nil {
		return nil, failed
	}
	return content, err
}

func (a *access) Modified(ctx context.Context, name string) (written time.Time, err error) {
	failed := a.run("stat", name, func() {
		if a.memory.store != nil {
			written, err = a.memory.store.Modified(ctx, name)
			return
		}
		if _, ok := a.memory.files[name]; !ok {
			err = fs.ErrNotExist
		}
		written = a.memory.written[name]
	})
	return written, cmp.Or(failed, err)
}

func (a *access) Sweep(ctx context.Context) error {
	if a.memory.store != nil {
		return a.memory.store.Sweep(ctx)
	}
	return nil
}

func (a *access) List(ctx context.Context, dir string) (names []string, err error) {
	failed := a.run("list", dir, func() {
		if a.memory.store != nil {
			names, err = a.memory.store.List(ctx, dir)
			return
		}
		for name := range a.memory.files {
			if path.Dir(name) == strings.TrimSuffix(dir, "/") {
				names = append(names, path.Base(name))
			}
		}
	})
	slices.Sort(names)
	return names, cmp.Or(failed, err)
}

func (a *access) Replace(ctx context.Context, name string, content []byte) (err error) {
	failed := a.run("replace", name, func() {
		if a.memory.store != nil {
			err = a.memory.store.Replace(ctx, name, content)
		}
		a.memory.set(name, content)
	})
	return cmp.Or(failed, err)
}

func (a *access) Remove(ctx context.Context, name string) (err error) {
	failed := a.run("remove", name, func() {
		if a.memory.store != nil {
			err = a.memory.store.Remove(ctx, name)
			return
		}
		delete(a.memory.files, name)
	})
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
