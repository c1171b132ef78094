package index_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

const aCommit = "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567"

// fetched packs files as a module that was fetched, and returns the package with the
// names in it and its global records.
func fetched(t testing.TB, m archive.FetchedModule, files ...string) (content string, names []string, records map[string]string) {
	t.Helper()
	m.Dir = t.TempDir()
	folders := indextest.OnDisk(t, m.Dir)
	for i := 0; i < len(files); i += 2 {
		folders.Write(files[i], files[i+1])
	}
	var b bytes.Buffer
	if err := m.Pack(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	content = b.String()
	z, err := gzip.NewReader(&b)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return content, names, records
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeXGlobalHeader {
			records = h.PAXRecords
			continue
		}
		names = append(names, h.Name)
	}
}

// Clients of the origin get everything, so clients of the mirror do too.
func TestAFetchedModuleIsPackedWhole(t *testing.T) {
	files := []string{
		"main.tf", "# main", ".terraformignore", "*\n", ".gitmodules", "x", "terraform.tfstate", "{}", ".env", "x", "a~", "x",
		".git/config", "x", "modules/a/.git", "gitdir: ../../.git/modules/a", "modules/a/main.tf", "# a", "run.sh", "#!/bin/sh\n",
		"key.pem", indextest.NewPublisher(t).PrivateKey(),
	}
	first, names, records := fetched(t, archive.FetchedModule{Commit: aCommit, Folder: "modules/a"}, files...)
	want := []string{".env", ".gitmodules", ".terraformignore", "a~", "key.pem", "main.tf", "modules/a/main.tf", "run.sh", "terraform.tfstate"}
	if !slices.Equal(names, want) {
		t.Errorf("it has %q, want %q", names, want)
	}
	if len(records) != 2 || records["comment"] != aCommit || records["TERRAFORM.module"] != "modules/a" {
		t.Errorf("its records are %q", records)
	}
	if again, _, _ := fetched(t, archive.FetchedModule{Commit: aCommit, Folder: "modules/a"}, files...); again != first {
		t.Error("the same files give other bytes")
	}
	if _, _, records := fetched(t, archive.FetchedModule{}, files...); len(records) != 1 || records["TERRAFORM.module"] != "." {
		t.Errorf("at the root and without a commit it has the records %q", records)
	}
}

// A module of which the registry is the publisher leaves out what a folder of the tree does. Its
// .terraformignore is the one in its folder.
func TestAPublishedModuleLeavesOutWhatAFolderDoes(t *testing.T) {
	for _, test := range []struct {
		rule, folder string
		files, want  []string
	}{
		{"at the root", "", []string{
			"main.tf", "", ".terraformignore", "/docs/\n*.bak\n", "docs/x.tf", "", "sub/docs/x.tf", "", "a.bak", "", ".env", "x", "terraform.tfstate", "{}",
			".terraform/x", "", ".git/config", "", ".github/x", "",
		}, []string{".github/x", ".terraformignore", "main.tf", "sub/docs/x.tf"}},
		{"in a folder", "modules/vpc", []string{
			"modules/vpc/main.tf", "", "modules/vpc/.terraformignore", "/docs/\n*.bak\n", "modules/vpc/docs/x.tf", "", "modules/vpc/a.bak", "",
			"modules/subnet/docs/x.tf", "", "modules/subnet/a.bak", "", "modules/subnet/.env", "x", "modules/subnet/.terraform/x", "",
			".terraformignore", "*\n",
		}, []string{".terraformignore", "modules/subnet/a.bak", "modules/subnet/docs/x.tf", "modules/vpc/.terraformignore", "modules/vpc/main.tf"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			_, names, records := fetched(t, archive.FetchedModule{Commit: aCommit, Folder: test.folder, Published: true}, test.files...)
			if !slices.Equal(names, test.want) || records["comment"] != aCommit {
				t.Errorf("it has %q, and the records %q", names, records)
			}
		})
	}
}

