package tlog

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

func TestALeafThatSaysNothingNewIsNotAppended(t *testing.T) {
	provider, err := address.Parse("acme/demo")
	if err != nil {
		t.Fatal(err)
	}
	linux, darwin := address.Platform{OS: "linux", Arch: "amd64"}, address.Platform{OS: "darwin", Arch: "arm64"}
	on := func(e Event, p address.Platform, n int) Leaf {
		return Leaf{Event: e, Address: provider, Version: "1.0.0", Platform: p, Hashes: testHashes(n)}
	}
	version := func(e Event) Leaf { return Leaf{Event: e, Address: provider, Version: "1.0.0"} }
	synctest.Test(t, func(t *testing.T) {
		l := open(t, newMemory())
		defer l.Close()
		for _, test := range []struct {
			rule  string
			leaf  Leaf
			added bool
		}{
			{"a version that was not withdrawn is not restored", version(Restored), false},
			{"the first package of a platform", on(Offered, linux, 1), true},
			{"the same again", on(Offered, linux, 1), false},
			{"what was found is on record if it was offered", on(Found, linux, 1), false},
			{"another package for the platform: the first one counts", on(Offered, linux, 2), false},
			{"a package for another platform", on(Offered, darwin, 2), true},
			{"the same content in other bytes", on(Repacked, linux, 3), true},
			{"these again", on(Repacked, linux, 3), false},
			{"a provider in other bytes is no repacked one by itself", on(Offered, linux, 4), false},
			{"a withdrawal", version(Withdrawn), true},
			{"the same withdrawal", version(Withdrawn), false},
			{"the end of it", version(Restored), true},
			{"which ends once", version(Restored), false},
			{"another withdrawal", version(Withdrawn), true},
		} {
			before := l.Head().Size
			mustAppend(t, l, test.leaf)
			if added := l.Head().Size > before; added != test.added {
				t.Errorf("%s: added is %t", test.rule, added)
			}
		}
		folder := moduleLeaf(1)
		folder.Pack = 1
		mustAppend(t, l, folder)
		for _, test := range []struct {
			rule  string
			files string
			zh    int
			want  string
		}{
			{"a folder that is packed in another way", folder.Hashes[0], 100, "[offered repacked]"},
			{"the same again", folder.Hashes[0], 100, "[offered repacked]"},
			{"a folder with other files: the first one counts", "h1:" + strings.Repeat("B", 42) + "A=", 101, "[offered repacked]"},
		} {
			other := folder
			other.Hashes = []string{test.files, testHashes(test.zh)[1]}
			mustAppend(t, l, other)
			leaves, err := l.Leaves(t.Context(), l.Head(), folder.Address, folder.Version)
			if got := fmt.Sprint(eventsOf(leaves)); err != nil || got != test.want {
				t.Errorf("%s: its leaves are %s, %v", test.rule, got, err)
			}
		}
		leaves, err := l.Leaves(t.Context(), l.Head(), provider, "1.0.0")
		events := eventsOf(leaves)
		if got := fmt.Sprint(events); err != nil || got != "[offered offered repacked withdrawn restored withdrawn]" {
			t.Errorf("its leaves are %s, %v", got, err)
		}
	})
}

func TestWhatIsOnRecordIsCompared(t *testing.T) {
	provider, err := address.Parse("acme/demo")
	if err != nil {
		t.Fatal(err)
	}
	linux, darwin := address.Platform{OS: "linux", Arch: "amd64"}, address.Platform{OS: "darwin", Arch: "arm64"}
	hashes := func(files, bytes int) []string {
		sum := sha256.Sum256([]byte{byte(files)})
		return []string{"h1:" + base64.StdEncoding.EncodeToString(sum[:]), fmt.Sprintf("zh:%064x", bytes)}
	}
	on := func(p address.Platform, files, bytes, pack int) Leaf {
		return Leaf{Event: Offered, Address: provider, Version: "1.0.0", Platform: p, Hashes: hashes(files, bytes), Pack: pack}
	}
	module := func(files, bytes int) Leaf {
		leaf := moduleLeaf(1)
		leaf.Hashes = hashes(files, bytes)
		return leaf
	}
	synctest.Test(t, func(t *testing.T) {
		l := open(t, newMemory())
		defer l.Close()
		begun := time.Now()
		mustAppend(t, l, on(linux, 1, 1, 0), on(darwin, 2, 2, 1), module(3, 3))
		time.Sleep(time.Hour)
		mustAppend(t, l, Leaf{Event: Withdrawn, Address: provider, Version: "1.0.0"})
		for _, test := range []struct {
			rule string
			leaf Leaf
			want Record
		}{
			{"the same package", on(linux, 1, 1, 0), OnRecord},
			{"other bytes of a provider", on(linux, 1, 9, 0), Replaced},
			{"other files", on(linux, 9, 9, 0), Replaced},
			{"a platform that came later", on(address.Platform{OS: "windows", Arch: "amd64"}, 9, 9, 0), NotOnRecord},
			{"the same files of a folder that is packed in another way", on(darwin, 2, 9, 1), OnRecord},
			{"a zip with the files of a folder that was packed", on(darwin, 2, 9, 0), Replaced},
			{"other files of a folder", on(darwin, 9, 9, 1), Replaced},
			{"the same module", module(3, 3), OnRecord},
			{"a module in other bytes: links are in no h1", module(3, 9), Replaced},
			{"a module with other files", module(9, 9), Replaced},
			{"another version", moduleLeaf(2), NotOnRecord},
		} {
			got := l.Compare(test.leaf)
			if got.Record != test.want || got.Offered != got.Since {
				t.Errorf("%s: it is %+v, not %d", test.rule, got, test.want)
			}
			if age := got.Since.Sub(begun); got.Record != NotOnRecord && (age < -time.Second || age > time.Minute) {
				t.Errorf("%s: it is on record since %s after the beginning", test.rule, age)
			}
		}
	})
}

