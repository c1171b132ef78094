package tlog

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// grown returns a memory with a log of so many entries, as it was in between, and its options.
func grown(t *testing.T, old, entries int) (before, now *memory) {
	t.Helper()
	now = newMemory()
	now.files[keyName], now.files[begunName] = []byte("the key"), []byte("2026-01-01T00:00:00Z")
	l := open(t, now)
	defer l.Close()
	for n := 0; n < entries; n += 100 {
		if n >= old && before == nil {
			before = now.copy()
		}
		mustAppend(t, l, leavesFrom(n, min(n+100, entries))...)
	}
	return before, now
}

func withoutBatches(m *memory, until int) {
	for name := range m.files {
		if first, ok := strings.CutPrefix(name, "batch/"); ok && len(first) <= until {
			delete(m.files, name)
		}
	}
}

// Files of a newer copy that a folder lacks are added, and the log goes on. If the two contradict
// each other, nothing is copied.
func TestRestore(t *testing.T) {
	flip := func(m *memory, name string) {
		m.files[name] = bytes.Clone(m.files[name])
		m.files[name][len(m.files[name])-40] ^= 1
	}
	for _, test := range []struct {
		rule  string
		spoil func(old, copied *memory) // old is the folder; the anchor of the log is the newest
		fault string                    // empty: it is restored
	}{
		{"an older backup", func(*memory, *memory) {}, ""},
		{"a folder without files", func(old, _ *memory) { clear(old.files) }, ""},
		{"a copy without old batches", func(_, copied *memory) { withoutBatches(copied, 2) }, ""},
		{"a copy whose newest tile is not written yet", func(_, copied *memory) {
			delete(copied.files, "tile/0/001")
			delete(copied.files, "tile/entries/001")
		}, ""},
		{"files that are gone", func(old, copied *memory) {
			old.files = maps.Clone(copied.files)
			for _, name := range []string{"tile/0/001", "tile/entries/001", checkpointName, keyName} {
				delete(old.files, name)
			}
		}, ""},
		{"a folder that is not behind", func(old, copied *memory) { old.files = maps.Clone(copied.files) }, ""},
		{"a batch that came too late", func(old, copied *memory) {
			old.files["batch/5"] = EncodeBundle([]string{moduleText(9999)})
		}, ""},
		{"a copy that is not the newest", func(old, copied *memory) { copied.files = maps.Clone(old.files) },
			"not the newest: the checkpoint in Caddy's storage has 700 entries, and 300 are stored"},
		{"a copy that is damaged", func(_, copied *memory) { flip(copied, "tile/entries/001") }, "the copy is not whole, or not the newest: tile/0/001"},
		{"a file that is damaged", func(old, _ *memory) { flip(old, "tile/entries/000") }, "tile/entries/000 differs from the copy"},
		{"a batch that is another one", func(old, _ *memory) { flip(old, "batch/256") }, "batch/256 differs from the copy"},
		{"a checkpoint of a twin", func(old, _ *memory) {
			old.files[checkpointName], _ = Checkpoint{Origin: origin, Size: 3}.Sign(testSigner)
		},
			"the checkpoint in the folder of the log has another root for 3 entries than the copy"},
		{"a checkpoint that is newer", func(old, _ *memory) {
			old.files[checkpointName], _ = Checkpoint{Origin: origin, Size: 900}.Sign(testSigner)
		},
			"the checkpoint in the folder of the log has 900 entries, and the copy has 700"},
		{"a checkpoint that is damaged", func(old, _ *memory) { old.files[checkpointName] = []byte("x") }, "the checkpoint in the folder of the log: "},
		{"another key", func(old, _ *memory) { old.files[keyName] = []byte("another") }, "key differs from the copy"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				old, now := grown(t, 300, 700)
				copied := now.copy()
				old.anchor = now.anchor
				test.spoil(old, copied)
				before := maps.Clone(old.files)
				r, err := Restore(t.Context(), optionsFor(&access{memory: old}), &access{memory: copied})
				if err != nil {
					t.Fatal(err)
				}
				if test.fault != "" {
					if len(r.Faults) == 0 || !strings.Contains(strings.Join(r.Faults, "\n"), test.fault) || r.Copied > 0 {
						t.Errorf("it is %+v", r)
					}
					if !maps.EqualFunc(old.files, before, bytes.Equal) {
						t.Error("something was copied")
					}
					return
				}
				if len(r.Faults) > 0 || r.Entries != 700 {
					t.Fatalf("it is %+v", r)
				}
				h, err := Fsck(t.Context(), optionsFor(&access{memory: old}))
				if err != nil || len(h.Faults) > 0 || h.Signed != 700 {
					t.Fatalf("fsck says %+v, %v", h, err)
				}
				if old.files[keyName] == nil || old.files[begunName] == nil || old.files["tile/0/001"] == nil || old.files["tile/entries/001"] == nil {
					t.Error("it lacks a file")
				}
				l := open(t, old)
				defer l.Close()
				mustAppend(t, l, moduleLeaf(700))
			})
		})
	}
}