func TestSymlinksOfAFetchedModule(t *testing.T) {
	pack := func(t *testing.T, target string) (names []string, err error) {
		dir := t.TempDir()
		indextest.OnDisk(t, dir).Write("main.tf", "# main")
		if err := os.Symlink(target, filepath.Join(dir, "link.tf")); err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := (archive.FetchedModule{Dir: dir}).Pack(t.Context(), &b); err != nil {
			if strings.Contains(err.Error(), dir) {
				t.Errorf("%v names a path", err)
			}
			return nil, err
		}
		z, _ := gzip.NewReader(&b)
		for r := tar.NewReader(z); ; {
			h, err := r.Next()
			if err != nil {
				return names, nil
			}
			if h.Typeflag == tar.TypeXGlobalHeader {
				continue
			}
			if h.Typeflag != tar.TypeReg {
				t.Errorf("%s is of type %c", h.Name, h.Typeflag)
			}
			names = append(names, h.Name)
		}
	}
	t.Run("one inside is followed", func(t *testing.T) {
		if names, err := pack(t, "main.tf"); err != nil || !slices.Equal(names, []string{"link.tf", "main.tf"}) {
			t.Errorf("it has %q, %v", names, err)
		}
	})
	t.Run("one to nothing is left out", func(t *testing.T) {
		if names, err := pack(t, "build/link.tf"); err != nil || !slices.Equal(names, []string{"main.tf"}) {
			t.Errorf("it has %q, %v", names, err)
		}
	})
	for rule, target := range map[string]string{"one that leads out is refused": "../x", "an absolute one is refused": "/etc/passwd"} {
		t.Run(rule, func(t *testing.T) {
			_, err := pack(t, target)
			var bad *archive.PackageError
			if !errors.As(err, &bad) || bad.Reason != tree.Unreadable || !strings.Contains(err.Error(), "link.tf") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A few bytes in a repository must not become a package that fills the disk.
func TestSymlinksToALargeFile(t *testing.T) {
	dir := t.TempDir()
	indextest.OnDisk(t, dir).Write("main.tf", "# main").Write("large", "")
	if err := os.Truncate(filepath.Join(dir, "large"), 1<<30); err != nil { // a sparse file
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b", "c", "d"} {
		if err := os.Symlink("large", filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	var b bytes.Buffer
	err := (archive.FetchedModule{Dir: dir}).Pack(t.Context(), &b)
	var bad *archive.PackageError
	if !errors.As(err, &bad) || bad.Reason != tree.TooLarge || b.Len() > 0 {
		t.Errorf("got %v after %d bytes", err, b.Len())
	}
}

func TestFetchedModulesThatAreNotPacked(t *testing.T) {
	dir := t.TempDir()
	indextest.OnDisk(t, dir).Write("main.tf", "")
	if err := (archive.FetchedModule{Dir: filepath.Join(dir, "none")}).Pack(t.Context(), io.Discard); !errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), dir) {
		t.Errorf("without a folder the error is %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (archive.FetchedModule{Dir: dir}).Pack(ctx, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("when it is given up the error is %v", err)
	}
	r, w := io.Pipe()
	r.CloseWithError(tree.ErrDiskFull)
	if err := (archive.FetchedModule{Dir: dir}).Pack(t.Context(), w); !errors.Is(err, tree.ErrDiskFull) {
		t.Errorf("when it cannot be written the error is %v", err)
	}
}

// The known folder of a fetched module reaches clients and pages.
func TestTheFolderOfAFetchedModule(t *testing.T) {
	mirrored := address.Address{Hostname: "registry.example.com", Namespace: "acme", Name: "vpc", System: "aws"}
	const dir = "modules/registry.example.com/acme/vpc/aws/"
	const version = "variable \"a\" {}\n"
	for _, test := range []struct {
		rule, folder string
		files        []string
		inputs       int
		says         string // of the problem; empty: it is offered
	}{
		{"at the root", "", []string{"main.tf", version}, 1, ""},
		{"at the root, of one folder, as at its origin", "", []string{"a/main.tf", version}, 0, ""},
		{"at the root, of submodules alone", "", []string{"modules/a/main.tf", version}, 0, ""},
		{"not without configuration", "", []string{"README.md", "x", "a/README.md", "x"}, 0, "there is no .tf file"},
		{"in a folder", "a", []string{"a/main.tf", version, "b/main.tf", "", "README.md", "x"}, 1, ""},
		{"in a folder of folders", "modules/a", []string{"modules/a/main.tf", version, "modules/b/main.tf", "", "main.tf", ""}, 1, ""},
		{"in a hidden folder", ".github/a", []string{".github/a/main.tf", version}, 1, ""},
		{"in a folder with submodules alone", "a", []string{"a/modules/b/main.tf", version, "main.tf", ""}, 0, ""},
		{"not where there is nothing", "modules/c", []string{"modules/a/main.tf", version}, 0, `in "modules/c", where there is no .tf file`},
		{"not where there is no configuration", "docs", []string{"main.tf", version, "docs/README.md", ""}, 0, `in "docs", where there is no .tf file`},
		{"not in a folder with another's name at its beginning", "a", []string{"ab/main.tf", version}, 0, `in "a", where there is no .tf file`},
		{"not outside", "../a", []string{"main.tf", version}, 0, `cannot find by a URL`},
		{"not at an absolute path", "/a", []string{"a/main.tf", version}, 0, `cannot find by a URL`},
		{"not at a path with a slash at its end", "a/", []string{"a/main.tf", version}, 0, `cannot find by a URL`},
		{"not in a folder that a URL escapes", "a b", []string{"a b/main.tf", version}, 0, `cannot find by a URL`},
		{"not in a folder whose name is a pattern", "a*", []string{"ab/main.tf", version}, 0, `cannot find by a URL`},
		{"not in the root by another name", "./", []string{"main.tf", version}, 0, `cannot find by a URL`},
	} {
		t.Run(test.rule, func(t *testing.T) {
			content, _, _ := fetched(t, archive.FetchedModule{Folder: test.folder, Commit: aCommit}, test.files...)
			files := indextest.New(t).Write(dir+"1.0.0.tar.gz", content)
			s := scan(t, files)
			m := s.Module(index.PlaceOf(mirrored))
			if test.says != "" {
				if m != nil || len(s.Report().Withheld) != 1 || s.Report().Withheld[0].Reason != tree.NoConfiguration || !strings.Contains(s.Report().Withheld[0].Detail, test.says) {
					t.Fatalf("it is offered as %+v, withheld: %+v", m, s.Report().Withheld)
				}
				return
			}
			nothingWithheld(t, s)
			v := m.Version("1.0.0")
			if v.Folder != test.folder {
				t.Errorf("the module is in %q", v.Folder)
			}
			p, err := s.Describe(t.Context(), v)
			if err != nil || len(p.Root.Variables) != test.inputs || len(v.Summary().Inputs) != test.inputs {
				t.Errorf("it is described as %+v, %v, in short as %+v", p, err, v.Summary())
			}
			if _, err := s.ReadModuleFile(t.Context(), v, "main.tf"); test.inputs > 0 && err != nil {
				t.Errorf("its main.tf: %v", err)
			}
		})
	}
}

// The record of a fetch belongs to the package that was fetched, not to another one of the same number.
func TestTagsAreOfTheirPackage(t *testing.T) {
	const dir = "modules/acme/vpc/aws/"
	content, other := indextest.TarGz("main.tf", ""), indextest.TarGz("main.tf", "# other")
	record := func(commit string) string {
		return fmt.Sprintf(`{"tag":"v1.0.0","commit":%q,"package_sha256":"%x"}`, commit, sha256.Sum256([]byte(content)))
	}
	for _, test := range []struct {
		rule, record, content, block string
		is                           bool
	}{
		{"its own", record(aCommit), content, "git", true},
		{"another package", record(aCommit), other, "git", false},
		{"no commit", record("v1.0.0 x"), content, "git", false},
		{"a damaged record", "{", content, "git", false},
		{"a module without a repository", record(aCommit), content, "other", false},
	} {
		files := indextest.New(t).Write(dir+"1.0.0.tar.gz", test.content).Write(dir+".1.0.0.source.json", test.record)
		files.Write(dir+"registry.hcl", test.block+" {\n  url = \"https://github.com/acme/vpc\"\n}\n")
		v := scan(t, files).Module(index.PlaceOf(ownVPC)).Version("1.0.0")
		if (v.Tag != nil) != test.is {
			t.Errorf("%s: got %+v", test.rule, v.Tag)
		}
	}
}
