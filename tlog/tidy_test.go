package tlog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

func batchesIn(m *memory) (n int) {
	for name := range m.files {
		if strings.HasPrefix(name, "batch/") {
			n++
		}
	}
	return n
}

// Batches go a day after their bundle is full, whichever process has seen that.
func TestOldBatchesGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		tidied := func() int {
			t.Helper()
			l := open(t, m) // a process lives for hours
			defer l.Close()
			if err := l.Tidy(t.Context()); err != nil {
				t.Fatal(err)
			}
			return batchesIn(m)
		}
		l := open(t, m)
		for n := range 6 {
			mustAppend(t, l, leavesFrom(n*50, n*50+50)...)
		}
		l.Close()
		const all = 7 // one ends with the bundle
		for _, test := range []struct {
			rule  string
			after time.Duration
			want  int
		}{
			{"at once", 0, all},
			{"in the same day", 23 * time.Hour, all},
			{"a day later", time.Hour, 1},
			{"what no bundle has stays", 100 * time.Hour, 1},
		} {
			time.Sleep(test.after)
			if n := tidied(); n != test.want {
				t.Errorf("%s: there are %d batches", test.rule, n)
			}
		}
		checkMemory(t, m)
	})
}

// A batch is removed only where a bundle is there and has its entries.
func TestBatchesOfADamagedBundleStay(t *testing.T) {
	for rule, content := range map[string][]byte{"it is gone": nil, "it is cut off": []byte("x")} {
		synctest.Test(t, func(t *testing.T) {
			m := newMemory()
			l := open(t, m)
			mustAppend(t, l, leavesFrom(0, 300)...)
			defer l.Close()
			first := moduleLeaf(0)
			if _, err := l.Leaves(t.Context(), l.Head(), first.Address, first.Version); err != nil { // it is in memory
				t.Fatal(err)
			}
			if m.files["tile/entries/000"] = content; content == nil {
				delete(m.files, "tile/entries/000")
			}
			time.Sleep(100 * time.Hour)
			if err := l.Tidy(t.Context()); (err == nil) != (content == nil) || batchesIn(m) != 2 {
				t.Errorf("%s: there are %d batches, %v", rule, batchesIn(m), err)
			}
		})
	}
}

// Temporary files are looked for once, and everywhere.
func TestWhatKilledInstancesHaveLeftGoes(t *testing.T) {
	dir := t.TempDir()
	a := &access{memory: newMemory()}
	a.memory.store = folderOn(dir)
	o := optionsFor(a)
	o.Interval = time.Nanosecond
	l, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	mustAppend(t, l, leavesFrom(0, 300)...)
	old := time.Now().Add(-100 * time.Hour)
	var left []string
	for _, folder := range []string{".", "batch", "tile/0", "tile/entries"} {
		name := filepath.Join(dir, filepath.FromSlash(tree.TemporaryName(folder+"/file")))
		left = append(left, name)
		if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(name, old, old); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Tidy(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, name := range left {
		if _, err := os.Stat(name); err == nil {
			t.Errorf("%s is still there", strings.TrimPrefix(name, dir))
		}
	}
}
