package tlog

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

const origin = "registry.example.com/v1/tlog"

var testSigner, testVerifier = newTestKey(rand.Reader)

func newTestKey(random io.Reader) (note.Signer, note.Verifier) {
	private, public, err := note.GenerateKey(random, origin)
	if err != nil {
		panic(err)
	}
	signer, err := note.NewSigner(private)
	if err != nil {
		panic(err)
	}
	verifier, err := note.NewVerifier(public)
	if err != nil {
		panic(err)
	}
	return signer, verifier
}

func optionsFor(a *access) Options {
	return Options{Origin: origin, Keys: Keys{Signers: []note.Signer{testSigner}, Verifiers: []note.Verifier{testVerifier}}, Store: a, Anchor: anchorAccess{a}}
}

func open(t *testing.T, m *memory) *Log {
	t.Helper()
	return openBy(t, &access{memory: m})
}

func openBy(t *testing.T, a *access) *Log {
	t.Helper()
	l, err := Open(t.Context(), optionsFor(a))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// moduleLeaf is of a module that no other number has.
func moduleLeaf(n int) Leaf {
	a, err := address.Parse(fmt.Sprintf("acme/m%d/aws", n/3))
	if err != nil {
		panic(err)
	}
	return Leaf{Event: Offered, Address: a, Version: fmt.Sprintf("1.%d.0", n%3), Hashes: testHashes(n)}
}

func testHashes(n int) []string {
	return []string{"h1:" + strings.Repeat("A", 43) + "=", fmt.Sprintf("zh:%064x", n)}
}

func mustAppend(t *testing.T, l *Log, leaves ...Leaf) {
	t.Helper()
	if err := l.Append(t.Context(), leaves...); err != nil {
		t.Fatal(err)
	}
}

func leavesFrom(from, to int) (leaves []Leaf) {
	for n := from; n < to; n++ {
		leaves = append(leaves, moduleLeaf(n))
	}
	return leaves
}

func TestWhatIsAppendedIsProven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		l := open(t, m)
		defer func() { l.Close() }()
		var heads []*Head
		appended := 0
		sizes := []int{0, 1, 2, 5, 255, 256, 257, 300, 511, 512, 513, 1000}
		if !testing.Short() {
			sizes = append(sizes, 1<<16+1) // a full tile of the second level
		}
		for _, n := range sizes {
			for appended < n {
				next := min(n, appended+9_000)
				mustAppend(t, l, leavesFrom(appended, next)...)
				appended = next
			}
			if l.Head().Size != int64(n) {
				t.Fatalf("with %d leaves it has the size %d", n, l.Head().Size)
			}
			heads = append(heads, l.Head())
		}
		entries := checkMemory(t, m)
		for again := range 2 { // as it is, and when it is opened again
			for _, h := range heads {
				for _, n := range []int64{0, 1, 254, 255, 256, 511, h.Size - 2, h.Size - 1} {
					if n < 0 || n >= h.Size {
						continue
					}
					p, err := l.Prove(t.Context(), h, n)
					if err != nil {
						t.Fatal(err)
					}
					if err := p.Check(entries[n], h.Checkpoint); err != nil {
						t.Error(err)
					}
					if err := p.Check(entries[n]+" ", h.Checkpoint); err == nil {
						t.Errorf("another entry is at %d of %d", n, h.Size)
					}
				}
				for _, earlier := range heads {
					c, err := l.Consistency(t.Context(), h, min(earlier.Size, h.Size))
					if err == nil {
						err = c.Check(earlier.Checkpoint, h.Checkpoint)
					}
					if (err == nil) != (earlier.Size <= h.Size) {
						t.Errorf("%d entries after %d: %v", h.Size, earlier.Size, err)
					}
				}
			}
			if again == 0 {
				l.Close()
				l = open(t, m)
				if l.Head().Size != int64(appended) {
					t.Fatalf("opened again it has the size %d", l.Head().Size)
				}
			}
		}
	})
}

