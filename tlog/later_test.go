package tlog

import (
	"testing"
	"testing/synctest"
)

// An entry that a later release has added is an entry: with it a log is added to, served and
// opened.
func TestAnEntryOfALaterRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		l := open(t, m)
		mustAppend(t, l, leavesFrom(0, 3)...)
		m.files["batch/3"] = EncodeBundle([]string{laterText(1), laterText(7)})
		for range 2 {
			if err := l.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
			mustAppend(t, l, moduleLeaf(1), moduleLeaf(7))
			h := l.Head()
			if h.Size != 6 {
				t.Fatalf("it has %d entries", h.Size)
			}
			if _, err := l.Prove(t.Context(), h, 3); err != nil {
				t.Error(err)
			}
			for _, n := range []int{1, 7} {
				leaf := moduleLeaf(n)
				if leaves, err := l.Leaves(t.Context(), h, leaf.Address, leaf.Version); err != nil || len(leaves) != 1 {
					t.Errorf("version %d has the leaves %v, %v", n, leaves, err)
				}
			}
			if all, err := l.Addresses(t.Context(), h, 3); err != nil || len(all) != 1 || all[0] != moduleLeaf(7).Address {
				t.Errorf("the new entries have the addresses %v, %v", all, err)
			}
			l.Close()
			l = open(t, m)
		}
		mustAppend(t, l, leavesFrom(10, 400)...) // it is in a full bundle
		l.Close()
		l = open(t, m)
		defer l.Close()
		mustAppend(t, l, moduleLeaf(500))
		if l.Head().Size != 397 {
			t.Errorf("in the end it has %d entries", l.Head().Size)
		}
		checkMemory(t, m)
	})
}
