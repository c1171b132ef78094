package tlog

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/mod/sumdb/note"
	sumdb "golang.org/x/mod/sumdb/tlog"
)

// Nothing is appended to a store that is not the newest one, and what is in it is served.
func TestAStoreFromABackup(t *testing.T) {
	for _, test := range []struct {
		rule    string
		leaves  int // that the backup has
		restore func(now, backup *memory)
		opens   error // of opening it
		appends error // of an instance that runs meanwhile, and of one that opens it
	}{
		{"the files only", 10, func(now, backup *memory) { now.files = backup.files }, nil, ErrBehind},
		{"the files with a full bundle", 300, func(now, backup *memory) { now.files = backup.files }, nil, ErrBehind},
		{"the files, and memory has the bundle that they lack", 505, func(now, backup *memory) { now.files = backup.files }, nil, ErrBehind},
		{"all files are gone", 10, func(now, _ *memory) { now.files = make(map[string][]byte) }, ErrBehind, ErrBehind},
		{"the checkpoint only", 10, func(now, backup *memory) { now.files[checkpointName] = backup.files[checkpointName] }, nil, nil},
		{"the checkpoint is gone", 10, func(now, _ *memory) { delete(now.files, checkpointName) }, nil, nil},
		{"the newest checkpoint elsewhere only", 10, func(now, backup *memory) { now.anchor = backup.anchor }, nil, nil},
		{"all files but the checkpoint", 10, func(now, backup *memory) {
			backup.files[checkpointName] = now.files[checkpointName]
			now.files = backup.files
		}, ErrBehind, ErrBehind},
	} {
		t.Run(test.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMemory()
				running := open(t, m)
				defer running.Close()
				mustAppend(t, running, leavesFrom(0, test.leaves)...)
				backup := m.copy()
				mustAppend(t, running, leavesFrom(test.leaves, test.leaves+7)...)
				newest := moduleLeaf(test.leaves + 6)
				if leaves, err := running.Leaves(t.Context(), running.Head(), newest.Address, newest.Version); err != nil || len(leaves) != 1 {
					t.Fatalf("a look-up finds %v, %v", leaves, err)
				}
				test.restore(m, backup)
				// Without a new leaf, the checkpoint shows it.
				if c := m.files[checkpointName]; !bytes.Equal(c, running.Head().Signed) {
					if err := running.Refresh(t.Context()); !errors.Is(err, test.appends) {
						t.Errorf("what runs and adds nothing says %v", err)
					}
				}
				if err := appendPatiently(t, running); !errors.Is(err, test.appends) {
					t.Errorf("what runs says %v", err)
				}
				if size := running.Head().Size; size < int64(test.leaves+7) {
					t.Errorf("what runs serves %d entries", size)
				}
				var x Opening
				opened, err := x.Open(t.Context(), optionsFor(&access{memory: m}))
				if err != nil {
					if errors.Is(err, ErrBehind) {
						t.Errorf("at once it says %v", err)
					}
					time.Sleep(patience)
					opened, err = x.Open(t.Context(), optionsFor(&access{memory: m}))
				}
				if !errors.Is(err, test.opens) {
					t.Fatalf("opening says %v", err)
				}
				if err != nil {
					return
				}
				defer opened.Close()
				if err := appendPatiently(t, opened); !errors.Is(err, test.appends) {
					t.Errorf("what was opened says %v", err)
				}
				if test.appends == nil {
					checkMemory(t, m)
				}
			})
		})
	}
}

// A backup is made of a log that grows: both checkpoints and the other files, one after the
// other.
func TestABackupOfALogThatGrows(t *testing.T) {
	anchor := func(from, to *memory) { to.anchor = from.anchor }
	checkpoint := func(from, to *memory) { to.files[checkpointName] = from.files[checkpointName] }
	others := func(from, to *memory) {
		for name, content := range from.files {
			if name != checkpointName {
				to.files[name] = content
			}
		}
	}
	matching := func(isBundle bool) func(from, to *memory) {
		return func(from, to *memory) {
			for name, content := range from.files {
				if name != checkpointName && strings.HasPrefix(name, "tile/entries/") == isBundle {
					to.files[name] = content
				}
			}
		}
	}
	bundles, rest := matching(true), matching(false)
	type part = func(from, to *memory)
	for _, test := range []struct {
		rule    string
		parts   []part
		appends error
	}{
		{"what is copied later continues it", []part{anchor, checkpoint, others}, nil},
		{"the checkpoint of the store first", []part{checkpoint, anchor, others}, nil},
		{"the bundles of entries before the tiles, which are written first", []part{anchor, checkpoint, bundles, rest}, nil},
		{"the anchor has entries that the copy lacks", []part{checkpoint, others, anchor}, ErrBehind},
		{"the checkpoint has entries that the copy lacks", []part{anchor, others, checkpoint}, ErrBehind},
	} {
		for _, leaves := range []int{5, 260, 300} { // some bundles become full between two parts
			synctest.Test(t, func(t *testing.T) {
				m, backup := newMemory(), newMemory()
				l := open(t, m)
				for i, copy := range test.parts {
					mustAppend(t, l, leavesFrom(i*leaves, (i+1)*leaves)...)
					copy(m, backup)
				}
				l.Close()
				var x Opening
				opened, err := x.Open(t.Context(), optionsFor(&access{memory: backup}))
				if err != nil {
					time.Sleep(patience)
					opened, err = x.Open(t.Context(), optionsFor(&access{memory: backup}))
				}
				if err == nil {
					defer opened.Close()
					err = appendPatiently(t, opened)
				}
				if !errors.Is(err, test.appends) {
					t.Errorf("%s, by %d: it says %v", test.rule, leaves, err)
				}
			})
		}
	}
}