func TestTilesOfEachSize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		l := open(t, m)
		defer l.Close()
		mustAppend(t, l, leavesFrom(0, 300)...)
		mustAppend(t, l, leavesFrom(300, 700)...)
		hashes := leafHashes(checkMemory(t, m))
		for _, test := range []struct {
			path string
			want []byte
		}{
			{"tile/0/000", join(hashes[:256])},
			{"tile/0/000.p/5", join(hashes[:5])},
			{"tile/0/002.p/188", join(hashes[512:700])},
			{"tile/0/002.p/189", nil},
			{"tile/0/002", nil},
			{"tile/0/003.p/1", nil},
			{"tile/1/000.p/2", append(merkle(hashes[:256]), merkle(hashes[256:512])...)},
			{"tile/1/000.p/3", nil},
			{"tile/1/000", nil},
			{"tile/2/000.p/1", nil},
			{"tile/63/000.p/1", nil},
			{"tile/0/x999/x999/x999/x999/x999/999", nil},
		} {
			tile, err := ParseTilePath(test.path)
			if err != nil {
				t.Fatal(err)
			}
			got, err := l.Tile(t.Context(), l.Head(), tile)
			if string(got) != string(test.want) || errors.Is(err, fs.ErrNotExist) != (test.want == nil) {
				t.Errorf("%s has %d bytes, %v", test.path, len(got), err)
			}
		}
		for path, want := range map[string]int{"tile/entries/000": 256, "tile/entries/002.p/188": 188, "tile/entries/001.p/7": 7} {
			tile, err := ParseTilePath(path)
			if err != nil {
				t.Fatal(err)
			}
			got, err := l.Tile(t.Context(), l.Head(), tile)
			if entries := split(t, got); err != nil || len(entries) != want {
				t.Errorf("%s has %d entries, %v", path, len(entries), err)
			}
		}
	})
}

// A file that a signed log must have is no tile that it has not.
func TestATileWhoseFileIsGone(t *testing.T) {
	for _, gone := range []string{"tile/entries/000", "tile/0/000"} {
		synctest.Test(t, func(t *testing.T) {
			m := newMemory()
			l := open(t, m)
			mustAppend(t, l, leavesFrom(0, 600)...)
			l.Close()
			l = open(t, m)
			defer l.Close()
			l.files.bundles.Remove(0)
			l.files.tiles.Remove(fullTile(0, 0))
			delete(m.files, gone)
			tile, err := ParseTilePath(gone)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := l.Tile(t.Context(), l.Head(), tile); !errors.Is(err, ErrForked) || errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: %v", gone, err)
			}
			leaf := moduleLeaf(1)
			if _, err := l.Leaves(t.Context(), l.Head(), leaf.Address, leaf.Version); gone != "tile/0/000" && !errors.Is(err, ErrForked) {
				t.Errorf("its leaf: %v", err)
			}
		})
	}
}

// A look-up with a tile in memory.
func BenchmarkProof(b *testing.B) {
	m := newMemory()
	o := optionsFor(&access{memory: m})
	o.Interval = time.Nanosecond
	l, err := Open(b.Context(), o)
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	for n := 0; n < 100_000; n += 10_000 {
		if err := l.Append(b.Context(), leavesFrom(n, n+10_000)...); err != nil {
			b.Fatal(err)
		}
	}
	h := l.Head()
	for b.Loop() {
		if _, err := l.Prove(b.Context(), h, 77); err != nil {
			b.Fatal(err)
		}
	}
}

func join(hashes [][]byte) (all []byte) {
	for _, h := range hashes {
		all = append(all, h...)
	}
	return all
}

func TestALeafThatIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := open(t, newMemory())
		defer l.Close()
		bad := moduleLeaf(1)
		bad.Version = "latest"
		done := make(chan error, 1)
		go func() { done <- l.Append(t.Context(), moduleLeaf(2)) }()
		if err := l.Append(t.Context(), bad); err == nil {
			t.Error("it is added")
		}
		if err := <-done; err != nil || l.Head().Size != 1 {
			t.Errorf("what others add at the same time: %v", err)
		}
	})
}

