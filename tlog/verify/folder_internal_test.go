package verify

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/dirhash"

	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// The hash of a folder is the one that clients compute.
func TestH1IsDirhash(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"main.tf", "a/b.tf", "a-b.tf", ".hidden/x", "z"} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("main.tf", filepath.Join(dir, "link.tf")); err != nil {
		t.Skip(err)
	}
	c, err := readContent(t.Context(), nil, dir, true)
	if err != nil {
		t.Fatal(err)
	}
	names, err := dirhash.DirFiles(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	want, err := dirhash.HashDir(dir, "", dirhash.Hash1)
	if err != nil {
		t.Fatal(err)
	}
	if len(names) != len(c.Files) || c.h1() != want {
		t.Errorf("%v has the hash %s, want %s of %v", c, c.h1(), want, names)
	}
}

func TestDifferences(t *testing.T) {
	const gone = "the file is missing"
	hash := func(text string) wire.SHA256 { return wire.SHA256Of([]byte(text)) }
	pack := content{
		Files: map[string]wire.SHA256{"main.tf": hash("1"), "d/x.tf": hash("2"), ".hidden": hash("3"), "d/.h/y": hash("4")},
		Links: map[string]string{"link.tf": "main.tf", "dir": "d", "two.tf": "link.tf", "round": "round"},
	}
	for _, test := range []struct {
		rule         string
		files, links map[string]string // further ones
		want         string
	}{
		{"the same", nil, nil, "[]"},
		{"without hidden files", map[string]string{".hidden": gone, "d/.h/y": gone}, nil, "[]"},
		{"another content", map[string]string{"main.tf": "9"}, nil, "[{main.tf changed}]"},
		{"missing", map[string]string{"d/x.tf": gone}, nil, "[{d/x.tf missing}]"},
		{"added", map[string]string{"new.tf": "1"}, nil, "[{new.tf added}]"},
		{"a name with a line feed, which no package has", map[string]string{"x\n1  main.tf": "1"}, nil, "[{x\n1  main.tf added}]"},
		{"a hidden file is added", map[string]string{".new": "1"}, nil, "[{.new added}]"},
		{"a link as it was", nil, map[string]string{"link.tf": "main.tf"}, "[]"},
		{"a link to elsewhere", nil, map[string]string{"link.tf": "/etc/passwd"}, "[{link.tf added}]"},
		{"a link that was followed", map[string]string{"link.tf": "1"}, nil, "[]"},
		{"a link to a link", map[string]string{"two.tf": "1"}, nil, "[]"},
		{"a link to a folder", map[string]string{"dir/x.tf": "2"}, nil, "[]"},
		{"another file below a link to a folder", map[string]string{"dir/new.tf": "2"}, nil, "[{dir/new.tf added}]"},
		{"an empty file for a link", map[string]string{"link.tf": ""}, nil, "[]"},
		{"the target of a link as its content", map[string]string{"link.tf": "main.tf"}, nil, "[]"},
		{"another content for a link", map[string]string{"link.tf": "9"}, nil, "[{link.tf added}]"},
		{"a link without end", map[string]string{"round": "9"}, nil, "[{round added}]"},
		{"a link in the place of a file", map[string]string{"main.tf": gone}, map[string]string{"main.tf": "d/x.tf"}, "[{main.tf changed}]"},
	} {
		c := content{Files: maps.Clone(pack.Files), Links: test.links}
		for name, text := range test.files {
			if c.Files[name] = hash(text); text == gone {
				delete(c.Files, name)
			}
		}
		if got := fmt.Sprint(c.differences(pack)); got != test.want {
			t.Errorf("%s: %s, want %s", test.rule, got, test.want)
		}
	}
}

// The digest of a large file is kept until the file changes.
func TestDigestsAreKept(t *testing.T) {
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "provider")
	write := func(content byte, age time.Duration) {
		t.Helper()
		if err := os.WriteFile(file, append(make([]byte, smallFile), content), 0o644); err != nil {
			t.Fatal(err)
		}
		then := time.Now().Add(-age)
		if err := os.Chtimes(file, then, then); err != nil {
			t.Fatal(err)
		}
	}
	digest := func() (sum wire.SHA256, kept int) {
		t.Helper()
		cache := OpenCache(dir)
		info, err := os.Stat(file)
		if err == nil {
			sum, err = digestOf(t.Context(), cache, file, info)
		}
		if err != nil {
			t.Fatal(err)
		}
		cache.Save()
		return sum, len(OpenCache(dir).kept())
	}
	write(1, 0)
	if _, kept := digest(); kept != 0 {
		t.Error("the digest of a file is kept that may change with the same stamp")
	}
	write(1, time.Hour)
	one, kept := digest()
	again, _ := digest()
	if kept != 1 || again != one {
		t.Errorf("%d digests are kept, and the second time it is %s, not %s", kept, again, one)
	}
	write(2, 2*time.Hour)
	if two, _ := digest(); two == one {
		t.Error("the digest of another content is the same")
	}
}

func (c *Cache) kept() map[string]keptDigest {
	c.load()
	return c.digests
}

func FuzzParsePins(f *testing.F) {
	f.Add([]byte(pinsHeader + "log https://registry.example.com/v1/tlog/\nkey a+1+b\n\na\n1\nb\n\n— a b\n"))
	f.Add([]byte(""))
	f.Fuzz(func(t *testing.T, text []byte) {
		pins, err := parsePins(text)
		if err != nil {
			return
		}
		again, err := parsePins(encodePins(pins))
		if err != nil || len(again) != len(pins) {
			t.Errorf("%q is read again as %v, %v", text, again, err)
		}
	})
}
