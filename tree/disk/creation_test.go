package disk_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
)

// A way is how a file system creates a file that must not exist.
type way struct {
	name  string
	lacks []string // operations
	last  string   // the operation that gives a file or folder its name
}

var (
	byRename      = way{"a rename that replaces nothing", nil, "renameexclusive"}
	byLink        = way{"a second name", []string{"renameexclusive"}, "link"}
	byReservation = way{"a reserved name", []string{"renameexclusive", "link"}, "rename"}
)

// A creation is a part of a tree on the disk, with the events during a test.
type creation struct {
	t      *testing.T
	root   string
	part   tree.Part
	faults treetest.Faults
}

func newCreation(t *testing.T) *creation {
	t.Helper()
	c := &creation{t: t, root: t.TempDir()}
	files, err := c.faults.Open(source.Directories{Root: c.root}.Open)()
	if err != nil {
		t.Fatal(err)
	}
	c.part = files.Modules
	return c
}

// anyTemporary stands for the path of each temporary file.
const anyTemporary = "temporary"

// run makes the disk create files in that way, and calls happens before the first operation
// with that name and path, unless it is nil. An error of happens fails the operation.
func (c *creation) run(w way, operation, name string, happens func() error) {
	happened := false
	c.faults.When(func(_ int, o treetest.Operation) error {
		if slices.Contains(w.lacks, o.Name) || w.name != byRename.name && runtime.GOOS == "windows" && o.Name == "renameexclusive" {
			return errors.ErrUnsupported
		}
		isThere := o.Path == name || name == anyTemporary && tree.IsTemporary(filepath.Base(o.Path))
		if happens == nil || happened || o.Name != operation || !isThere {
			return nil
		}
		happened = true
		return happens()
	})
	c.t.Cleanup(func() {
		if happens != nil && !happened {
			c.t.Errorf("there was no %s of %s", operation, name)
		}
	})
}

// create makes a file of a module.
func (c *creation) create(content string) error {
	c.t.Helper()
	f, err := c.part.NewTemporary(c.t.Context(), ".staging/1.0.0.tar.gz")
	if err != nil {
		c.t.Fatal(err)
	}
	defer f.Discard()
	if _, err := f.Write([]byte(content)); err != nil {
		c.t.Fatal(err)
	}
	info, err := f.Create(c.t.Context(), "acme/vpc/aws/1.0.0.tar.gz")
	if err == nil && info.Size() != int64(len(content)) {
		c.t.Errorf("it has %d bytes", info.Size())
	}
	return err
}

const createdModule = "modules/acme/vpc/aws/1.0.0.tar.gz"

func (c *creation) path(name string) string { return filepath.Join(c.root, filepath.FromSlash(name)) }

// write writes a file like a program that copies does.
func (c *creation) write(name, content string) error {
	return errors.Join(os.MkdirAll(filepath.Dir(c.path(name)), 0o755), os.WriteFile(c.path(name), []byte(content), 0o644))
}

// holds fails unless the tree has exactly these files and empty folders.
func (c *creation) holds(want ...string) {
	c.t.Helper()
	var got []string
	err := filepath.WalkDir(c.root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, _ := filepath.Rel(c.root, name)
		relative = filepath.ToSlash(relative)
		if !d.IsDir() {
			content, err := os.ReadFile(name)
			got = append(got, relative+"="+string(content))
			return err
		}
		if entries, err := os.ReadDir(name); err == nil && len(entries) == 0 && !strings.HasSuffix(relative, ".staging") {
			got = append(got, relative+"/")
		}
		return nil
	})
	if err != nil {
		c.t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		c.t.Errorf("there are %q, want %q", got, want)
	}
}

// age makes a file or folder look as if it had been there for long.
func (c *creation) age(name string) {
	c.t.Helper()
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(c.path(name), old, old); err != nil {
		c.t.Fatal(err)
	}
}

