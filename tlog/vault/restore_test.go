package vault

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
)

// A log is restored from a copy of its folder, and from no other log.
func TestRestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		storage, bucket := newValues(), new(treetest.Bucket)
		l := Log{Files: folderIn(bucket), Storage: storage, Origin: origin}
		if err := appendTo(t, l, "1.0.0"); err != nil {
			t.Fatal(err)
		}
		old := bucket.Contents()
		if err := appendTo(t, l, "2.0.0"); err != nil {
			t.Fatal(err)
		}
		now := bucket.Contents()
		made := func(files map[string]string) *treetest.Bucket {
			b := new(treetest.Bucket)
			for name, content := range files {
				b.Put(name, content, time.Now())
			}
			return b
		}
		other := new(treetest.Bucket)
		if err := appendTo(t, Log{Files: folderIn(other), Storage: newValues(), Origin: origin}, "1.0.0"); err != nil {
			t.Fatal(err)
		}
		foreign := new(treetest.Bucket)
		if err := appendTo(t, Log{Files: folderIn(foreign), Storage: storage, Origin: "other.example.com/log"}, "1.0.0"); err != nil {
			t.Fatal(err)
		}
		twin := made(now)
		id := strings.Index(now["log/key"], "id ") + 3
		twin.Put("log/key", now["log/key"][:id]+strings.Repeat("0", 32)+"\n", time.Now())
		for _, test := range []struct {
			rule     string
			to, from *treetest.Bucket
			origin   string // that the configuration names
			refuses  string
		}{
			{"an older folder", made(old), made(now), "", ""},
			{"an empty folder", made(nil), made(now), "", ""},
			{"an empty folder of the log that the configuration names", made(nil), made(now), origin, ""},
			{"no log", made(old), made(nil), "", "it is no copy of a log, since it has no file key"},
			{"another log", made(old), other, "", "it is a copy of another log: its key is registry.example.com"},
			{"an empty folder, and a copy of the log of another tree", made(nil), foreign, "", "it is a copy of another log: its key is other.example.com/log"},
			{"another folder with the key", made(old), twin, "", "another folder with the same key"},
			{"another log than the configuration names", made(nil), made(now), "other.example.com/log", "is called registry.example.com/v1/tlog, and the configuration calls it other.example.com/log"},
			{"an empty folder, and another folder has the log", made(nil), twin, "", "lies in another folder"},
		} {
			l := Log{Files: folderIn(test.to), Storage: storage, Origin: origin}
			if test.origin != "" {
				l.Origin, l.Fixed = test.origin, true
			}
			o, err := l.Restore(t.Context(), folderIn(test.from))
			says := ""
			if err == nil {
				var r *tlog.Restoration
				if r, err = tlog.Restore(t.Context(), o, folderIn(test.from)); err == nil {
					says = strings.Join(r.Faults, "\n")
				}
			}
			if err != nil {
				says = err.Error()
			}
			if test.refuses == "" && says != "" || !strings.Contains(says, test.refuses) {
				t.Errorf("%s: it says %q", test.rule, says)
			}
			if says == "" {
				if err := appendTo(t, l, "3.0.0"); err != nil {
					t.Errorf("%s: it goes on with %v", test.rule, err)
				}
				storage.values["terraform_registry/tlog/registry.example.com%2Fv1%2Ftlog/checkpoint"] = []byte(now["log/checkpoint"])
			}
		}
	})
}
