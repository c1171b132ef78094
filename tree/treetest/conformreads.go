package treetest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

func conformReading(t *testing.T, open func(t *testing.T) Storage) {
	s := open(t).put(map[string]string{
		"providers/" + demoFile: "123456", "providers/" + demoFolder + "/1.0.0/docs/a.md": "# A", "providers/" + demoFolder + "/.hidden": "x", "keys/acme.asc": "x",
	})
	p := s.Tree.Providers
	for _, row := range []struct {
		rule, name string
		limit      int64
		content    string
		err        error
	}{
		{"a file is read whole", demoFile, 6, "123456", nil},
		{"a file larger than the limit is not cut off", demoFile, 5, "", tree.ErrDocumentTooLarge},
		{"a file that does not exist is none", demoFolder + "/1.0.0/y", 6, "", nil},
		{"a file in a folder that does not exist is none", "other/demo/x", 6, "", nil},
		{"a folder is no file", demoFolder, 6, "", tree.ErrNotWritable},
	} {
		content, err := p.ReadFile(row.name, row.limit)
		if string(content) != row.content || !errors.Is(err, row.err) || (content == nil) != (row.content == "") {
			t.Errorf("%s: got %q, %v", row.rule, content, err)
		}
		if _, err := p.Digest(row.name); (err == nil) != (row.name == demoFile) {
			t.Errorf("%s: the digest is, %v", row.rule, err)
		}
		exists, err := p.Exists(row.name)
		if err != nil || exists != (row.content != "" || row.err != nil) {
			t.Errorf("%s: it exists %t (%v)", row.rule, exists, err)
		}
	}
	if _, _, err := p.Open("other"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("opening a file that does not exist: %v", err)
	}
	for dir, want := range map[string]string{
		".": "acme/", demoFolder: ".hidden 1.0.0/", demoFolder + "/1.0.0": "docs/ x", "other": "",
	} {
		if got, err := namesIn(p, dir); got != want || err != nil {
			t.Errorf("in %s there are %q (%v)", dir, got, err)
		}
	}
	var walked []string
	err := p.Walk(t.Context(), demoFolder, func(name string, info fs.FileInfo) {
		walked = append(walked, fmt.Sprint(name, " ", info.Size()))
	})
	if want := []string{"acme/demo/.hidden 1", "acme/demo/1.0.0/docs/a.md 3", "acme/demo/1.0.0/x 6"}; err != nil || !slices.Equal(walked, want) {
		t.Errorf("a walk visits %q (%v)", walked, err)
	}
	if err := p.Walk(t.Context(), "other", func(name string, _ fs.FileInfo) { t.Errorf("a walk visits %s", name) }); err != nil {
		t.Error(err)
	}
	if !p.Same() {
		t.Error("it is another directory than the one that was opened")
	}
	s.Put("providers/acme/demo/registry.hcl", "one", time.Hour)
	if err := s.Tree.Folder(demoAddress).WriteMetadata([]byte("two"), []byte("three")); !errors.Is(err, tree.ErrMetadataChanged) {
		t.Errorf("a file is replaced that is not the one that was read: %v", err)
	}
	if content := s.Contents()["providers/acme/demo/registry.hcl"]; content != "one" {
		t.Errorf("it is %q", content)
	}
	info, err := p.Stat(demoFile)
	if err != nil {
		t.Fatal(err)
	}
	stamp := tree.StampOf(info)
	f, err := p.OpenUnchanged(demoFile, stamp)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	s.Put("providers/"+demoFile, "another", time.Minute)
	for _, name := range []string{demoFile, demoFolder + "/1.0.0/y"} {
		if _, err := p.OpenUnchanged(name, stamp); !errors.Is(err, tree.ErrChanged) {
			t.Errorf("opening %s, which is another file now: %v", name, err)
		}
	}
}

// namesIn returns the names in a folder, with a slash after folders.
func namesIn(p tree.Part, dir string) (string, error) {
	entries, err := p.Entries(dir)
	var names []string
	for _, e := range entries {
		name := e.Name
		if e.IsDir() {
			name += "/"
		}
		names = append(names, name)
	}
	return strings.Join(names, " "), err
}

func conformFailedReads(t *testing.T, open func(t *testing.T) Storage) {
	for _, row := range []struct {
		rule string
		want string
		read func(tree.Tree) (string, error)
	}{
		{"the content of a file", "content", func(f tree.Tree) (string, error) {
			content, err := f.Providers.ReadFile(demoFile, 100)
			return string(content), err
		}},
		{"whether a file exists", "true", func(f tree.Tree) (string, error) {
			exists, err := f.Providers.Exists(demoFile)
			return fmt.Sprint(exists), err
		}},
		{"the names in a folder", "x", func(f tree.Tree) (string, error) { return namesIn(f.Providers, path.Dir(demoFile)) }},
		{"the files below a folder", demoFile, func(f tree.Tree) (names string, err error) {
			err = f.Providers.Walk(context.Background(), demoFolder, func(name string, _ fs.FileInfo) { names += name })
			return names, err
		}},
		{"the names of the files below a folder", demoFile, func(f tree.Tree) (names string, err error) {
			err = f.Providers.WalkNames("acme", 2, func(name string, info fs.FileInfo) {
				if path.Base(name) != tree.MetadataName {
					names += name
				}
			})
			return names, err
		}},
		{"an open file", "7", func(f tree.Tree) (string, error) {
			file, info, err := f.Providers.Open(demoFile)
			if err != nil {
				return "", err
			}
			defer file.Close()
			return fmt.Sprint(info.Size()), nil
		}},
		{"a digest", "ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73", func(f tree.Tree) (string, error) {
			sum, err := f.Providers.Digest(demoFile)
			return sum.String(), err
		}},
		{"the folder of an address", demoFolder, func(f tree.Tree) (string, error) {
			_, dir, err := f.Folder(demoAddress).Locate()
			return dir, err
		}},
		{"a registry.hcl", "x", func(f tree.Tree) (string, error) {
			content, err := f.Folder(address.Address{Namespace: "acme", Name: "other"}).ReadMetadata()
			return string(content), err
		}},
	} {
		t.Run(row.rule, func(t *testing.T) {
			eachFault(t, open, func(s Storage, n int, fault error) (asked int) {
				s.put(map[string]string{"providers/" + demoFile: "content", "providers/acme/other/registry.hcl": "x"})
				s.Fail(func(now int) error {
					asked = now
					if now == n {
						return fault
					}
					return nil
				})
				got, err := row.read(s.Tree)
				s.Fail(nil)
				switch {
				case err == nil && got != row.want:
					t.Errorf("operation %d fails with %v: it is %q", n, fault, got)
				case errors.Is(err, fs.ErrNotExist), asked < n && err != nil:
					t.Errorf("operation %d fails with %v: %v", n, fault, err)
				}
				return asked
			})
		})
	}
}
