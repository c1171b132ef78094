package tlog

import (
	"strings"
	"testing"
	"testing/synctest"
)

// testLookup returns a lookup in a log with that many entries before.
func testLookup(t *testing.T, before int) (l Lookup) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		log := open(t, newMemory())
		defer log.Close()
		leaf := moduleLeaf(9_000)
		withdrawn := leaf
		withdrawn.Event, withdrawn.Hashes = Withdrawn, nil
		mustAppend(t, log, leavesFrom(0, before)...)
		mustAppend(t, log, leaf, withdrawn)
		h := log.Head()
		var err error
		if l, err = log.Lookup(t.Context(), h, leaf.Version, leaf.Address); err != nil || len(l.Entries) != 2 {
			t.Fatalf("it has %d entries, %v", len(l.Entries), err)
		}
	})
	return l
}

func TestALookupIsRead(t *testing.T) {
	for _, before := range []int{0, 1, 300} {
		want := testLookup(t, before)
		for _, shasums := range []string{"", strings.Repeat("0f", 32)} {
			want.Shasums = shasums
			got, err := ParseLookup(want.String())
			if err != nil || got.String() != want.String() || got.Shasums != shasums || len(got.Entries) != 2 {
				t.Errorf("%v\n%s\nafter\n%s", err, got, want)
			}
			if c, err := got.Check(origin, testVerifier); err != nil || c.Size != int64(before+2) {
				t.Errorf("its checkpoint has %d entries, %v", c.Size, err)
			}
		}
	}
}

func TestALookupThatIsChangedIsRefused(t *testing.T) {
	l := testLookup(t, 5)
	l.Shasums = strings.Repeat("0f", 32)
	whole := l.String()
	for _, test := range []struct{ rule, from, to string }{
		{"another version", " 3000.0.0", " 3000.0.1"},
		{"another event", "withdrawn ", "restored "},
		{"another number", "index 5\n", "index 4\n"},
		{"another size", "\n7\n", "\n8\n"},
		{"no checkpoint", string(l.Signed), ""},
		{"a digest that is none", "shasums 0f", "shasums 0F"},
		{"two digests", "shasums ", "shasums " + l.Shasums + "\n\nshasums "},
		{"an entry without a proof", "\n\nc2sp.org/tlog-proof@v1\nindex 6", "\n\nwithdrawn"},
	} {
		changed := strings.Replace(whole, test.from, test.to, 1)
		if test.rule == "another version" {
			changed = strings.Replace(whole, " 1.0.0 ", " 1.0.1 ", 1)
		}
		if changed == whole {
			t.Fatalf("%s: nothing is changed in\n%s", test.rule, whole)
		}
		got, err := ParseLookup(changed)
		if err == nil {
			_, err = got.Check(origin, testVerifier)
		}
		if err == nil {
			t.Errorf("%s: it is accepted", test.rule)
		}
	}
}

func FuzzParseLookup(f *testing.F) {
	f.Add("")
	f.Add("a\n1\nb\n\n— a b\n")
	f.Add("offered 2026-11-24T22:00:00Z module acme/vpc/aws 1.2.0 h1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA= zh:" + strings.Repeat("0", 64) + " " + strings.Repeat("0", 32) +
		"\n\nc2sp.org/tlog-proof@v1\nindex 0\n\nshasums " + strings.Repeat("0", 64) + "\n\na\n1\nb\n\n— a b\n")
	f.Fuzz(func(t *testing.T, text string) {
		l, err := ParseLookup(text)
		if err != nil {
			return
		}
		again, err := ParseLookup(l.String())
		if err != nil || again.String() != l.String() {
			t.Errorf("%q is read from %q, and then %q, %v", l, text, again, err)
		}
	})
}

// The latest entries reach from the entries that are in memory into full bundles.
func TestLatestEntries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := open(t, newMemory())
		defer log.Close()
		if latest, err := log.Latest(t.Context(), log.Head(), 10); err != nil || len(latest) != 0 {
			t.Errorf("an empty log has %d, %v", len(latest), err)
		}
		const size = 300
		mustAppend(t, log, leavesFrom(0, size)...)
		for entries, want := range map[int64]int64{10: 10, 100: 100, 1000: size} {
			latest, err := log.Latest(t.Context(), log.Head(), entries)
			if err != nil || int64(len(latest)) != want {
				t.Fatalf("%d, %v, want %d", len(latest), err, want)
			}
			for i, l := range latest {
				if n := int64(size - 1 - i); l.Number != n || l.Address != moduleLeaf(int(n)).Address {
					t.Fatalf("%d is entry %d, of %s", i, l.Number, l.Address)
				}
			}
		}
	})
}
