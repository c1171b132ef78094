package vault

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
)

const origin = "registry.example.com/v1/tlog"

// A values is a storage in memory. before is called before each operation; its error is the
// operation's.
type values struct {
	before func(does, key string) error

	mu     sync.Mutex
	values map[string][]byte
}

func newValues() *values { return &values{values: make(map[string][]byte)} }

func (v *values) does(does, key string) error {
	if v.before == nil {
		return nil
	}
	return v.before(does, key[strings.LastIndex(key, "/")+1:])
}

func (v *values) Load(_ context.Context, key string) ([]byte, error) {
	if err := v.does("load", key); err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	value, ok := v.values[key]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return value, nil
}

func (v *values) Store(_ context.Context, key string, value []byte) error {
	if err := v.does("store", key); err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.values[key] = slices.Clone(value)
	return nil
}

func (v *values) Delete(_ context.Context, key string) error {
	if err := v.does("delete", key); err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.values, key)
	return nil
}

// keys returns the names of private keys.
func (v *values) keys() (keys []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(v.values)) {
		if name = name[strings.LastIndex(name, "/")+1:]; strings.HasPrefix(name, "key-") {
			keys = append(keys, name)
		}
	}
	return keys
}

func folderIn(b *treetest.Bucket) tlog.Store {
	return tlog.NewFolder(func() (tree.Part, error) {
		t, err := source.Directories{Root: "log"}.OpenIn(b)
		return t.Root, err
	})
}

func open(t *testing.T, l Log) (*tlog.Log, error) {
	t.Helper()
	o, err := l.Open(t.Context())
	if err != nil {
		return nil, err
	}
	log, err := new(tlog.Opening).Open(t.Context(), o)
	if err == nil {
		t.Cleanup(log.Close)
	}
	return log, err
}

func appendTo(t *testing.T, l Log, version string) error {
	t.Helper()
	log, err := open(t, l)
	if err != nil {
		return err
	}
	defer log.Close()
	return add(t, log, version)
}

func add(t *testing.T, log *tlog.Log, version string) error {
	t.Helper()
	a, err := address.Parse("acme/vpc/aws")
	if err != nil {
		t.Fatal(err)
	}
	return log.Append(t.Context(), tlog.Leaf{Event: tlog.Offered, Address: a, Version: version, Hashes: []string{
		"h1:" + strings.Repeat("A", 43) + "=", "zh:" + strings.Repeat("0", 64),
	}})
}

func privateKey(t *testing.T) string {
	t.Helper()
	private, err := tlog.GenerateKey(origin)
	if err != nil {
		t.Fatal(err)
	}
	return private
}

// Two instances have the same key, the same storage and each its own folder, as by default.
// One of them begins the log, and the other one signs nothing.
func TestALogLiesInOneFolder(t *testing.T) {
	private := privateKey(t)
	instances := func() (*values, Log, Log) {
		storage := newValues()
		one := Log{Files: folderIn(new(treetest.Bucket)), Storage: storage, Origin: origin, Private: private}
		two := one
		two.Files = folderIn(new(treetest.Bucket))
		return storage, one, two
	}
	t.Run("one after the other", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, one, two := instances()
			if _, err := open(t, one); err != nil {
				t.Fatal(err)
			}
			if err := appendTo(t, two, "1.0.0"); !errors.Is(err, tlog.ErrBehind) {
				t.Errorf("the second folder says %v", err)
			}
			if err := appendTo(t, one, "1.0.0"); err != nil {
				t.Error(err)
			}
		})
	})
	for _, at := range []string{"load folder", "store folder", "load checkpoint"} {
		t.Run("both at the same time, before "+at, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				storage, one, two := instances()
				second := make(chan error, 1)
				storage.before = func(does, key string) error {
					if does+" "+key == at {
						storage.before = nil
						go func() { second <- appendTo(t, two, "2.0.0") }()
						synctest.Wait()
					}
					return nil
				}
				first := appendTo(t, one, "1.0.0")
				if other := <-second; (first == nil) == (other == nil) {
					t.Errorf("the first folder says %v, the second one %v", first, other)
				}
			})
		})
	}
	t.Run("the storage has forgotten the folder", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			storage, one, _ := instances()
			if err := appendTo(t, one, "1.0.0"); err != nil {
				t.Fatal(err)
			}
			if err := storage.Delete(t.Context(), one.name("folder")); err != nil {
				t.Fatal(err)
			}
			if err := appendTo(t, one, "1.1.0"); err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("whoever reads claims nothing", func(t *testing.T) {
		storage, one, _ := instances()
		if err := one.begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		o, err := one.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := o.Anchor.Load(t.Context()); !errors.Is(err, fs.ErrNotExist) || len(storage.values) > 0 {
			t.Errorf("it says %v, and the storage has %v", err, storage.values)
		}
	})
	t.Run("a storage that fails is no storage without a folder", func(t *testing.T) {
		storage, one, _ := instances()
		if _, err := open(t, one); err != nil {
			t.Fatal(err)
		}
		storage.before = func(_, key string) error {
			if key == "folder" {
				return errors.New("it fails")
			}
			return nil
		}
		if err := appendTo(t, one, "1.0.0"); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("it says %v", err)
		}
	})
}

