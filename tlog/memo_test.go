package tlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io/fs"
	"math"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A keptMemo is a memo in memory.
type keptMemo struct {
	content []byte
	fails   error
}

func (m *keptMemo) Load() ([]byte, error) {
	if m.content == nil {
		return nil, fs.ErrNotExist
	}
	return m.content, m.fails
}

func (m *keptMemo) Save(content []byte) error {
	if m.fails == nil {
		m.content = content
	}
	return m.fails
}

// openWith opens a log with a memo, and returns the first bundle that it has read for that.
func openWith(t *testing.T, m *memory, memo Memo) (l *Log, first int64) {
	t.Helper()
	first = math.MaxInt64
	a := &access{memory: m, before: func(o operation) error {
		if bundle, err := ParseTilePath(o.name); err == nil && bundle.L < 0 && o.does == "read" {
			first = min(first, bundle.N)
		}
		return nil
	}}
	o := optionsFor(a)
	o.Memo, o.reads = memo, 1 // nothing locks first
	l, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return l, first
}

// mustBeAlike compares what two logs know.
func mustBeAlike(t *testing.T, got, want *Log) {
	t.Helper()
	if got.Head().Checkpoint != want.Head().Checkpoint {
		t.Fatalf("the head is %v, not %v", got.Head().Checkpoint, want.Head().Checkpoint)
	}
	if !reflect.DeepEqual(got.ledger.leaves, want.ledger.leaves) || !reflect.DeepEqual(got.ledger.newest, want.ledger.newest) ||
		!reflect.DeepEqual(got.ledger.platforms, want.ledger.platforms) {
		t.Error("the ledger is another one")
	}
}

// A start reads what has been added since the memo was saved, and knows all the same.
func TestAStartWithAMemoReadsNewEntriesOnly(t *testing.T) {
	const bundles = 4
	for _, test := range []struct {
		rule        string
		before, new int
	}{
		{"nothing is new", bundles*BundleSize + 10, 0},
		{"nothing is new, and the last bundle is full", bundles*BundleSize - 1, 0},
		{"the last bundle is not full yet", bundles*BundleSize + 10, 5},
		{"the last bundle has become full", bundles*BundleSize + 10, BundleSize},
		{"several bundles have become full", bundles*BundleSize + 10, 3 * BundleSize},
		{"one bundle, not full", 1, 1},
	} {
		t.Run(test.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var memo keptMemo
				m := newMemory()
				l, _ := openWith(t, m, &memo)
				mustAppend(t, l, leavesFrom(0, test.before)...)
				mustAppend(t, l, Leaf{Event: Withdrawn, Address: moduleLeaf(0).Address, Version: moduleLeaf(0).Version})
				if err := l.Remember(); err != nil {
					t.Fatal(err)
				}
				l.Close()
				other := open(t, m)
				mustAppend(t, other, leavesFrom(test.before, test.before+test.new)...)
				if test.new > 0 {
					mustAppend(t, other, Leaf{Event: Restored, Address: moduleLeaf(0).Address, Version: moduleLeaf(0).Version})
				}
				other.Close()
				l, first := openWith(t, m, &memo)
				defer l.Close()
				if first < int64(test.before/BundleSize) {
					t.Errorf("it has read bundle %d", first)
				}
				all := open(t, m)
				defer all.Close()
				mustBeAlike(t, l, all)
				mustAppend(t, l, moduleLeaf(1_000_000))
				checkMemory(t, m)
			})
		})
	}
}

// A memo that is not of this log costs time, and nothing else.
func TestAMemoThatCannotBeUsed(t *testing.T) {
	var memo, older keptMemo
	var old, unsigned *memory
	m, twin := newMemory(), newMemory()
	synctest.Test(t, func(t *testing.T) {
		l, _ := openWith(t, m, &memo)
		mustAppend(t, l, leavesFrom(0, 700)...)
		if err := l.Remember(); err != nil {
			t.Fatal(err)
		}
		older.content = memo.content
		old = m.copy()
		old.anchor = nil
		mustAppend(t, l, leavesFrom(700, 1000)...)
		if err := l.Remember(); err != nil {
			t.Fatal(err)
		}
		l.Close()
		unsigned = m.copy()
		unsigned.files[checkpointName], unsigned.anchor = old.files[checkpointName], old.files[checkpointName]
		l = open(t, twin) // with the same versions, and other nonces
		mustAppend(t, l, leavesFrom(0, 1000)...)
		l.Close()
	})
	changed := func(place int) []byte {
		content := bytes.Clone(memo.content)
		content[(place+len(content))%len(content)]++
		return content
	}
	e, known, err := decodeMemo(origin, memo.content)
	if err != nil {
		t.Fatal(err)
	}
	e.levels[0][100][0]++ // after the 700 entries that were signed first
	wrong := mustEncodeMemo(t, e, known)
	renamed := bytes.Replace(memo.content, []byte(origin), []byte(strings.Repeat("x", len(origin))), 1)
	for _, test := range []struct {
		rule string
		memo *keptMemo
		log  *memory
		used bool
	}{
		{"it has never been saved", &keptMemo{}, m, false},
		{"it cannot be read", &keptMemo{memo.content, errFault}, m, false},
		{"it is empty", &keptMemo{[]byte{}, nil}, m, false},
		{"it is of another format", &keptMemo{withChecksum(changed(len(memoFormat) - 2)), nil}, m, false},
		{"a byte of it has changed", &keptMemo{changed(-1000), nil}, m, false},
		{"it is cut off", &keptMemo{memo.content[:len(memo.content)-7], nil}, m, false},
		{"it is of a log of another name", &keptMemo{withChecksum(renamed), nil}, m, false},
		{"it is of another log of that name", &memo, twin, false},
		{"the log is older, from a backup", &memo, old, false},
		{"a hash of it is wrong", &keptMemo{wrong, nil}, m, false},
		{"a hash of it is wrong, of an entry that no checkpoint has", &keptMemo{wrong, nil}, unsigned, false},
		{"it is of this log", &memo, m, true},
		{"it is of this log when that was smaller", &older, m, true},
	} {
		t.Run(test.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, first := openWith(t, test.log, test.memo)
				defer l.Close()
				if used := first > 0; used != test.used {
					t.Errorf("it is used: %v", used)
				}
				all := open(t, test.log)
				defer all.Close()
				mustBeAlike(t, l, all)
			})
		})
	}
}

