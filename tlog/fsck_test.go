package tlog

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

func TestFsck(t *testing.T) {
	flip := func(m *memory, name string, at int) {
		m.files[name] = bytes.Clone(m.files[name])
		m.files[name][at] ^= 1
	}
	logs := make(map[int]*memory) // with so many entries
	for _, test := range []struct {
		rule    string
		entries int
		spoil   func(m *memory)
		fault   string // empty: there is none
		note    string
	}{
		{"a log without entries", 0, func(m *memory) { delete(m.files, checkpointName); m.anchor = nil }, "", "no entries yet"},
		{"a checkpoint of no entries that is gone", 0, func(m *memory) { delete(m.files, checkpointName) }, "there is no checkpoint", ""},
		{"a small log", 5, func(*memory) {}, "", ""},
		{"a log with tiles on two levels", 66_000, func(*memory) {}, "", ""},
		{"an entry that is another one", 700, func(m *memory) {
			flip(m, "tile/entries/001", bytes.LastIndex(m.files["tile/entries/001"], []byte("2000-01-01T"))+3)
		}, "tile/0/001 does not have", ""},
		{"a bundle that is cut off", 700, func(m *memory) { m.files["tile/entries/001"] = m.files["tile/entries/001"][:500] }, "tile/entries/001 has not 256", ""},
		{"a bundle that is gone", 700, func(m *memory) { delete(m.files, "tile/entries/001") }, "", "tile/entries/001 is not written yet"},
		{"a bundle that is gone with its batches", 700, func(m *memory) {
			delete(m.files, "tile/entries/001")
			for name := range m.files {
				if strings.HasPrefix(name, "batch/") {
					delete(m.files, name)
				}
			}
		}, "has 700 entries, and 256 are stored", ""},
		{"a hash of the upper level", 66_000, func(m *memory) { flip(m, "tile/1/000", 40) }, "tile/1/000 does not have", ""},
		{"a tile that is gone", 700, func(m *memory) { delete(m.files, "tile/0/000") }, "tile/0/000 is gone", ""},
		{"a batch that contradicts a bundle", 700, func(m *memory) { flip(m, "batch/0", bytes.LastIndex(m.files["batch/0"], []byte("2000-01-01T"))+3) }, "batch/0 has another entry", ""},
		{"a batch that came too late", 700, func(m *memory) { m.files["batch/5"] = m.files["batch/0"][:len(EncodeBundle(firstOf(m, 3)))] }, "", "batch/5 came too late"},
		{"a batch that came too late, and is none", 700, func(m *memory) { m.files["batch/5"] = []byte("x") }, "batch/5 is damaged", ""},
		{"a batch after a gap", 5, func(m *memory) { m.files["batch/7"] = m.files["batch/0"] }, "entry 5 is not", ""},
		{"a leaf that is none", 0, func(m *memory) { m.files["batch/0"] = EncodeBundle([]string{"hello"}) }, "", "batch/0: number 0"},
		{"a leaf of a later release", 0, func(m *memory) { m.files["batch/0"] = EncodeBundle([]string{laterText(1)}) }, "", "number 0 is of a later release"},
		{"an entry that is not signed", 0, func(m *memory) { m.files["batch/0"] = EncodeBundle([]string{moduleText(1)}) }, "", "1 entries are stored and not signed"},
		{"a root that is another one", 5, func(m *memory) { flip(m, "batch/0", bytes.LastIndex(m.files["batch/0"], []byte("2000-01-01T"))+3) }, "another root", ""},
		{"a checkpoint that is gone", 5, func(m *memory) { delete(m.files, checkpointName) }, "there is no checkpoint", ""},
		{"a signature of another", 5, func(m *memory) {
			m.files[checkpointName] = bytes.Replace(m.files[checkpointName], []byte("\n5\n"), []byte("\n4\n"), 1)
		}, "invalid signature", ""},
		{"a checkpoint elsewhere that is newer", 5, func(m *memory) {
			m.anchor, _ = Checkpoint{Origin: origin, Size: 9}.Sign(testSigner)
		}, "the checkpoint in Caddy's storage has 9 entries", ""},
		{"a checkpoint elsewhere of a twin", 5, func(m *memory) {
			m.anchor, _ = Checkpoint{Origin: origin, Size: 5}.Sign(testSigner)
		}, "the checkpoint in Caddy's storage has another root", ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			if testing.Short() && test.entries > 10_000 {
				t.Skip("it takes seconds")
			}
			synctest.Test(t, func(t *testing.T) {
				if logs[test.entries] == nil {
					logs[test.entries] = logOf(t, test.entries)
				}
				m := logs[test.entries].copy()
				o := optionsFor(&access{memory: m})
				test.spoil(m)
				before := m.copy()
				h, err := Fsck(t.Context(), o)
				if err != nil {
					t.Fatal(err)
				}
				has := func(list []string, want string) bool {
					return want == "" && len(list) == 0 || want != "" && slices.ContainsFunc(list, func(s string) bool { return strings.Contains(s, want) })
				}
				if !has(h.Faults, test.fault) || !has(h.Notes, test.note) {
					t.Errorf("it has the faults %q and the notes %q", h.Faults, h.Notes)
				}
				for name, content := range before.files {
					if !bytes.Equal(m.files[name], content) {
						t.Errorf("%s is changed", name)
					}
				}
			})
		})
	}
}