func eventsOf(leaves []NumberedLeaf) (events []Event) {
	for _, leaf := range leaves {
		events = append(events, leaf.Event)
	}
	return events
}

func TestALedgerForgetsLeaves(t *testing.T) {
	var l ledger
	again := moduleLeaf(1)
	again.Event, again.Hashes = Withdrawn, nil
	l.add(0, []Leaf{moduleLeaf(1), moduleLeaf(2), again, moduleLeaf(3)})
	l.truncate(2)
	for _, test := range []struct {
		n    int
		want []int64
	}{{1, []int64{0}}, {2, []int64{1}}, {3, nil}} {
		leaf := moduleLeaf(test.n)
		if got, _ := l.leavesOf(leaf.Address, leaf.Version, 10); !slices.Equal(got, test.want) {
			t.Errorf("of version %d it has the leaves %v", test.n, got)
		}
	}
	l.add(2, []Leaf{moduleLeaf(3)})
	if got, _ := l.leavesOf(moduleLeaf(3).Address, moduleLeaf(3).Version, 10); !slices.Equal(got, []int64{2}) {
		t.Errorf("later it has %v", got)
	}
}

// A batch that was stored and not signed may be lost, as when a snapshot of the disk is restored.
// The ledger then has the entries that took its place, and none that the log has not.
func TestABatchThatIsLostBeforeItIsSigned(t *testing.T) {
	for _, test := range []struct {
		rule    string
		replace func(t *testing.T, l *Log, m *memory)
	}{
		{"this instance adds another one", func(t *testing.T, l *Log, m *memory) { mustAppend(t, l, moduleLeaf(2)) }},
		{"another instance adds another one", func(t *testing.T, l *Log, m *memory) {
			other := open(t, m)
			defer other.Close()
			mustAppend(t, other, moduleLeaf(2))
			if err := l.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, full, memo := newMemory(), false, new(keptMemo)
				o := optionsFor(failing(m, errFault, func(o operation) bool { return full && o.does == "store" }))
				o.Memo = memo
				l, err := Open(t.Context(), o)
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
				mustAppend(t, l, moduleLeaf(0))
				full = true
				if err := l.Append(t.Context(), moduleLeaf(1)); !errors.Is(err, errFault) {
					t.Fatalf("without a place for the checkpoint it says %v", err)
				}
				delete(m.files, batchName(1))
				full = false
				test.replace(t, l, m)
				if news := l.News(leavesFrom(0, 3)); len(news) != 1 || news[0].Version != moduleLeaf(1).Version {
					t.Errorf("it has no entry of %v", news)
				}
				mustAppend(t, l, moduleLeaf(1))
				if err := l.Remember(); err != nil {
					t.Fatal(err)
				}
				again, _ := openWith(t, m, memo)
				defer again.Close()
				fresh := open(t, m)
				defer fresh.Close()
				mustBeAlike(t, l, fresh)
				mustBeAlike(t, again, fresh)
			})
		})
	}
}

// A start that cannot sign has the entries that are stored and not signed in its edge.
func TestABatchThatIsLostAfterAStartThatCouldNotSign(t *testing.T) {
	m, full := newMemory(), false
	o := optionsFor(failing(m, errFault, func(o operation) bool { return full && o.does == "store" }))
	start := func() *Log {
		l, err := Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	l := start()
	mustAppend(t, l, moduleLeaf(0))
	full = true
	if err := l.Append(t.Context(), moduleLeaf(1)); !errors.Is(err, errFault) {
		t.Fatalf("without a place for the checkpoint it says %v", err)
	}
	l.Close()
	l = start()
	delete(m.files, batchName(1))
	full = false
	for what, err := range map[string]error{"reading": l.Refresh(t.Context()), "adding": l.Append(t.Context(), moduleLeaf(1))} {
		if !errors.Is(err, errLost) || l.Head().Size != 1 {
			t.Errorf("%s says %v, and %d entries are signed", what, err, l.Head().Size)
		}
	}
	l.Close()
	l = start()
	defer l.Close()
	mustAppend(t, l, moduleLeaf(1))
	fresh := open(t, m)
	defer fresh.Close()
	mustBeAlike(t, l, fresh)
}

func TestALedgerTellsManyPlatformsApart(t *testing.T) {
	var l ledger
	module := moduleLeaf(1)
	platform := func(n int) Leaf {
		leaf := module
		leaf.Platform.OS, leaf.Platform.Arch = "linux", string(rune(0x10000+n))
		return leaf
	}
	var leaves []Leaf
	for n := range 1<<16 + 1 {
		leaves = append(leaves, platform(n))
	}
	l.add(0, leaves)
	seen := make(map[uint32]bool)
	for _, s := range l.leaves {
		seen[s.platform] = true
	}
	if len(seen) != 1<<16+1 {
		t.Errorf("of %d platforms it knows %d", 1<<16+1, len(seen))
	}
}

func TestQuestionsAddNothingToALedger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := open(t, newMemory())
		defer l.Close()
		unknown := moduleLeaf(1)
		unknown.Platform = address.Platform{OS: "plan9", Arch: "amd64"}
		if l.Has(unknown.Address, unknown.Version, unknown.Platform) || l.Compare(unknown).Record != NotOnRecord || len(l.News([]Leaf{unknown})) != 1 {
			t.Error("an empty log has a package")
		}
		if n := len(l.ledger.platforms); n > 0 {
			t.Errorf("it has %d platforms", n)
		}
	})
}