// Creating a file fails if the name is taken, however late, and the existing file stays.
func TestFilesAreCreatedWhereThereIsNone(t *testing.T) {
	for _, w := range []way{byRename, byLink, byReservation} {
		last := w.last
		if w.name == byReservation.name {
			last = "openfile"
		}
		for _, test := range []struct {
			rule         string
			taken        bool // from the beginning, by a file with this content
			content      string
			old          bool
			copied, path string // the operation before which a copy comes, and the path of the operation
			err          error
			want         string
		}{
			{rule: "a free name", want: "new"},
			{rule: "a name that is taken", taken: true, content: "old", err: tree.ErrChanged, want: "old"},
			{rule: "a copy that comes at the last moment", copied: last, path: createdModule, err: tree.ErrChanged, want: "copy"},
			{rule: "an empty file that was made a moment ago", taken: true, err: tree.ErrReserved},
			{rule: "an empty file that is a leftover", taken: true, old: true, want: "new"},
			{rule: "a leftover that is written to while it is removed", taken: true, old: true, copied: "rename", path: anyTemporary, err: tree.ErrChanged, want: "copy"},
		} {
			t.Run(w.name+": "+test.rule, func(t *testing.T) {
				c := newCreation(t)
				if test.taken {
					if err := c.write(createdModule, test.content); err != nil {
						t.Fatal(err)
					}
				}
				if test.old {
					c.age(createdModule)
				}
				var happens func() error
				if test.copied != "" {
					happens = func() error { return c.write(createdModule, "copy") }
				}
				c.run(w, test.copied, test.path, happens)
				if err := c.create("new"); !errors.Is(err, test.err) {
					t.Errorf("got %v", err)
				}
				c.holds(createdModule + "=" + test.want)
			})
		}
	}
}

// A link whose answer is lost, as happens on NFS, has been made.
func TestALinkWhoseAnswerIsLost(t *testing.T) {
	c := newCreation(t)
	lost := false
	c.faults.When(func(_ int, o treetest.Operation) error {
		switch {
		case o.Name == "renameexclusive":
			return errors.ErrUnsupported
		case o.Name == "link" && !lost:
			lost = true
			staged, err := filepath.Glob(c.path("modules/.staging/.*"))
			if err != nil || len(staged) != 1 {
				t.Fatal(staged, err)
			}
			return errors.Join(os.Link(staged[0], c.path(createdModule)), syscall.EIO)
		}
		return nil
	})
	if err := c.create("new"); err != nil {
		t.Error(err)
	}
	c.holds(createdModule + "=new")
}

// A file written into a reserved name is not replaced by a rename. A process that dies
// before it uses its reservation leaves nothing that is offered or that blocks the name
// forever.
func TestReservedNames(t *testing.T) {
	t.Run("a copy into the reservation", func(t *testing.T) {
		c := newCreation(t)
		c.run(byReservation, "stat", createdModule, func() error { return c.write(createdModule, "copy") })
		if err := c.create("new"); !errors.Is(err, tree.ErrChanged) {
			t.Errorf("got %v", err)
		}
		c.holds(createdModule + "=copy")
	})
	t.Run("a process that dies", func(t *testing.T) {
		c := newCreation(t)
		dead := false
		c.faults.When(func(_ int, o treetest.Operation) error {
			dead = dead || o.Name == "rename"
			if dead || slices.Contains(byReservation.lacks, o.Name) {
				return syscall.EIO
			}
			return nil
		})
		if err := c.create("new"); !errors.Is(err, tree.ErrNotWritable) {
			t.Errorf("got %v", err)
		}
		c.faults.End()
		info, err := os.Stat(c.path(createdModule))
		if err != nil || info.Size() != 0 || !tree.Reserved(info) {
			t.Fatalf("the reservation is %v (%v)", info, err)
		}
		if err := c.create("again"); !errors.Is(err, tree.ErrReserved) {
			t.Errorf("at once: %v", err)
		}
		c.age(createdModule)
		if err := c.create("again"); err != nil {
			t.Errorf("later: %v", err)
		}
		if content, err := os.ReadFile(c.path(createdModule)); err != nil || string(content) != "again" {
			t.Errorf("it has %q (%v)", content, err)
		}
	})
}