// logOf returns the memory of a log with so many entries, and a checkpoint even if it has none.
func logOf(t *testing.T, entries int) *memory {
	t.Helper()
	m := newMemory()
	l := open(t, m)
	for n := 0; n < entries; n += 9_000 {
		mustAppend(t, l, leavesFrom(n, min(n+9_000, entries))...)
	}
	l.Close()
	if m.files[checkpointName] == nil {
		signed, err := l.Head().Checkpoint.Sign(testSigner)
		if err != nil {
			t.Fatal(err)
		}
		m.files[checkpointName], m.anchor = signed, signed
	}
	return m
}

func firstOf(m *memory, n int) []string {
	entries, err := DecodeBundle(m.files["batch/0"])
	if err != nil {
		panic(err)
	}
	return entries[:n]
}

func moduleText(n int) string {
	l := moduleLeaf(n)
	l.Nonce = newNonce()
	return l.String()
}

// laterText is a leaf with an event that this release does not know.
func laterText(n int) string { return "blessed" + strings.TrimPrefix(moduleText(n), "offered") }

// Entries that a registry adds meanwhile are no fault.
func TestFsckOfALogThatGrows(t *testing.T) {
	for _, at := range []string{"read checkpoint", "load anchor", "read tile/entries/000", "list batch", "read batch/4"} {
		synctest.Test(t, func(t *testing.T) {
			m := newMemory()
			l := open(t, m)
			defer l.Close()
			mustAppend(t, l, leavesFrom(0, 4)...)
			mustAppend(t, l, leavesFrom(4, 5)...)
			a := &access{memory: m}
			a.before = func(o operation) error {
				if o.does+" "+o.name == at {
					a.before = nil
					mustAppend(t, l, leavesFrom(5, 300)...)
				}
				return nil
			}
			h, err := Fsck(t.Context(), optionsFor(a))
			if err != nil || len(h.Faults) > 0 || a.before != nil {
				t.Errorf("while it grows before %s, it has the faults %q, %v", at, h.Faults, err)
			}
		})
	}
}

// A file that cannot be read is no fault of the log.
func TestFsckOfFilesThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		l := open(t, m)
		mustAppend(t, l, leavesFrom(0, 600)...)
		l.Close()
		fails := 0
		for n := 0; ; n++ {
			asked := 0
			a := failing(m, errFault, func(operation) bool {
				asked++
				return asked == n+1
			})
			h, err := Fsck(t.Context(), optionsFor(a))
			if asked <= n {
				if err != nil || len(h.Faults) > 0 {
					t.Errorf("%v", err)
				}
				break
			}
			if fails++; !errors.Is(err, errFault) {
				t.Errorf("operation %d: it says %v", n, err)
			}
		}
		if fails < 10 {
			t.Errorf("it has only %d operations", fails)
		}
	})
}
