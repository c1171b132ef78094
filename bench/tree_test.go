package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTreesHaveTheirShape(t *testing.T) {
	publisher, err := newKey(filepath.Join(t.TempDir(), "key.asc"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		shape     shape
		addresses int
	}{
		"a hundred packages of each provider":     {evenly(300), 3},
		"packages that hundreds do not divide":    {evenly(250), 3},
		"24,000 providers for a million packages": {publicRegistry(1000), 24},
		"packages that providers do not divide":   {publicRegistry(1999), 47},
	} {
		made, err := newTree(t.TempDir(), c.shape, publisher)
		if err != nil {
			t.Fatal(err)
		}
		packages := 0
		addresses := make(map[string]bool)
		for _, p := range made.providers {
			addresses[p.dir(made.root)] = true
		}
		err = filepath.WalkDir(made.root, func(path string, _ fs.DirEntry, err error) error {
			if strings.HasSuffix(path, ".zip") {
				packages++
			}
			return err
		})
		if err != nil || packages != c.shape.packages || len(addresses) != c.addresses {
			t.Errorf("%s: %d packages of %d providers, want %d of %d: %v", name, packages, len(addresses), c.shape.packages, c.addresses, err)
		}
	}
}

// A change that left something behind would make the tree another one for the measurement
// after it.
func TestChangesAreUndone(t *testing.T) {
	publisher, err := newKey(filepath.Join(t.TempDir(), "key.asc"))
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{options: &options{}, dir: t.TempDir(), key: publisher, trees: make(map[shape]*tree), made: make(map[string]bool)}
	made, err := l.treeOf(publicRegistry(smallPublic))
	if err != nil {
		t.Fatal(err)
	}
	before := paths(t, made.root)
	for name, another := range map[string]bool{"a package of a provider": false, "a provider": true} {
		changes, err := l.changes(made, 3, another)
		if err != nil {
			t.Fatal(err)
		}
		if len(changes) != 3 {
			t.Errorf("%s: %d changes, want 3", name, len(changes))
		}
		for _, c := range changes {
			if err := c.moveIn(); err != nil {
				t.Fatal(err)
			}
			if added := len(paths(t, made.root)) - len(before); added < 1 {
				t.Errorf("%s: the tree has %d more files and folders", name, added)
			}
			if err := c.moveOut(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if after := paths(t, made.root); len(after) != len(before) {
		t.Errorf("the tree has %d files and folders, want %d", len(after), len(before))
	}
}

func paths(t *testing.T, root string) (all []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, _ fs.DirEntry, err error) error {
		all = append(all, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
