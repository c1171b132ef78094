package treetest

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

func conformLinks(t *testing.T, open func(t *testing.T) Storage) {
	s := open(t)
	if s.Link == nil {
		t.Skip("it has neither")
	}
	s.put(map[string]string{"pool/x": "content"})
	for _, row := range []struct{ rule, target, content string }{
		{"to a file in the root", "../../pool/x", "content"},
		{"to a folder in the root", "../../pool", ""},
		{"out of the root", "../../../outside", ""},
		{"to nothing", "nothing", ""},
		{"to itself", "to itself", ""},
	} {
		s.Link(row.target, "providers/links/"+row.rule)
	}
	conformWalks(t, s)
	entries, err := s.Tree.Providers.Entries("links")
	if err != nil || len(entries) != 5 {
		t.Fatal(entries, err)
	}
	for _, e := range entries {
		leads := strings.Contains(e.Name, "in the root")
		if leads != (e.Err() == nil) || !leads && !errors.Is(e.Err(), tree.ErrNotWritable) || leads && e.IsDir() != strings.Contains(e.Name, "folder") {
			t.Errorf("a symlink %s: %+v, %v", e.Name, e, e.Err())
		}
		content, err := s.Tree.Providers.ReadFile(e.Path(), 100)
		if isFile := leads && !e.IsDir(); isFile != (string(content) == "content") || !isFile && !errors.Is(err, tree.ErrNotWritable) {
			t.Errorf("a symlink %s: it has %q (%v)", e.Name, content, err)
		}
		if exists, err := s.Tree.Providers.Exists(e.Path()); leads != exists || leads != (err == nil) {
			t.Errorf("a symlink %s: it exists %t (%v)", e.Name, exists, err)
		}
	}
	conformFolders(t, s)
	conformFlapping(t, s)
	if s.Pipe == nil {
		return
	}
	s.Pipe("providers/pipes/pipe")
	p := s.Tree.Providers
	if content, err := p.ReadFile("pipes/pipe", 100); content != nil || !errors.Is(err, tree.ErrNotWritable) {
		t.Errorf("a pipe has %q (%v)", content, err)
	}
	if _, err := p.Digest("pipes/pipe"); !errors.Is(err, tree.ErrNotWritable) {
		t.Errorf("a pipe has a digest (%v)", err)
	}
	if _, err := p.Entries("pipes/pipe"); !errors.Is(err, tree.ErrNotWritable) {
		t.Errorf("a pipe is a folder (%v)", err)
	}
	if err := p.CreateFile(t.Context(), "pipes/pipe", []byte("x")); !errors.Is(err, tree.ErrChanged) {
		t.Errorf("a file in place of a pipe: %v", err)
	}
	if entries, err := p.Entries("pipes"); err != nil || len(entries) != 1 || entries[0].IsFile() || entries[0].IsDir() {
		t.Errorf("a folder with a pipe has %+v (%v)", entries, err)
	}
}

// conformWalks checks that a walk does not follow the symlinks in its folder, so that it ends
// and meets each file once.
func conformWalks(t *testing.T, s Storage) {
	s.Put("providers/walked/1/x", "content", time.Hour)
	s.Link("x", "providers/walked/1/y")
	s.Link("..", "providers/walked/1/z")
	s.Link("walked", "providers/walked again")
	for _, dir := range []string{"walked", "walked again"} {
		var walked []string
		err := s.Tree.Providers.Walk(t.Context(), dir, func(name string, info fs.FileInfo) {
			walked = append(walked, fmt.Sprint(name, " ", info.Mode().IsRegular()))
		})
		if want := []string{dir + "/1/x true", dir + "/1/y false", dir + "/1/z false"}; err != nil || !slices.Equal(walked, want) {
			t.Errorf("a walk visits %q (%v)", walked, err)
		}
	}
	if err := s.Tree.Providers.Walk(t.Context(), "walked/1/x", func(name string, _ fs.FileInfo) { t.Errorf("a walk of a file visits %s", name) }); err != nil {
		t.Error(err)
	}
	if err := s.Tree.Providers.Walk(t.Context(), "links/to nothing", func(string, fs.FileInfo) {}); !errors.Is(err, tree.ErrNotWritable) {
		t.Errorf("a walk of a symlink to nothing: %v", err)
	}
}

// conformFlapping checks that what a symlink leads to never counts as absent, whatever fails
// for a moment while it is looked at.
func conformFlapping(t *testing.T, s Storage) {
	p := s.Tree.Providers
	for _, row := range []struct {
		rule  string
		knows func() bool // that there is a symlink, or an error
		first int         // operation that looks at a symlink
	}{
		{"whether it exists", func() bool {
			exists, err := p.Exists("links/to nothing")
			return exists || err != nil
		}, 1},
		{"the content", func() bool {
			content, err := p.ReadFile("links/to nothing", 100)
			return content != nil || err != nil
		}, 1},
		{"the content behind one to a file", func() bool {
			content, err := p.ReadFile("links/to a file in the root", 100)
			return content != nil || err != nil
		}, 1},
		{"the files of a folder", func() bool {
			entries, err := p.List("links/to a folder in the root")
			return len(entries) == 1 || err != nil
		}, 1},
		{"the files of a folder that has gone", func() bool {
			entries, err := p.List("links/to nothing")
			return entries != nil || err != nil
		}, 1},
		{"the entries of its folder", func() bool {
			entries, err := p.Entries("links")
			return len(entries) == 5 || err != nil
		}, 4},
	} {
		asked := 0
		s.Fail(func(n int) error { asked = n; return nil })
		row.knows()
		s.Fail(nil)
		for n := 1; n <= asked; n++ {
			for _, fault := range append([]error{fs.ErrNotExist}, s.Faults...) {
				if fault == fs.ErrNotExist && n < row.first {
					continue
				}
				s.Fail(func(now int) error {
					if now == n {
						return fault
					}
					return nil
				})
				known := row.knows()
				s.Fail(nil)
				if !known {
					t.Errorf("%s: operation %d fails with %v, and it is absent", row.rule, n, fault)
				}
			}
		}
	}
}

// conformFolders checks what is said about a folder that cannot be made.
func conformFolders(t *testing.T, s Storage) {
	p := s.Tree.Providers
	s.Put("providers/folders/a", "content", time.Hour)
	s.Link("nothing", "providers/folders/link")
	s.Link("a", "providers/folders/linked")
	for _, row := range []struct{ rule, dir, says string }{
		{"a file in its place", "folders/a", "where a folder should be"},
		{"a symlink to a file in its place", "folders/linked", "where a folder should be"},
		{"a symlink to nothing in its place", "folders/link", "leads to nothing"},
	} {
		for way, change := range map[string]func(name string) error{
			"writing":  func(name string) error { return p.WriteFile(name, []byte("x")) },
			"moving":   func(name string) error { return p.Move("folders/a", name) },
			"creating": func(name string) error { return p.CreateFile(t.Context(), name, []byte("x")) },
		} {
			if err := change(row.dir + "/x"); !errors.Is(err, tree.ErrNotWritable) || !strings.Contains(err.Error(), row.says) {
				t.Errorf("%s below %s: %v", way, row.rule, err)
			}
		}
	}
}