// appendPatiently adds a leaf, once more where other entries may not be visible yet.
func appendPatiently(t *testing.T, l *Log) error {
	t.Helper()
	err := l.Append(t.Context(), moduleLeaf(9_000))
	if err != nil && !errors.Is(err, ErrBehind) {
		time.Sleep(patience)
		err = l.Append(t.Context(), moduleLeaf(9_000))
	}
	return err
}

// A twin is a copy of a log that went on elsewhere with the same key.
func TestATwinIsNotContinued(t *testing.T) {
	for _, leaves := range []int{3, 300} {
		synctest.Test(t, func(t *testing.T) {
			m := newMemory()
			l := open(t, m)
			mustAppend(t, l, leavesFrom(0, 2)...)
			twin := m.copy()
			mustAppend(t, l, leavesFrom(2, 2+leaves)...)
			defer l.Close()
			other := open(t, twin)
			mustAppend(t, other, leavesFrom(5_000, 5_000+leaves)...)
			other.Close()

			m.files = twin.files // a running instance, and one that begins
			if err := l.Append(t.Context(), moduleLeaf(9_000)); !errors.Is(err, ErrForked) {
				t.Errorf("what runs says %v", err)
			}
			opened := open(t, m)
			defer opened.Close()
			if err := opened.Append(t.Context(), moduleLeaf(9_001)); !errors.Is(err, ErrForked) {
				t.Errorf("what was opened says %v", err)
			}
		})
	}
}

func TestALogOfAnotherKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		l := open(t, m)
		mustAppend(t, l, leavesFrom(0, 2)...)
		l.Close()
		o := optionsFor(&access{memory: m})
		signer, verifier := newTestKey(rand.Reader)
		o.Signers, o.Verifiers = []note.Signer{signer}, []note.Verifier{verifier}
		if _, err := Open(t.Context(), o); err == nil {
			t.Error("it is opened")
		}

		// While keys rotate, both sign.
		o.Signers, o.Verifiers = []note.Signer{signer, testSigner}, []note.Verifier{verifier, testVerifier}
		both, err := Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer both.Close()
		mustAppend(t, both, moduleLeaf(3))
		for name, v := range map[string]note.Verifier{"the new key": verifier, "the old key": testVerifier} {
			if c, err := OpenCheckpoint(both.Head().Signed, origin, v); err != nil || c.Size != 3 {
				t.Errorf("%s has not signed: %v", name, err)
			}
		}
	})
}

func TestFilesThatContradictEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		l := open(t, m)
		mustAppend(t, l, leavesFrom(0, 600)...)
		l.Close()
		for name, content := range m.copy().files {
			if name == checkpointName || strings.HasPrefix(name, "batch/") && name != "batch/512" {
				continue // the next signature differs as well; what full bundles have is not read
			}
			for rule, damaged := range map[string][]byte{
				"a byte differs": append(append([]byte{}, content[:len(content)-1]...), content[len(content)-1]^1),
				"it is cut off":  content[:len(content)-1],
				"it is empty":    {},
				"it is gone":     nil,
			} {
				broken := m.copy()
				if broken.files[name] = damaged; damaged == nil {
					delete(broken.files, name)
				}
				opened, err := Open(t.Context(), optionsFor(&access{memory: broken}))
				if err == nil {
					err = opened.Append(t.Context(), moduleLeaf(9_000))
					opened.Close()
				}
				if gone := damaged == nil; gone && name == "batch/512" { // as in an older backup
					if err == nil {
						t.Errorf("%s: %s", name, rule)
					}
					continue
				} else if gone && strings.HasPrefix(name, "tile/entries/") { // made of its batches
					if err != nil || !bytes.Equal(broken.files[name], content) {
						t.Errorf("%s: %s: %v", name, rule, err)
					}
					continue
				}
				if !errors.Is(err, ErrForked) {
					t.Errorf("%s: %s: %v", name, rule, err)
				}
			}
		}
	})
}

func TestAFailureOfTheStoreIsNoEmptyLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		l := open(t, m)
		mustAppend(t, l, leavesFrom(0, 300)...)
		l.Close()
		for n := 0; ; n++ {
			a, i := &access{memory: m}, 0
			a.before = func(operation) error {
				if i++; i == n+1 {
					return errFault
				}
				return nil
			}
			opened, err := Open(t.Context(), optionsFor(a))
			switch {
			case err == nil && opened.Head().Size != 300:
				t.Errorf("when operation %d fails, it has %d entries", n, opened.Head().Size)
			case err != nil && !errors.Is(err, errFault):
				t.Errorf("when operation %d fails, it says %v", n, err)
			}
			if err == nil {
				opened.Close()
			}
			if i <= n {
				break
			}
		}
	})
}

func TestHashesOfANumberThatALogHasNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := open(t, newMemory())
		defer l.Close()
		mustAppend(t, l, leavesFrom(0, 5)...)
		h := l.Head()
		if _, err := l.Prove(t.Context(), h, 5); err == nil {
			t.Error("number 5 is proven")
		}
		if _, err := l.Prove(t.Context(), h, -1); err == nil {
			t.Error("number -1 is proven")
		}
		if _, err := l.Consistency(t.Context(), h, 6); err == nil {
			t.Error("size 6 is proven")
		}
		if _, err := l.Tile(t.Context(), h, sumdb.Tile{H: 8, L: 0, N: 1 << 60, W: 1}); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a tile far behind the end: %v", err)
		}
	})
}