// The folder has a batch where the copy has a bundle only.
func TestRestoreComparesBatchesWithBundles(t *testing.T) {
	for rule, spoil := range map[string]bool{"the same entries": false, "others": true} {
		t.Run(rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				old, now := grown(t, 300, 700)
				copied := now.copy()
				for name := range copied.files { // the last bundle begins with entry 512
					if strings.HasPrefix(name, "batch/") && name < "batch/512" {
						delete(copied.files, name)
					}
				}
				old.anchor = now.anchor
				if spoil {
					old.files["batch/256"] = EncodeBundle([]string{moduleText(9999)})
					delete(old.files, checkpointName)
				}
				r, err := Restore(t.Context(), optionsFor(&access{memory: old}), &access{memory: copied})
				if err != nil || (len(r.Faults) > 0) != spoil {
					t.Errorf("it is %+v, %v", r, err)
				}
			})
		})
	}
}

// Restore copies the files as they were checked.
func TestRestoreFromACopyThatChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old, now := grown(t, 300, 700)
		copied := now.copy()
		old.anchor = now.anchor
		a := &access{memory: old, before: func(o operation) error {
			if o.does == "read" && o.name == keyName { // the first file that is compared
				copied.files["tile/entries/001"] = copied.files["tile/entries/000"]
			}
			return nil
		}}
		if _, err := Restore(t.Context(), optionsFor(a), &access{memory: copied}); err == nil || !strings.Contains(err.Error(), "tile/entries/001 of the copy has changed meanwhile") {
			t.Errorf("it says %v", err)
		}
	})
}

// The copy has entries that its checkpoint has not. The folder gets the checkpoint of the anchor.
func TestRestoreFromACopyWithAnOlderCheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old, now := grown(t, 300, 700)
		copied := now.copy()
		copied.files[checkpointName], old.anchor = old.files[checkpointName], now.anchor
		if r, err := Restore(t.Context(), optionsFor(&access{memory: old}), &access{memory: copied}); err != nil || len(r.Faults) > 0 {
			t.Fatalf("it is %+v, %v", r, err)
		}
		if !bytes.Equal(old.files[checkpointName], now.anchor) || !bytes.Equal(old.anchor, now.anchor) {
			t.Error("it has an older checkpoint")
		}
	})
}

// A server that runs writes a file at the same moment. If it writes another one, that is told.
func TestRestoreWhileAServerWrites(t *testing.T) {
	for rule, content := range map[string]string{"the same": "", "another": "another"} {
		t.Run(rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				old, now := grown(t, 300, 700)
				copied := now.copy()
				old.anchor = now.anchor
				a := &access{memory: old, before: func(o operation) error {
					if o.does == "create" && o.name == "tile/entries/001" {
						if old.files[o.name] = copied.files[o.name]; content != "" {
							old.files[o.name] = []byte(content)
						}
					}
					return nil
				}}
				_, err := Restore(t.Context(), optionsFor(a), &access{memory: copied})
				if content == "" && err != nil || content != "" && !errors.Is(err, ErrForked) {
					t.Errorf("it says %v", err)
				}
			})
		})
	}
}

// Each operation on the folder or the anchor fails once. Restore says so, and takes no file for
// absent.
func TestRestoreWithAnOperationThatFails(t *testing.T) {
	broken := errors.New("the disk fails")
	synctest.Test(t, func(t *testing.T) {
		before, now := grown(t, 300, 700)
		for n, all := 1, 1; n <= all; n++ {
			old := before.copy()
			at := 0
			a := failing(old, broken, func(operation) bool {
				at++
				return at == n
			})
			_, err := Restore(t.Context(), optionsFor(a), &access{memory: now.copy()})
			if at < n {
				break
			}
			if !errors.Is(err, broken) {
				t.Errorf("operation %d fails, and it says %v", n, err)
			}
			all = n + 1
		}
	})
}