// The same for folders: a folder with a file in it stays as it is.
func TestFoldersAreInstalledWhereThereIsNone(t *testing.T) {
	const folder, staged = "modules/acme/demo/1.0.0", "modules/.staging/demo"
	for _, w := range []way{byRename, byReservation} {
		for _, test := range []struct {
			rule    string
			before  func(c *creation) error
			happens func(c *creation) error // at the last moment
			at      string
			err     error
			holds   []string
		}{
			{rule: "a free name", holds: []string{folder + "/sums=new"}},
			{
				rule:   "a folder with a file",
				before: func(c *creation) error { return c.write(folder+"/sums", "old") },
				err:    tree.ErrInTheWay, holds: []string{staged + "/sums=new", folder + "/sums=old"},
			},
			{
				rule:    "a folder that is copied at the last moment",
				happens: func(c *creation) error { return c.write(folder+"/sums", "copy") }, at: w.last,
				err: tree.ErrInTheWay, holds: []string{staged + "/sums=new", folder + "/sums=copy"},
			},
			{
				rule:    "an empty folder, into which somebody is about to copy",
				happens: func(c *creation) error { return os.MkdirAll(c.path(folder), 0o755) }, at: w.last,
				err: tree.ErrReserved, holds: []string{staged + "/sums=new", folder + "/"},
			},
			{
				rule: "an empty folder that is a leftover",
				before: func(c *creation) error {
					err := os.MkdirAll(c.path(folder), 0o755)
					c.age(folder)
					return err
				},
				holds: []string{folder + "/sums=new"},
			},
			{
				rule: "a leftover that is copied to while it is removed",
				before: func(c *creation) error {
					err := os.MkdirAll(c.path(folder), 0o755)
					c.age(folder)
					return err
				},
				happens: func(c *creation) error { return c.write(folder+"/sums", "copy") }, at: "remove",
				err: tree.ErrInTheWay, holds: []string{staged + "/sums=new", folder + "/sums=copy"},
			},
		} {
			t.Run(w.name+": "+test.rule, func(t *testing.T) {
				c := newCreation(t)
				if err := c.write(staged+"/sums", "new"); err != nil {
					t.Fatal(err)
				}
				if test.before != nil {
					if err := test.before(c); err != nil {
						t.Fatal(err)
					}
				}
				var happens func() error
				if test.happens != nil {
					happens = func() error { return test.happens(c) }
				}
				c.run(w, test.at, folder, happens)
				_, err := c.part.InstallFolder(context.Background(), ".staging/demo", "acme/demo/1.0.0", "sums")
				if !errors.Is(err, test.err) || err != nil && test.err == nil {
					t.Errorf("got %v", err)
				}
				c.holds(test.holds...)
			})
		}
	}
}

// A tree may have symlinks in it. They lead to the place of the created file, and not out of
// the root.
func TestCreationBehindSymlinks(t *testing.T) {
	link := func(t *testing.T, c *creation, target string) {
		t.Helper()
		if err := os.MkdirAll(c.path("modules/acme/vpc"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, c.path("modules/acme/vpc/aws")); err != nil {
			t.Skip("no symlinks here: ", err)
		}
	}
	for _, w := range []way{byRename, byLink, byReservation} {
		for _, absolute := range []bool{false, true} {
			c := newCreation(t)
			if err := os.MkdirAll(c.path("shared"), 0o755); err != nil {
				t.Fatal(err)
			}
			target := "../../../shared"
			if absolute {
				target = c.path("shared")
			}
			link(t, c, target)
			c.run(w, "", "", nil)
			if err := c.create("new"); err != nil {
				t.Errorf("%s, to %s: %v", w.name, target, err)
			}
			if err := c.create("other"); !errors.Is(err, tree.ErrChanged) {
				t.Errorf("%s, to %s: %v", w.name, target, err)
			}
			if content, err := os.ReadFile(c.path("shared/1.0.0.tar.gz")); err != nil || string(content) != "new" {
				t.Errorf("%s, to %s: it has %q (%v)", w.name, target, content, err)
			}
		}
		outside := t.TempDir()
		c := newCreation(t)
		link(t, c, outside)
		c.run(w, "", "", nil)
		if err := c.create("new"); !errors.Is(err, tree.ErrNotWritable) {
			t.Errorf("%s, out of the root: %v", w.name, err)
		}
		if left, _ := os.ReadDir(outside); len(left) > 0 {
			t.Errorf("%s has left the root", w.name)
		}
	}
}
