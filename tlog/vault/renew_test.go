package vault

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
)

// lost returns a storage of a log whose folder is lost.
func lost(t *testing.T) (*values, Log) {
	t.Helper()
	storage := newValues()
	l := Log{Files: folderIn(new(treetest.Bucket)), Storage: storage, Origin: origin}
	if err := appendTo(t, l, "1.0.0"); err != nil {
		t.Fatal(err)
	}
	l.Files = folderIn(new(treetest.Bucket))
	return storage, l
}

func TestRenew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, l := lost(t)
		if err := appendTo(t, l, "2.0.0"); !errors.Is(err, tlog.ErrBehind) {
			t.Fatalf("an empty folder says %v", err)
		}
		for _, refused := range []struct {
			rule, origin, says string
			change             func(*Log)
		}{
			{"the name of the old log", origin, "is the name of the old log", func(*Log) {}},
			{"a name that is none", "https://registry.example.com", "has a scheme", func(*Log) {}},
			{"the key of the old log", "", "the configured key is the key of " + origin, func(l *Log) { l.Private = privateKey(t) }},
			{"another storage", "", "has no checkpoint of " + origin, func(l *Log) { l.Storage = newValues() }},
		} {
			other := l
			refused.change(&other)
			if _, err := other.Renew(t.Context(), refused.origin); err == nil || !strings.Contains(err.Error(), refused.says) {
				t.Errorf("%s: it says %v", refused.rule, err)
			}
		}
		r, err := l.Renew(t.Context(), "")
		if err != nil || r.Origin != origin+"-2" || r.Before.Origin != origin || r.Before.Size != 1 {
			t.Fatalf("it is %+v, %v", r, err)
		}
		if again, err := l.Renew(t.Context(), ""); err != nil || again.Public[0] != r.Public[0] { // it was cut off before it said so
			t.Errorf("again it is %+v, %v", again, err)
		}
		if err := appendTo(t, l, "2.0.0"); err != nil { // the server, with the same configuration
			t.Fatal(err)
		}
		log, err := open(t, l)
		if err != nil {
			t.Fatal(err)
		}
		if found, err := log.Succession(t.Context(), log.Head()); err != nil || log.Head().Size != 2 || log.Head().Origin != origin+"-2" {
			t.Errorf("it is %+v, %+v, %v", log.Head().Checkpoint, found, err)
		}
		if _, err := l.Renew(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "the folder has a log: move its files") {
			t.Errorf("a folder with a log says %v", err)
		}
		l.Files = folderIn(new(treetest.Bucket)) // which is lost, too
		if _, err := l.Renew(t.Context(), origin); err == nil || !strings.Contains(err.Error(), origin+" is the name of another log") {
			t.Errorf("the name of the first log says %v", err)
		}
		if r, err = l.Renew(t.Context(), ""); err != nil || r.Origin != origin+"-3" || r.Before.Origin != origin+"-2" || r.Before.Size != 2 {
			t.Errorf("the third is %+v, %v", r, err)
		}
	})
}

// Files that are left of the old log never become a part of the new one.
func TestRenewInAFolderThatIsNotEmpty(t *testing.T) {
	for _, left := range []string{"checkpoint", "begun", "batch/0", "batch/1", "batch/52", "tile/entries/000", "tile/entries/001", "tile/0/000"} {
		t.Run(left, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, l := lost(t)
				folder := new(treetest.Bucket)
				folder.Put("log/"+left, "entries", time.Now())
				l.Files = folderIn(folder)
				if _, err := l.Renew(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "the folder has a log: move its files") {
					t.Errorf("it says %v", err)
				}
				if files := folder.Contents(); len(files) != 1 {
					t.Errorf("the folder has %d files", len(files))
				}
			})
		})
	}
}

