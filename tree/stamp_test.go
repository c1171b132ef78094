package tree_test

import (
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// The stamp of a folder changes with each of its files, and can be relied on when the stamps
// of all files can.
func TestStampOfAFolder(t *testing.T) {
	now := time.Now()
	young := now.UnixNano()
	old := now.Add(-time.Hour).UnixNano()
	stampOf := func(files ...tree.Stamp) tree.Stamp {
		var f tree.FolderStamp
		for i, s := range files {
			f.Add(string(rune('a'+i)), s)
		}
		return f.Stamp()
	}
	tagged, timed := tree.Stamp{Size: 1, ModTime: young, Inode: 7, Changed: tree.ByTag}, tree.Stamp{Size: 2, ModTime: old, Inode: 8, Changed: old}
	other := tagged
	other.Inode = 9
	newest := timed
	newest.Changed = young
	for _, test := range []struct {
		rule    string
		files   []tree.Stamp
		settled bool
	}{
		{"none", nil, true},
		{"with ETags, however young", []tree.Stamp{tagged, other}, true},
		{"old ones", []tree.Stamp{timed, timed}, true},
		{"one that is young", []tree.Stamp{timed, newest}, false},
		{"one without an ETag, which is old", []tree.Stamp{tagged, timed}, true},
		{"one without an ETag, which is young", []tree.Stamp{tagged, newest}, false},
	} {
		t.Run(test.rule, func(t *testing.T) {
			s := stampOf(test.files...)
			if got := s.Settled(now); got != test.settled {
				t.Errorf("the stamp %+v is settled: %v", s, got)
			}
			for i := range test.files {
				files := append([]tree.Stamp(nil), test.files...)
				files[i].Inode++
				if stampOf(files...) == s {
					t.Errorf("the stamp is the same with another file %d", i)
				}
			}
			if s != stampOf(test.files...) {
				t.Error("the same files have another stamp")
			}
		})
	}
}
