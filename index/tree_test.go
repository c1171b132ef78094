//go:build unix

package index_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
)

// A disk is a directory with a root in it and something beside the root.
type disk struct {
	*indextest.Tree
	t   *testing.T
	dir string
}

func newDisk(t *testing.T) disk {
	dir := t.TempDir()
	d := disk{indextest.OnDisk(t, filepath.Join(dir, "root")), t, dir}
	indextest.OnDisk(t, dir).ProviderIn("outside", "demo", "1.0.0", "linux_amd64")
	d.Provider("acme/healthy", "1.0.0", "linux_amd64")
	return d
}

// link makes a symlink in the root to that target.
func (d disk) link(name, to string) {
	d.t.Helper()
	name = filepath.Join(d.dir, "root", name)
	os.MkdirAll(filepath.Dir(name), 0o755)
	if err := os.Symlink(to, name); err != nil {
		d.t.Fatal(err)
	}
}

func (d disk) pipe(name string) {
	d.t.Helper()
	name = filepath.Join(d.dir, "root", name)
	os.MkdirAll(filepath.Dir(name), 0o755)
	if err := syscall.Mkfifo(name, 0o644); err != nil {
		d.t.Fatal(err)
	}
}

// A symlink is followed within the root and refused when it leaves the root. Files of the
// wrong kind are not opened.
func TestSymlinksAndSpecialFiles(t *testing.T) {
	const at = "providers/acme/demo/" + zipName
	for _, test := range []struct {
		rule   string
		build  func(d disk)
		path   string      // of the problem
		reason tree.Reason // empty: the provider is offered
		says   string
	}{
		{"a symlink to a file in the root is the file", func(d disk) {
			d.ProviderIn("pool", "demo", "1.0.0", "linux_amd64")
			d.link(at, "../../../pool/"+zipName)
		}, "", "", ""},
		{"a symlink to a folder in the root is the folder", func(d disk) {
			d.ProviderIn("pool/demo", "demo", "1.0.0", "linux_amd64")
			d.link("providers/acme/demo", "../../pool/demo")
		}, "", "", ""},
		{"a part may be a symlink", func(d disk) {
			d.Remove("providers").ProviderIn("pool/acme/demo", "demo", "1.0.0", "linux_amd64")
			d.ProviderIn("pool/acme/healthy", "healthy", "1.0.0", "linux_amd64")
			d.link("providers", "pool")
		}, "", "", ""},
		{"a symlink out of the root", func(d disk) { d.link(at, "../../../../outside/"+zipName) }, at, tree.Unreadable, "leaves the root"},
		{"a symlink to a folder out of the root", func(d disk) { d.link("providers/acme/demo", "../../../outside") }, "providers/acme/demo", tree.Unreadable, "leaves the root"},
		{"an absolute symlink to a file in the root is the file", func(d disk) {
			d.ProviderIn("pool", "demo", "1.0.0", "linux_amd64")
			d.link(at, filepath.Join(d.dir, "root/pool", zipName))
		}, "", "", ""},
		{"an absolute symlink to a folder in the root is the folder", func(d disk) {
			d.ProviderIn("pool/demo", "demo", "1.0.0", "linux_amd64")
			d.link("providers/acme/demo", filepath.Join(d.dir, "root/pool/demo"))
		}, "", "", ""},
		{"a part may be an absolute symlink", func(d disk) {
			d.Remove("providers").ProviderIn("pool/acme/demo", "demo", "1.0.0", "linux_amd64")
			d.ProviderIn("pool/acme/healthy", "healthy", "1.0.0", "linux_amd64")
			d.link("providers", filepath.Join(d.dir, "root/pool"))
		}, "", "", ""},
		{"symlinks of both kinds may lead to one another", func(d disk) {
			d.ProviderIn("pool/demo", "demo", "1.0.0", "linux_amd64")
			d.link("providers/acme/demo", filepath.Join(d.dir, "root/links/folder"))
			d.link("links/folder", "../pool/../links/again")
			d.link("links/again", filepath.Join(d.dir, "root/links/../pool/demo/"))
		}, "", "", ""},
		{"an absolute symlink out of the root", func(d disk) { d.link(at, filepath.Join(d.dir, "outside", zipName)) }, at, tree.Unreadable, "leaves the root"},
		{"an absolute symlink to a folder whose name begins as the root's", func(d disk) {
			d.link("providers/acme/demo", filepath.Join(d.dir, "root2"))
		}, "providers/acme/demo", tree.Unreadable, "leaves the root"},
		{"an absolute symlink that leaves the root by dots", func(d disk) {
			d.link("providers/acme/demo", filepath.Join(d.dir, "root")+"/pool/../../outside")
		}, "providers/acme/demo", tree.Unreadable, "leaves the root"},
		{"an absolute symlink to one that leaves the root", func(d disk) {
			d.link(at, filepath.Join(d.dir, "root/providers/acme/demo/out"))
			d.link("providers/acme/demo/out", "../../../../outside/"+zipName)
		}, at, tree.Unreadable, "leaves the root"},
		{"an absolute symlink to nothing", func(d disk) { d.link(at, filepath.Join(d.dir, "root/nothing")) }, at, tree.Unreadable, "a symlink to nothing"},
		{"an absolute symlink to itself", func(d disk) { d.link(at, filepath.Join(d.dir, "root", at)) }, at, tree.Unreadable, "too many levels of symbolic links"},
		{"a symlink to nothing", func(d disk) { d.link(at, "nothing") }, at, tree.Unreadable, "a symlink to nothing"},
		{"a symlink to itself", func(d disk) { d.link(at, zipName) }, at, tree.Unreadable, "too many levels of symbolic links"},
		{"a symlink to the folder it is in", func(d disk) { d.link("providers/loop", ".") }, "", tree.Unreadable, ""},
		{"a named pipe", func(d disk) { d.pipe(at) }, at, tree.Unreadable, "not a regular file"},
		{"a named pipe as SHA256SUMS", func(d disk) {
			d.Provider("acme/demo", "1.0.0", "linux_amd64")
			d.pipe("providers/acme/demo/terraform-provider-demo_1.0.0_SHA256SUMS")
		}, "providers/acme/demo/terraform-provider-demo_1.0.0_SHA256SUMS", tree.Unreadable, "not a regular file"},
		{"a symlink to nothing as SHA256SUMS", func(d disk) {
			d.Provider("acme/demo", "1.0.0", "linux_amd64")
			d.link("providers/acme/demo/terraform-provider-demo_1.0.0_SHA256SUMS", "nothing")
		}, "providers/acme/demo/terraform-provider-demo_1.0.0_SHA256SUMS", tree.Unreadable, "a symlink to nothing"},
		{"a symlink out of the root as a signature", func(d disk) {
			d.ProviderIn("providers/acme/demo/1.0.0", "demo", "1.0.0", "linux_amd64").Checksums()
			d.link("providers/acme/demo/1.0.0/terraform-provider-demo_1.0.0_SHA256SUMS.sig", d.dir)
		}, "providers/acme/demo/1.0.0/terraform-provider-demo_1.0.0_SHA256SUMS.sig", tree.Unreadable, "leaves the root"},
		{"a symlink to nothing as the folder of a version, beside its package", func(d disk) {
			d.Provider("acme/demo", "1.0.0", "linux_amd64")
			d.link("providers/acme/demo/1.0.0", "nothing")
		}, "providers/acme/demo/1.0.0", tree.Unreadable, "a symlink to nothing"},
		{"a named pipe as keys", func(d disk) { d.pipe("keys/acme.asc") }, "keys/acme.asc", tree.Unreadable, "not a regular file"},
		{"a named pipe as a part", func(d disk) { d.pipe("keys") }, "keys", tree.Unreadable, "not a directory"},
		{"a named pipe in a module", func(d disk) {
			d.Write("modules/acme/vpc/aws/1.0.0/main.tf", "x")
			d.pipe("modules/acme/vpc/aws/1.0.0/pipe")
		}, "modules/acme/vpc/aws/1.0.0", tree.Unreadable, `"pipe" in it is not a regular file`},
		{"a file as a part", func(d disk) { d.Write("modules", "x") }, "modules", tree.Unreadable, "not a directory"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			d := newDisk(t)
			test.build(d)
			s := scanWith(t, options(t, source.Directories{Root: filepath.Join(d.dir, "root")}.Open))
			if !offers("acme/healthy", "1.0.0")(s) {
				t.Error("the rest is not offered")
			}
			if test.reason == "" {
				nothingWithheld(t, s)
				if !offers("acme/demo", "1.0.0")(s) {
					t.Error("it is not offered")
				}
				return
			}
			if offers("acme/demo", "1.0.0")(s) && !strings.HasPrefix(test.path, "modules") {
				t.Error("it is offered")
			}
			if p := problemOf(s.Report().Withheld, test.path); test.path != "" && (p.Reason != test.reason || !strings.Contains(p.Detail, test.says)) {
				t.Errorf("the problem is %+v", p)
			}
			for _, p := range s.Report().Withheld {
				if strings.Contains(p.Detail, d.dir) {
					t.Errorf("a path of the server is told: %s", p.Detail)
				}
			}
		})
	}
}