// A folder that cannot be written to is tried again each minute.
func TestPrivateKeysDoNotPileUp(t *testing.T) {
	storage, bucket := newValues(), new(treetest.Bucket)
	l := Log{Files: folderIn(bucket), Storage: storage, Origin: origin}
	bucket.Fail = func(operation, _ string) error {
		if operation == "put" {
			return fs.ErrPermission
		}
		return nil
	}
	for range 10 {
		if _, err := l.Open(t.Context()); err == nil || errors.Is(err, tlog.ErrBehind) {
			t.Fatalf("it says %v", err)
		}
	}
	if keys := storage.keys(); len(keys) != 2 { // by its own name, and for the next attempt
		t.Errorf("Caddy's storage has the keys %q", keys)
	}
	bucket.Fail = nil
	if _, err := l.Open(t.Context()); err != nil {
		t.Error(err)
	}
	if keys := storage.keys(); len(keys) != 1 {
		t.Errorf("in the end it has the keys %q", keys)
	}
}

// The key that counts stays, also where instances that begin the log have found the same one.
func TestInstancesThatBeginALogWithOneGeneratedKey(t *testing.T) {
	for _, same := range []bool{false, true} {
		storage, bucket := newValues(), new(treetest.Bucket)
		l := Log{Files: folderIn(bucket), Storage: storage, Origin: origin}
		begun := false
		storage.before = func(does, key string) error {
			if begun || does != "store" || (key == newKey) == same {
				return nil
			}
			begun = true
			if _, err := l.Open(t.Context()); err != nil {
				t.Errorf("the other instance says %v", err)
			}
			return nil
		}
		if _, err := l.Open(t.Context()); err != nil {
			t.Errorf("the slower instance says %v", err)
		}
		if _, err := l.Open(t.Context()); err != nil || len(storage.keys()) != 1 {
			t.Errorf("afterwards: %v, with the keys %q", err, storage.keys())
		}
	}
}

// A folder that lacks its key, as after an incomplete restore, is no folder without a log.
func TestAFolderWithoutItsKey(t *testing.T) {
	for _, test := range []struct {
		rule   string
		remain func(name string) bool // of the folder's files
	}{
		{"entries are there", func(name string) bool { return name != "log/key" }},
		{"the folder is empty, and Caddy's storage has a checkpoint", func(string) bool { return false }},
	} {
		t.Run(test.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				bucket := new(treetest.Bucket)
				l := Log{Files: folderIn(bucket), Storage: newValues(), Origin: origin, Private: privateKey(t)}
				if _, err := l.Read(t.Context()); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("before the log is begun, reading says %v", err)
				}
				if err := appendTo(t, l, "1.0.0"); err != nil {
					t.Fatal(err)
				}
				restored := new(treetest.Bucket)
				for name, content := range bucket.Contents() {
					if test.remain(name) {
						restored.Put(name, content, time.Now())
					}
				}
				l.Files = folderIn(restored)
				if _, err := l.Read(t.Context()); !errors.Is(err, tlog.ErrBehind) || errors.Is(err, fs.ErrNotExist) {
					t.Errorf("reading says %v", err)
				}
				if _, err := l.Open(t.Context()); !errors.Is(err, tlog.ErrBehind) {
					t.Errorf("opening says %v", err)
				}
			})
		})
	}
}

// A careless store creates files that exist.
type careless struct{ tlog.Store }

func (c careless) Create(ctx context.Context, name string, content []byte) error {
	return c.Replace(ctx, name, content)
}

// On a file system or in a store that creates a file twice, two instances would make two logs.
func TestAStoreThatCreatesAFileTwice(t *testing.T) {
	storage, files := newValues(), folderIn(new(treetest.Bucket))
	for range 2 { // also a log that was begun before
		if _, err := (Log{Files: careless{files}, Storage: storage, Origin: origin}).Open(t.Context()); !errors.Is(err, tlog.ErrCreates) {
			t.Errorf("it says %v", err)
		}
	}
	before, err := tlog.ReadStoredKey(t.Context(), files)
	if err != nil {
		t.Fatal(err)
	}
	o, err := Log{Files: files, Storage: storage, Origin: origin}.Open(t.Context())
	if err != nil || o.Public[0].Line != before.Public {
		t.Errorf("a store that refuses that has the key %v, %v, want %q", o.Public, err, before.Public)
	}
}