// Callers share one batch a second, and a caller that leaves takes nothing with it.
func TestCallersThatAppendAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		l := open(t, m)
		defer l.Close()
		began := time.Now()
		mustAppend(t, l, moduleLeaf(0))
		ctx, leave := context.WithCancel(t.Context())
		results := make(chan error, 20)
		go func() { results <- l.Append(ctx, moduleLeaf(0), moduleLeaf(1)) }()
		for n := range 19 {
			go func() { results <- l.Append(t.Context(), moduleLeaf(n+1)) }()
		}
		synctest.Wait()
		leave()
		synctest.Wait()
		if err := <-results; !errors.Is(err, context.Canceled) || l.Head().Size != 1 {
			t.Errorf("who leaves before the second is over is told %v, and there are %d entries", err, l.Head().Size)
		}
		for range 19 {
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(began); l.Head().Size != 20 || len(m.files["batch/1"]) == 0 || len(m.files) != 3 || took != time.Second {
			t.Errorf("after %v there are %d entries, in %d files", took, l.Head().Size, len(m.files))
		}
	})
}

// So many leaves are signed at once, and the rest waits its turn. Close waits for what is being added.
func TestAppendingToALogThatIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		goOn, slow := make(chan struct{}), false
		l := openBy(t, &access{memory: newMemory(), before: func(o operation) error {
			if slow && o.does == "create" {
				<-goOn
			}
			return nil
		}})
		mustAppend(t, l, moduleLeaf(0))
		slow = true
		results := make(chan error, 3)
		const each = maxAdded/2 + 1 // no two are signed at once
		for n := range 3 {
			go func() { results <- l.Append(t.Context(), leavesFrom(n*each, (n+1)*each)...) }()
		}
		time.Sleep(time.Second)
		synctest.Wait() // the first is being added
		closed := make(chan struct{})
		go func() {
			l.Close()
			close(closed)
		}()
		synctest.Wait()
		if len(results) != 2 {
			t.Fatalf("when it is closed, %d of those that wait are answered", len(results))
		}
		for range 2 {
			if err := <-results; !errors.Is(err, errClosed) {
				t.Errorf("who waits is told %v", err)
			}
		}
		select {
		case <-closed:
			t.Error("it is closed while something is added")
		default:
		}
		close(goOn)
		<-closed
		<-results // is answered, too
		if err := l.Append(t.Context(), moduleLeaf(1)); !errors.Is(err, errClosed) {
			t.Errorf("afterwards it says %v", err)
		}
	})
}

// An instance was suspended before it creates a batch. Others have filled the bundle meanwhile,
// and removed the batch with the same number that they had. Then it goes on, just while a
// third one, which has not seen the bundle, reads the batch.
func TestABatchThatIsCreatedAgainIsNoPartOfTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		suspended, reader, filler := &access{memory: m}, &access{memory: m}, &access{memory: m}
		var logs []*Log
		for _, a := range []*access{suspended, reader, filler} {
			l := openBy(t, a)
			defer l.Close()
			logs = append(logs, l)
		}
		mustAppend(t, logs[2], leavesFrom(0, 5)...)
		for _, l := range logs {
			if err := l.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		done := false
		reader.before = func(o operation) error {
			if o.does == "read" && o.name == "batch/5" && !done {
				done = true
				suspended.before = func(create operation) error {
					if create.does != "create" {
						return nil
					}
					suspended.before = nil
					mustAppend(t, logs[2], leavesFrom(10, 300)...)
					time.Sleep(batchLife)
					if err := logs[2].Tidy(t.Context()); err != nil {
						t.Fatal(err)
					}
					if _, ok := m.files["batch/5"]; ok || m.files["tile/entries/000"] == nil {
						t.Fatal("the batch is still there")
					}
					create.do()
					o.do()
					return nil
				}
				mustAppend(t, logs[0], moduleLeaf(400))
			}
			return nil
		}
		if err := logs[1].Refresh(t.Context()); err != nil {
			t.Error(err)
		}
		for _, l := range logs {
			if err := l.Refresh(t.Context()); err != nil || l.Head().Size != 296 {
				t.Errorf("a log has %d entries, %v", l.Head().Size, err)
			}
		}
		if !done {
			t.Error("the reader has not read the batch")
		}
		checkMemory(t, m)
	})
}
