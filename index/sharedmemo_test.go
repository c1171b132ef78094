package index_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/index/memo"
)

// sharedMemo is a memo.Shared in memory.
type sharedMemo struct {
	mutex    sync.Mutex
	segments map[string][]byte
	fails    error
	waits    bool          // until the context ends
	deleted  chan string   // nil: no test waits for it
	merging  chan struct{} // nil: the lock is free; else when it is closed
}

func newSharedMemo() *sharedMemo {
	return &sharedMemo{segments: make(map[string][]byte)}
}

func (m *sharedMemo) begin(ctx context.Context) error {
	m.mutex.Lock()
	waits, err := m.waits, m.fails
	m.mutex.Unlock()
	if waits {
		<-ctx.Done()
		return ctx.Err()
	}
	return err
}

// hang makes all later calls wait.
func (m *sharedMemo) hang() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.waits = true
}

func (m *sharedMemo) List(ctx context.Context) ([]string, error) {
	if err := m.begin(ctx); err != nil {
		return nil, err
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return slices.Sorted(maps.Keys(m.segments)), nil
}

func (m *sharedMemo) Load(ctx context.Context, name string) ([]byte, error) {
	if err := m.begin(ctx); err != nil {
		return nil, err
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	segment, ok := m.segments[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return bytes.Clone(segment), nil
}

func (m *sharedMemo) Store(ctx context.Context, name string, segment []byte) error {
	if err := m.begin(ctx); err != nil {
		return err
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.segments[name] = bytes.Clone(segment)
	return nil
}

func (m *sharedMemo) Delete(_ context.Context, name string) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	delete(m.segments, name)
	if m.deleted != nil {
		m.deleted <- name
	}
	return nil
}

func (m *sharedMemo) Lock(context.Context) (func(), error) {
	if m.merging != nil {
		<-m.merging
	}
	return func() {}, nil
}

// unchanged is a memo.Shared that can only be read.
type unchanged struct{ *sharedMemo }

func (unchanged) Store(context.Context, string, []byte) error { return errors.New("read only") }
func (unchanged) Delete(context.Context, string) error        { return errors.New("read only") }

// inOrder is a memo.Shared that lists its segments in order, or backwards.
type inOrder struct {
	*sharedMemo
	backwards bool
}

func (o inOrder) List(ctx context.Context) ([]string, error) {
	names, err := o.sharedMemo.List(ctx)
	if o.backwards {
		slices.Reverse(names)
	}
	return names, err
}

// hanging is a memo.Shared to which nothing can be added.
type hanging struct{ *sharedMemo }

func (hanging) Store(ctx context.Context, _ string, _ []byte) error {
	<-ctx.Done()
	return ctx.Err()
}

// read returns the files that a new instance has to read, which does not share its own
// records.
func (m *sharedMemo) read(t *testing.T, files *indextest.Tree) int {
	t.Helper()
	return rescan(t, instanceOf(t, files, unchanged{m}).Index).Read
}

// await waits until everything in a tree has been shared.
func (m *sharedMemo) await(t *testing.T, files *indextest.Tree) {
	t.Helper()
	began := time.Now()
	for m.read(t, files) > 0 {
		if time.Since(began) > time.Minute {
			t.Fatal("not everything is shared")
		}
	}
}

func (m *sharedMemo) sizes() (sizes []int) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for _, segment := range m.segments {
		sizes = append(sizes, len(segment))
	}
	return sizes
}

// damage adds n segments of the format of this release that have no records, and returns
// their names.
func (m *sharedMemo) damage(t *testing.T, n int) (names []string) {
	t.Helper()
	files, other := indextest.New(t), newSharedMemo()
	files.Write("modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", "# a module\n"))
	one := instanceOf(t, files, other)
	rescan(t, one.Index)
	one.Close()
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for name, segment := range other.segments {
		for i := range n {
			names = append(names, fmt.Sprintf("%s%02d", name, i))
			m.segments[names[i]] = bytes.Clone(segment)
		}
	}
	return names
}

// instanceOf returns an instance with an empty disk that serves a tree.
func instanceOf(t *testing.T, files *indextest.Tree, m memo.Shared) *logged {
	o := options(t, files.Open)
	o.Shared = m
	return newLogged(t, o)
}

// late is a file system whose listings do not show a file yet.
type late struct {
	afero.Fs
	hides string
}

func (l *late) Open(name string) (afero.File, error) {
	f, err := l.Fs.Open(name)
	if err != nil {
		return nil, err
	}
	return lateFile{f, l.hides}, nil
}

type lateFile struct {
	afero.File
	hides string
}

func (f lateFile) Readdir(n int) ([]fs.FileInfo, error) {
	infos, err := f.File.Readdir(n)
	return slices.DeleteFunc(infos, func(info fs.FileInfo) bool { return info.Name() == path.Base(f.hides) }), err
}

func TestDigestsAreSharedByInstances(t *testing.T) {
	build := func(t *testing.T) *indextest.Tree {
		files := indextest.New(t)
		files.Provider("acme/demo", "1.0.0", "linux_amd64", "darwin_arm64")
		files.Write("modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", "# a module\n"))
		return files
	}
	t.Run("what one instance has read a new one does not read", func(t *testing.T) {
		files, m := build(t), newSharedMemo()
		one := instanceOf(t, files, m)
		if s := rescan(t, one.Index); s.Read != 3 {
			t.Fatalf("the first instance reads %d", s.Read)
		}
		m.await(t, files)
		if s := rescan(t, instanceOf(t, files, m).Index); s.Read != 0 || len(s.Report().Offered) != 2 {
			t.Errorf("the second reads %d and offers %v", s.Read, s.Report().Offered)
		}
	})
	t.Run("nor does one that runs already", func(t *testing.T) {
		files, m := build(t), newSharedMemo()
		one, other := instanceOf(t, files, m), instanceOf(t, files, m)
		rescan(t, one.Index)
		m.await(t, files)
		rescan(t, other.Index)
		files.Provider("acme/demo", "2.0.0", "linux_amd64")
		rescan(t, one.Index)
		m.await(t, files)
		if s := rescan(t, other.Index); s.Read != 0 {
			t.Errorf("it reads %d", s.Read)
		}
	})
	t.Run("nor one that has found it already, and is reading others", func(t *testing.T) {
		files, m := indextest.New(t), newSharedMemo()
		files.Provider("acme/demo", "1.0.0", "linux_amd64", "darwin_arm64", "windows_amd64")
		opened := make(chan struct{}, 1)
		o := options(t, indextest.On(t, indextest.Gate{Fs: files.Fs, Opened: opened}).Open)
		o.Shared, o.Workers = m, 1
		x := newLogged(t, o)
		var scans sync.WaitGroup
		defer scans.Wait()
		scans.Go(func() { rescan(t, x.Index) })
		found := x.Next(t.Context(), nil)

		rescan(t, instanceOf(t, files, m).Index)
		m.await(t, files)
		scans.Go(func() { rescan(t, x.Index) })
		x.Next(t.Context(), found)
		opened <- struct{}{} // for the package that is being read, if the worker was not slower than the other instance
		for s := x.Snapshot(); !offers("acme/demo", "1.0.0")(s); s = x.Next(t.Context(), s) {
			if t.Context().Err() != nil {
				t.Fatal("others are opened as well")
			}
		}
	})
	t.Run("and a folder has the package that was read", func(t *testing.T) {
		files, m := build(t), newSharedMemo()
		one, other := instanceOf(t, files, m), instanceOf(t, files, m)
		rescan(t, one.Index)
		m.await(t, files)
		rescan(t, other.Index)
		files.Write("modules/acme/vpc/aws/2.0.0/main.tf", "# a module\n")
		files.Write("modules/acme/vpc/aws/2.0.0/run", "#!/bin/sh\n") // executable by its content alone
		packed := func(x *logged) (read int, content string) {
			s := rescan(t, x.Index)
			return s.Read, served(t, s, s.Module(index.Place{Address: ownVPC, Merged: true}).Version("2.0.0").Archive)
		}
		_, want := packed(one)
		m.await(t, files)
		if read, got := packed(other); read != 0 || got != want {
			t.Errorf("it reads %d, and its package is equal: %t", read, got == want)
		}
	})
	t.Run("of two records of a file the later one counts", func(t *testing.T) {
		for _, backwards := range []bool{false, true} {
			files, m := build(t), newSharedMemo()
			one := instanceOf(t, files, m)
			rescan(t, one.Index)
			m.await(t, files)
			const name = "modules/acme/vpc/aws/1.0.0.tar.gz"
			files.Write(name, indextest.TarGz("main.tf", "# another module\n"))
			later := time.Date(2026, 2, 2, 3, 4, 5, 0, time.UTC)
			if err := files.Fs.Chtimes(name, later, later); err != nil {
				t.Fatal(err)
			}
			rescan(t, one.Index)
			m.await(t, files)
			other := instanceOf(t, files, inOrder{m, backwards})
			var changed []string
			other.Observe(&index.Observer{Rewritten: func(c index.ChangedVersion) { changed = append(changed, c.Path) }})
			if s := rescan(t, other.Index); s.Read != 0 || len(changed) > 0 {
				t.Errorf("it reads %d, and says that %q has changed", s.Read, changed)
			}
		}
	})
	t.Run("publishers' keys are not shared", func(t *testing.T) {
		files, m := build(t), newSharedMemo()
		acme := indextest.NewPublisher(t)
		files.Provider("acme/demo", "2.0.0", "linux_amd64").Signed(acme)
		files.Keys("acme", acme)
		one := instanceOf(t, files, m)
		rescan(t, one.Index)
		one.Close() // which shares everything
		var shared []byte
		for _, segment := range m.segments {
			shared = append(shared, segment...)
		}
		if bytes.Contains(shared, []byte("keys/acme.asc")) || !bytes.Contains(shared, []byte("_SHA256SUMS.sig")) {
			t.Errorf("shared is %q", shared)
		}
	})
	t.Run("nor one that is shared before the file is found", func(t *testing.T) {
		files, m := build(t), newSharedMemo()
		one := instanceOf(t, files, m)
		behind := indextest.On(t, &late{Fs: files.Fs})
		other := instanceOf(t, behind, m)
		rescan(t, one.Index)
		m.await(t, files)
		rescan(t, other.Index)
		const file = "providers/acme/demo/terraform-provider-demo_2.0.0_linux_amd64.zip"
		behind.Fs.(*late).hides = file
		files.Provider("acme/demo", "2.0.0", "linux_amd64")
		files.Write("modules/acme/vpc/aws/2.0.0.tar.gz", indextest.TarGz("main.tf", "# another\n"))
		rescan(t, one.Index)
		m.await(t, files)
		if s := rescan(t, other.Index); s.Read != 0 {
			t.Errorf("it reads %d of what it finds", s.Read)
		}
		behind.Fs.(*late).hides = ""
		if s := rescan(t, other.Index); s.Read != 0 || !offers("acme/demo", "2.0.0")(s) {
			t.Errorf("it reads %d when it finds the rest", s.Read)
		}
	})
	for _, test := range []struct {
		rule    string
		fails   error
		crashes bool
	}{
		{"what could not be shared is shared after a crash", errors.New("the storage is away"), true},
		{"also after it was closed while the storage hung", nil, false},
	} {
		t.Run(test.rule, func(t *testing.T) {
			files, m, away := build(t), newSharedMemo(), hanging{newSharedMemo()}
			m.damage(t, 1)
			away.damage(t, 1)
			away.fails = test.fails
			o := options(t, files.Open)
			o.Store, o.Shared = new(memoryStore), away
			one := newLogged(t, o)
			if s := rescan(t, one.Index); s.Read != 3 {
				t.Fatalf("it reads %d", s.Read)
			}
			if !test.crashes {
				one.Close()
			}
			o.Shared = m
			if s := rescan(t, newLogged(t, o).Index); s.Read != 0 {
				t.Fatalf("after that it reads %d", s.Read)
			}
			m.await(t, files)
		})
	}
	t.Run("a file that is another one is read", func(t *testing.T) {
		files, m := build(t), newSharedMemo()
		rescan(t, instanceOf(t, files, m).Index)
		m.await(t, files)
		files.Write("modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", "# another module\n"))
		if s := rescan(t, instanceOf(t, files, m).Index); s.Read != 1 {
			t.Errorf("it reads %d", s.Read)
		}
	})
	t.Run("segments that are damaged or foreign are passed over", func(t *testing.T) {
		files, m := build(t), newSharedMemo()
		rescan(t, instanceOf(t, files, m).Index)
		m.await(t, files)
		m.mutex.Lock()
		for _, segment := range m.segments {
			segment[len(segment)/2] ^= 1
		}
		m.segments["another name"], m.segments["empty"] = []byte("something else"), nil
		m.mutex.Unlock()
		if s := rescan(t, instanceOf(t, files, m).Index); s.Read != 3 || len(s.Report().Offered) != 2 {
			t.Errorf("it reads %d and offers %v", s.Read, s.Report().Offered)
		}
	})
	t.Run("without the storage archives are read, and that is logged once", func(t *testing.T) {
		files, m := build(t), newSharedMemo()
		m.fails = errors.New("connection refused")
		one := instanceOf(t, files, m)
		if s := rescan(t, one.Index); s.Read != 3 || len(s.Report().Offered) != 2 {
			t.Errorf("it reads %d and offers %v", s.Read, s.Report().Offered)
		}
		if n := strings.Count(one.log.String(), "connection refused"); n != 1 {
			t.Errorf("it logs:\n%s", one.log.String())
		}
	})
	t.Run("what a memo knows from before is shared as well", func(t *testing.T) {
		files, m := build(t), newSharedMemo()
		store := new(memoryStore)
		o := options(t, files.Open)
		o.Store = store
		alone := index.New(o)
		rescan(t, alone)
		alone.Close()
		o.Shared = m
		again := newIndex(t, o)
		if s := rescan(t, again); s.Read != 0 {
			t.Fatalf("with its memo it reads %d", s.Read)
		}
		m.await(t, files)
		if s := rescan(t, instanceOf(t, files, m).Index); s.Read != 0 {
			t.Errorf("another instance reads %d", s.Read)
		}
	})
	t.Run("damaged segments make room, and take no other with them", func(t *testing.T) {
		files, m := build(t), newSharedMemo()
		damaged := m.damage(t, 40)
		for i := range 40 {
			m.segments[fmt.Sprintf("of-another-format-%02d", i)] = []byte("something else")
		}
		m.deleted = make(chan string, 100)
		rescan(t, instanceOf(t, files, m).Index)
		for removed := 0; removed < len(damaged); {
			switch name := <-m.deleted; {
			case slices.Contains(damaged, name):
				removed++
			case strings.HasPrefix(name, "of-another-format"): // the instance's own are merged
				t.Errorf("%s is removed", name)
			}
		}
		m.await(t, files)
	})
	t.Run("what a memo knows from before is shared beside segments of another format", func(t *testing.T) {
		files, m := build(t), newSharedMemo()
		o := options(t, files.Open)
		o.Store = new(memoryStore)
		alone := index.New(o)
		rescan(t, alone)
		alone.Close()
		m.segments["of-another-format"], o.Shared = []byte("something else"), m
		again := newIndex(t, o)
		rescan(t, again)
		m.await(t, files)
		if other, err := m.Load(t.Context(), "of-another-format"); err != nil || string(other) != "something else" {
			t.Errorf("the other one is %q, %v", other, err)
		}
	})
	t.Run("others are told of a change before segments are merged", func(t *testing.T) {
		files, m := build(t), newSharedMemo()
		m.damage(t, 40)
		m.merging = make(chan struct{})
		defer close(m.merging)
		x := instanceOf(t, files, m)
		told := make(chan struct{})
		x.Observe(&index.Observer{Changed: func([]string) { close(told) }})
		x.Changed("providers/acme/demo")
		rescan(t, x.Index)
		<-told
	})
	t.Run("others are told of a change after its digests are shared", func(t *testing.T) {
		files, m := build(t), newSharedMemo()
		o := options(t, files.Open)
		o.Shared = m
		x := newIndex(t, o)
		rescan(t, x)
		m.await(t, files)
		told := make(chan struct{})
		x.Observe(&index.Observer{Changed: func(folders []string) {
			if fmt.Sprint(folders) != "[providers/acme/demo]" {
				t.Errorf("told are %v", folders)
			}
			close(told)
		}})
		files.Provider("acme/demo", "2.0.0", "linux_amd64")
		x.Changed("providers/acme/demo")
		rescan(t, x)
		<-told
		if read := m.read(t, files); read != 0 {
			t.Errorf("another reads %d by then", read)
		}
	})
	t.Run("closing shares what has been read, and tells of what has been changed", func(t *testing.T) {
		files, m := build(t), newSharedMemo()
		o := options(t, files.Open)
		o.Shared = m
		x := index.New(o)
		rescan(t, x)
		var told []string
		x.Observe(&index.Observer{Changed: func(folders []string) { told = folders }})
		x.Changed("providers/acme/demo")
		x.Close()
		if read := m.read(t, files); read != 0 {
			t.Errorf("another reads %d", read)
		}
		if fmt.Sprint(told) != "[providers/acme/demo]" {
			t.Errorf("told are %v", told)
		}
	})
	t.Run("closing does not wait for a storage that hangs", func(t *testing.T) {
		files, m := build(t), newSharedMemo()
		o := options(t, files.Open)
		o.Shared = m
		x := index.New(o)
		rescan(t, x)
		m.hang()
		x.Close()
	})
}

// A storage keeps a limited number of small values, and none for files that are gone.
func TestSharedDigestsAreBounded(t *testing.T) {
	files, m := indextest.New(t), newSharedMemo()
	x := instanceOf(t, files, m)
	at := time.Now().Add(-time.Hour)
	write := func(version string) {
		files.Write("modules/acme/vpc/aws/"+version+".tar.gz", indextest.TarGz("main.tf", "# "+version))
		name := "modules/acme/vpc/aws/" + version + ".tar.gz"
		if err := files.Fs.Chtimes(name, at, at); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 100 {
		write(fmt.Sprintf("1.%d.0", i))
		rescan(t, x.Index)
		m.await(t, files)
		for began := time.Now(); len(m.sizes()) > 40; runtime.Gosched() { // they are merged in the background
			if time.Since(began) > time.Minute {
				t.Fatalf("after %d changes there are %d segments", i, len(m.sizes()))
			}
		}
		if largest := slices.Max(m.sizes()); largest > 256<<10 {
			t.Fatalf("after %d changes there is a segment of %d bytes", i, largest)
		}
	}
}