// Whatever fails, it can be repeated, and there is one new log with one key. Until it has its
// key, the server begins none.
func TestRenewThatIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("the storage fails")
		for n := 0; ; n++ {
			storage, l := lost(t)
			at, folder := 0, new(treetest.Bucket)
			storage.before = func(string, string) error {
				if at++; at > n {
					return broken
				}
				return nil
			}
			folder.Fail, l.Files = storage.before, folderIn(folder)
			_, err := l.Renew(t.Context(), "")
			storage.before, folder.Fail = nil, nil
			if err == nil {
				if n < 12 {
					t.Errorf("it does %d operations", n)
				}
				return
			}
			if _, err := l.Read(context.Background()); err != nil && !errors.Is(err, tlog.ErrBehind) {
				t.Errorf("after %d operations the server says %v", n, err)
			}
			r, err := l.Renew(t.Context(), "")
			if err != nil || r.Before.Origin != origin || r.Origin != origin+"-2" {
				t.Fatalf("again after %d operations it is %+v, %v", n, r, err)
			}
			if err := appendTo(t, l, "2.0.0"); err != nil {
				t.Errorf("after %d operations it goes on with %v", n, err)
			}
			if keys := slices.DeleteFunc(storage.keys(), func(k string) bool { return k == newKey }); len(keys) != 2 {
				t.Errorf("after %d operations there are the keys %q", n, keys)
			}
		}
	})
}

// A registry that got another name goes on with its log. A folder that is lost afterwards is not
// taken for one in which no log was begun.
func TestALogOfARegistryThatWasRenamed(t *testing.T) {
	const renamed = "terraform.example.com/v1/tlog"
	synctest.Test(t, func(t *testing.T) {
		_, l := newLog(t)
		l.Origin = renamed
		log, err := open(t, l)
		if err != nil || log.Head().Origin != origin {
			t.Fatalf("it goes on with %v, %v", log, err)
		}
		log.Close()
		l.Files = folderIn(new(treetest.Bucket))
		if err := appendTo(t, l, "2.0.0"); !errors.Is(err, tlog.ErrBehind) {
			t.Errorf("an empty folder says %v", err)
		}
		if signed, err := l.IsSigned(t.Context()); !signed || err != nil {
			t.Errorf("the log is signed: %v, %v", signed, err)
		}
		r, err := l.Renew(t.Context(), renamed)
		if err != nil || r.Origin != renamed || r.Before.Origin != origin || r.Before.Size != 1 {
			t.Fatalf("it is %+v, %v", r, err)
		}
		if err := appendTo(t, l, "2.0.0"); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{origin, renamed} { // whatever the registry is called then
			l.Origin, l.Files = name, folderIn(new(treetest.Bucket))
			if err := appendTo(t, l, "3.0.0"); !errors.Is(err, tlog.ErrBehind) {
				t.Errorf("as %s, the next empty folder says %v", name, err)
			}
		}
		if r, err = l.Renew(t.Context(), ""); err != nil || r.Origin != "terraform.example.com/v1/tlog-2" || r.Before.Origin != renamed || r.Before.Size != 2 {
			t.Errorf("the third is %+v, %v", r, err)
		}
	})
}

// A configuration that names a log means that log alone.
func TestALogThatIsNotTheConfiguredOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, l := newLog(t)
		l.Fixed = true
		if err := appendTo(t, l, "2.0.0"); err != nil {
			t.Errorf("by its name, it says %v", err)
		}
		l.Origin = "other.example.com/log"
		_, read := l.Read(t.Context())
		_, opened := l.Open(t.Context())
		_, rotated := l.Rotate(t.Context())
		for does, err := range map[string]error{"read": read, "opened": opened, "rotated": rotated} {
			if err == nil || !strings.Contains(err.Error(), "is called "+origin+", and the configuration calls it other.example.com/log: the name is fixed when a log is begun") {
				t.Errorf("%s by another name, it says %v", does, err)
			}
		}
	})
}

// Until the name is noted, the log is not added to.
func TestANameOfALogThatCannotBeNoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		storage, l := newLog(t)
		l.Origin = "terraform.example.com/v1/tlog"
		for _, does := range []string{"load", "store"} {
			storage.before = func(operation, key string) error {
				if operation == does && key == begunAs {
					return errors.New("the storage fails")
				}
				return nil
			}
			if _, err := l.Open(t.Context()); err == nil || !strings.Contains(err.Error(), "noting the name of the log in Caddy's storage: the storage fails") {
				t.Errorf("%s: it says %v", does, err)
			}
		}
	})
}