// A package that cannot be read says nothing about the other platforms.
func TestASymlinkToNothingAsAPackage(t *testing.T) {
	d := newDisk(t)
	d.Provider("acme/demo", "1.0.0", "linux_amd64")
	d.link("providers/acme/demo/terraform-provider-demo_1.0.0_darwin_arm64.zip", "nothing")
	s := scanWith(t, options(t, source.Directories{Root: filepath.Join(d.dir, "root")}.Open))
	if !offers("acme/demo", "1.0.0")(s) {
		t.Errorf("the other platform is not offered: %+v", s.Report().Withheld)
	}
}

func TestAFolderWhereAFileIsExpected(t *testing.T) {
	files := indextest.New(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64")
	files.Write("providers/acme/demo/terraform-provider-demo_1.1.0_linux_amd64.zip/x", "x")
	files.Write("providers/acme/demo/1.2.0/builds/terraform-provider-demo", "unpacked, in no folder of a platform")
	files.Write("keys/acme.asc/x", "x")
	files.Write("modules/acme/vpc/aws/1.0.0.zip/main.tf", "x")
	s := scan(t, files)
	if !offers("acme/demo", "1.0.0")(s) {
		t.Error("the rest is not offered")
	}
	for _, path := range []string{"providers/acme/demo/terraform-provider-demo_1.1.0_linux_amd64.zip", "providers/acme/demo/1.2.0/builds"} {
		if problemOf(s.Report().Ignored, path).Detail == "" {
			t.Errorf("%s is not reported", path)
		}
	}
	if len(s.Report().Offered) != 1 {
		t.Errorf("offered is %+v", s.Report().Offered)
	}
}

// forbidden refuses to open names with these endings, like a file system without the right
// to read them. Tests may run as root, who has every right.
type forbidden struct {
	afero.Fs
	name string
}

func (f forbidden) Open(name string) (afero.File, error) {
	if strings.HasSuffix(name, f.name) {
		return nil, &fs.PathError{Op: "open", Path: "/secret/" + name, Err: syscall.EACCES}
	}
	return f.Fs.Open(name)
}

func TestUnreadableFiles(t *testing.T) {
	for _, name := range []string{
		"providers/acme/demo/" + zipName, "providers/acme/demo", "providers/acme/demo/terraform-provider-demo_1.0.0_SHA256SUMS",
		"providers/acme/demo/terraform-provider-demo_1.0.0_SHA256SUMS.sig", "keys/acme.asc", "keys", "modules",
		"modules/acme/vpc/aws/1.0.0/main.tf", "modules/acme/vpc/aws/2.0.0.zip",
	} {
		t.Run(name, func(t *testing.T) {
			files := indextest.New(t)
			p := indextest.NewPublisher(t)
			files.Keys("acme", p).Provider("acme/demo", "1.0.0", "linux_amd64").Signed(p)
			files.Provider("other/healthy", "1.0.0", "linux_amd64")
			files.Write("modules/acme/vpc/aws/1.0.0/main.tf", "x")
			files.Write("modules/acme/vpc/aws/2.0.0.zip", indextest.Zip("main.tf", "x"))
			files.Fs = forbidden{files.Fs, name}
			s := scan(t, files)
			if strings.HasPrefix(name, "keys") && (s.Provider(index.PlaceOf(ownDemo)) != nil || !s.Pending(index.PlaceOf(ownDemo), "1.0.0")) {
				t.Error("what is signed by a key that may be there does not wait for it")
			}
			if len(s.Report().Withheld) != 1 {
				t.Fatalf("withheld is %+v", s.Report().Withheld)
			}
			w := s.Report().Withheld[0]
			if w.Reason != tree.Unreadable || !strings.Contains(w.Detail, "give the server the right to") || strings.Contains(w.Detail, "secret") {
				t.Errorf("the problem is %+v", w)
			}
			if !strings.HasPrefix(name, w.Path) {
				t.Errorf("it is said of %s", w.Path)
			}
			if !offers("other/healthy", "1.0.0")(s) {
				t.Error("the rest is not offered")
			}
		})
	}
}

func TestDirectories(t *testing.T) {
	dir := t.TempDir()
	files := indextest.OnDisk(t, dir)
	files.ProviderIn("root/providers/acme/inside", "inside", "1.0.0", "linux_amd64")
	files.ProviderIn("root/other/acme/beside", "beside", "1.0.0", "linux_amd64")
	files.ProviderIn("mirror/acme/elsewhere", "elsewhere", "1.0.0", "linux_amd64")
	root := filepath.Join(dir, "root")
	named := os.DirFS(dir)
	treeIn := func(d source.Directories) func() (tree.Tree, error) {
		return func() (tree.Tree, error) { return d.OpenIn(named) }
	}
	for _, test := range []struct {
		rule  string
		open  func() (tree.Tree, error)
		offer string // empty: an error, or nothing is offered
		fails string
	}{
		{"the folders of their own names", source.Directories{Root: root}.Open, "acme/inside", ""},
		{"another folder of the root", source.Directories{Root: root, Providers: "other"}.Open, "acme/beside", ""},
		{"a folder elsewhere on the disk", source.Directories{Root: root, Providers: filepath.Join(dir, "mirror")}.Open, "acme/elsewhere", ""},
		{"a missing folder in the root is empty", source.Directories{Root: root, Providers: "nothing"}.Open, "", ""},
		{"a missing folder elsewhere is an error", source.Directories{Root: root, Providers: filepath.Join(dir, "nothing")}.Open, "", "opening providers: no such file or directory"},
		{"a missing root is an error", source.Directories{Root: filepath.Join(dir, "nothing")}.Open, "", "opening the root: no such file or directory"},
		{"a file as the root is an error", source.Directories{Root: filepath.Join(root, "providers/acme/inside/terraform-provider-inside_1.0.0_linux_amd64.zip")}.Open, "", "opening the root: not a directory"},
		{"on a named file system", treeIn(source.Directories{Root: "root"}), "acme/inside", ""},
		{"there, with a slash in front", treeIn(source.Directories{Root: "/root/"}), "acme/inside", ""},
		{"there, another folder of the root", treeIn(source.Directories{Root: "root", Providers: "other"}), "acme/beside", ""},
		{"there, a folder elsewhere", treeIn(source.Directories{Root: "root", Providers: "/mirror"}), "acme/elsewhere", ""},
		{"there, a missing root is an error", treeIn(source.Directories{Root: "nothing"}), "", "opening the root: no such file or directory"},
		{"there, a file as the root is an error", treeIn(source.Directories{Root: "root/providers/acme/inside/terraform-provider-inside_1.0.0_linux_amd64.zip"}), "", "it is not a directory"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			s, err := index.Scan(t.Context(), options(t, test.open))
			if test.fails != "" {
				if err == nil || !strings.HasSuffix(err.Error(), test.fails) || strings.Contains(err.Error(), dir) {
					t.Errorf("the error is %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			nothingWithheld(t, s)
			if test.offer == "" && len(s.Report().Offered) > 0 || test.offer != "" && !offers(test.offer, "1.0.0")(s) {
				t.Errorf("offered is %+v", s.Report().Offered)
			}
		})
	}
}

// Some file systems, such as those embedded in a binary, have no times.
func TestAFileSystemWithoutTimes(t *testing.T) {
	embedded := fstest.MapFS{
		"providers/acme/demo/" + zipName:     {Data: []byte(indextest.ProviderZip("demo", "1.0.0", "linux_amd64"))},
		"modules/acme/vpc/aws/1.0.0/main.tf": {Data: []byte("# a module\n")},
	}
	s := scanWith(t, options(t, func() (tree.Tree, error) { return source.Directories{Root: "."}.OpenIn(embedded) }))
	nothingWithheld(t, s)
	for _, f := range []*index.File{
		s.Provider(index.PlaceOf(ownDemo)).Releases[0].Packages[0].File,
		s.Module(index.PlaceOf(ownVPC)).Versions[0].Archive,
	} {
		r, err := s.Open(f)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, r); n != f.Size || err != nil {
			t.Errorf("%s has %d bytes, %v", f.Name, n, err)
		}
		r.Close()
	}
}

func TestAFileThatHasChangedIsNotServed(t *testing.T) {
	const name = "providers/acme/demo/" + zipName
	for rule, change := range map[string]func(files *indextest.Tree){
		"another size":    func(files *indextest.Tree) { files.Write(name, "x") },
		"another time":    func(files *indextest.Tree) { files.Fs.Chtimes(name, indextest.Born, indextest.Born) },
		"gone":            func(files *indextest.Tree) { files.Remove(name) },
		"its folder, too": func(files *indextest.Tree) { files.Remove("providers") },
	} {
		t.Run(rule, func(t *testing.T) {
			files := indextest.New(t)
			files.Provider("acme/demo", "1.0.0", "linux_amd64")
			s := scan(t, files)
			f := s.Provider(index.PlaceOf(ownDemo)).File(zipName)
			change(files)
			if _, err := s.Open(f); !errors.Is(err, tree.ErrChanged) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}