// Before anything else is copied, a server that runs knows how many entries there are, and that
// the log was begun: it adds no entry in place of one that is missing, and enters none as found.
func TestRestoreWithAnOlderAnchor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old, now := grown(t, 300, 700)
		copied := now.copy()
		delete(old.files, begunName)
		a := &access{memory: old, before: func(o operation) error {
			if o.does == "create" && o.name != keyName && !bytes.Equal(old.anchor, now.anchor) {
				t.Errorf("%s is copied, and the anchor is older", o.name)
			}
			if o.does == "create" && o.name != begunName && old.files[begunName] == nil {
				t.Errorf("%s is copied before %s", o.name, begunName)
			}
			return nil
		}}
		if r, err := Restore(t.Context(), optionsFor(a), &access{memory: copied}); err != nil || len(r.Faults) > 0 {
			t.Fatalf("it is %+v, %v", r, err)
		}
		if h, err := Fsck(t.Context(), optionsFor(a)); err != nil || len(h.Faults) > 0 || h.Signed != 700 {
			t.Errorf("fsck says %+v, %v", h, err)
		}
	})
}

// A log that is open while its folder is restored goes on.
func TestALogThatIsOpenWhileItIsRestored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		l := open(t, m)
		defer l.Close()
		mustAppend(t, l, leavesFrom(0, 300)...)
		old := m.copy()
		mustAppend(t, l, leavesFrom(300, 700)...)
		copied := m.copy()
		copied.files[keyName] = []byte("the key")
		m.files = old.files
		if err := appendPatiently(t, l); !errors.Is(err, ErrBehind) {
			t.Fatalf("it says %v", err)
		}
		if r, err := Restore(t.Context(), optionsFor(&access{memory: m}), &access{memory: copied}); err != nil || len(r.Faults) > 0 {
			t.Fatalf("it is %+v, %v", r, err)
		}
		if err := appendPatiently(t, l); err != nil {
			t.Errorf("it says %v", err)
		}
	})
}

// Restore fails if any operation fails, whether it had an effect or not, and can be repeated after
// it was cut off anywhere. Until it is whole, nothing is added.
func TestRestoreThatIsCutOff(t *testing.T) {
	broken := errors.New("the disk fails")
	synctest.Test(t, func(t *testing.T) {
		before, now := grown(t, 300, 700)
		step := 1
		if testing.Short() { // nothing is concurrent
			step = 3
		}
		for _, effect := range []bool{false, true} {
			for n, all := 0, 1; n < all; n += step {
				old, copied := before.copy(), now.copy()
				old.anchor = now.anchor
				at := 0
				a := &access{memory: old, before: func(o operation) error {
					at++
					if at <= n {
						return nil
					}
					if at == n+1 && effect && !slices.Contains([]string{"read", "list", "load"}, o.does) {
						o.do()
					}
					return broken // it was killed
				}}
				r, err := Restore(t.Context(), optionsFor(a), &access{memory: copied})
				if !errors.Is(err, broken) {
					if err != nil || n < 10 {
						t.Fatalf("after %d operations it is %+v, %v", n, r, err)
					}
					break
				}
				all = n + step + 1
				l, err := Open(t.Context(), optionsFor(&access{memory: old}))
				if err == nil {
					if l.Head().Size < 300 {
						t.Errorf("after %d operations there are %d entries", n, l.Head().Size)
					}
					l.Close()
				} else if errors.Is(err, ErrForked) {
					t.Errorf("after %d operations it opens with %v", n, err)
				}
				r, err = Restore(t.Context(), optionsFor(&access{memory: old}), &access{memory: copied})
				if err != nil || len(r.Faults) > 0 {
					t.Fatalf("again after %d operations it is %+v, %v", n, r, err)
				}
				h, err := Fsck(t.Context(), optionsFor(&access{memory: old}))
				if err != nil || len(h.Faults) > 0 || h.Signed != 700 {
					t.Fatalf("after %d operations, fsck says %+v, %v", n, h, err)
				}
			}
		}
		time.Sleep(time.Second)
	})
}