// With a memo, a log whose entries are gone is refused as without one.
func TestAMemoDoesNotHideThatEntriesAreGone(t *testing.T) {
	for _, test := range []struct {
		rule string
		gone func(m *memory)
	}{
		{"all are gone", func(m *memory) {
			for name := range m.files {
				if name != checkpointName {
					delete(m.files, name)
				}
			}
		}},
		{"the last ones are gone", func(m *memory) {
			delete(m.files, batchName(2*BundleSize))
		}},
		{"the last ones are others", func(m *memory) {
			m.files[batchName(2*BundleSize)] = EncodeBundle(entriesTexts(leavesFrom(5_000, 5_010)))
		}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var memo keptMemo
				m := newMemory()
				l, _ := openWith(t, m, &memo)
				mustAppend(t, l, leavesFrom(0, 2*BundleSize)...)
				mustAppend(t, l, leavesFrom(2*BundleSize, 2*BundleSize+10)...)
				if err := l.Remember(); err != nil {
					t.Fatal(err)
				}
				l.Close()
				test.gone(m)
				var without, with Opening
				o := optionsFor(&access{memory: m})
				_, want := without.Open(t.Context(), o)
				o.Memo = &memo
				_, got := with.Open(t.Context(), o)
				if got == nil || want == nil || got.Error() != want.Error() {
					t.Errorf("the errors are %v, and %v without a memo", got, want)
				}
				time.Sleep(2 * patience)
				_, got = with.Open(t.Context(), o)
				if !errors.Is(got, ErrBehind) && !errors.Is(got, ErrForked) {
					t.Errorf("later it says %v", got)
				}
			})
		})
	}
}

func entriesTexts(leaves []Leaf) (texts []string) {
	for _, l := range leaves {
		l.Nonce = newNonce()
		texts = append(texts, l.String())
	}
	return texts
}

func TestAMemoIsSavedWhenTheLogHasGrown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var memo keptMemo
		l, _ := openWith(t, newMemory(), &memo)
		defer l.Close()
		remember := func(rule string, saves bool) {
			t.Helper()
			memo.content = nil
			if err := l.Remember(); err != nil {
				t.Fatal(err)
			}
			if (memo.content != nil) != saves {
				t.Errorf("%s: it is saved: %v", rule, !saves)
			}
		}
		remember("without entries", false)
		mustAppend(t, l, leavesFrom(0, 10)...)
		memo.fails = errFault
		if err := l.Remember(); !errors.Is(err, errFault) {
			t.Errorf("the error is %v", err)
		}
		memo.fails = nil
		remember("after an error", true)
		remember("when it has been saved", false)
		mustAppend(t, l, leavesFrom(10, 11)...)
		remember("with another entry", true)
	})
}

func mustEncodeMemo(t testing.TB, e *edge, known *ledger) []byte {
	t.Helper()
	content, err := encodeMemo(origin, e, known)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func withChecksum(content []byte) []byte {
	body := bytes.Clone(content[:len(content)-crc32.Size])
	return binary.BigEndian.AppendUint32(body, crc32.Checksum(body, castagnoli))
}

func FuzzDecodeMemo(f *testing.F) {
	e, _ := (&edge{batch: -1}).grow(entriesTexts(leavesFrom(0, 300)))
	var known ledger
	known.add(0, leavesOf(entriesTexts(leavesFrom(0, 300))))
	f.Add(mustEncodeMemo(f, e, &known))
	f.Fuzz(func(t *testing.T, content []byte) {
		if len(content) < crc32.Size {
			return
		}
		e, known, err := decodeMemo(origin, withChecksum(content))
		if err != nil {
			return
		}
		again, l, err := decodeMemo(origin, mustEncodeMemo(t, e, known))
		if err != nil || !reflect.DeepEqual(again.levels, e.levels) || !reflect.DeepEqual(l.leaves, known.leaves) {
			t.Errorf("it reads other things from what it writes, %v", err)
		}
	})
}

func BenchmarkStart(b *testing.B) {
	const entries = 100_000
	var known ledger
	known.add(0, leavesOf(entriesTexts(leavesFrom(0, entries))))
	e, _ := (&edge{batch: -1}).grow(entriesTexts(leavesFrom(0, entries)))
	content := mustEncodeMemo(b, e, &known)
	b.Run("recall", func(b *testing.B) {
		for b.Loop() {
			if _, _, err := decodeMemo(origin, content); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("compare", func(b *testing.B) {
		l := &Log{ledger: &known}
		l.head.Store(&Head{Checkpoint: Checkpoint{Size: entries}})
		leaves := leavesFrom(0, entries)
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if c := l.Compare(leaves[i%entries]); c.Record != OnRecord {
				b.Fatal(c)
			}
		}
	})
}
