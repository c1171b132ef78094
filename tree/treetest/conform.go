package treetest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// A Storage is an empty tree that lies somewhere, for Conform. Names are paths such as
// providers/acme/demo/1.0.0/x.
type Storage struct {
	Tree tree.Tree

	// Put writes a file of that age, like a program that copies files.
	Put func(name, content string, age time.Duration)

	// Contents returns the contents of all files at this moment.
	Contents func() map[string]string

	// Fail has fails called with the number of each operation from now on, before the
	// operation, which then fails with the error, and for one operation at a time. Nil ends
	// that.
	Fail func(fails func(n int) error)

	// Faults are errors with which an operation may fail for a moment.
	Faults []error

	// Link makes a symlink, and Pipe a named pipe. Nil: the storage has none.
	Link func(target, name string)
	Pipe func(name string)

	// Unshared tells that only one writer at a time is supported: renaming a folder may
	// replace another one.
	Unshared bool
}

// Conform checks that a storage keeps the rules of package tree. All rows are the same for
// every storage: code above package tree does not know which one it has.
func Conform(t *testing.T, open func(t *testing.T) Storage) {
	t.Run("reading", func(t *testing.T) { conformReading(t, open) })
	t.Run("a failure is no absence", func(t *testing.T) { conformFailedReads(t, open) })
	t.Run("a change is made as a whole or not at all", func(t *testing.T) { conformChanges(t, open) })
	t.Run("the first writer of a name has it", func(t *testing.T) { conformCreation(t, open) })
	t.Run("a folder is installed where there is none", func(t *testing.T) { conformInstallation(t, open) })
	t.Run("symlinks and special files", func(t *testing.T) { conformLinks(t, open) })
}

// Of the tree that most rows begin with.
const (
	demoFolder = "acme/demo"
	demoFile   = "acme/demo/1.0.0/x"
	sumsName   = "a_SHA256SUMS" // before all other names of a release
)

var demoAddress = address.Address{Namespace: "acme", Name: "demo"}

func (s Storage) put(files map[string]string) Storage {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		s.Put(name, files[name], time.Hour)
	}
	return s
}

// visible returns the files that readers of a tree see: no hidden or temporary ones, no empty
// ones, which may be reservations, and nothing of a folder that is still being uploaded.
func (s Storage) visible() map[string]string {
	all := s.Contents()
	seen := make(map[string]string)
	for name, content := range all {
		_, uploaded := all[path.Join(path.Dir(name), tree.UploadName)]
		_, complete := all[path.Join(path.Dir(name), sumsName)]
		hidden := slices.ContainsFunc(strings.Split(name, "/"), tree.IsHiddenOrTemporary)
		if !hidden && content != "" && path.Base(name) != tree.UploadName && (!uploaded || complete) {
			seen[name] = content
		}
	}
	return seen
}

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

// eachFault calls do for each operation that may fail, until none does, and for each way in
// which it may.
func eachFault(t *testing.T, open func(t *testing.T) Storage, do func(s Storage, n int, fault error, fail func(fails func(n int) error)) (asked int)) {
	for n := 1; ; n++ {
		faults := open(t).Faults
		if testing.Short() {
			faults = faults[n%len(faults):][:1]
		}
		for _, fault := range faults {
			s := open(t)
			if asked := do(s, n, fault, s.Fail); asked < n || t.Failed() {
				return
			}
		}
	}
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
			_, dir, err := f.Folder(demoAddress).In()
			return dir, err
		}},
		{"a registry.hcl", "x", func(f tree.Tree) (string, error) {
			content, err := f.Folder(address.Address{Namespace: "acme", Name: "other"}).ReadMetadata()
			return string(content), err
		}},
	} {
		t.Run(row.rule, func(t *testing.T) {
			eachFault(t, open, func(s Storage, n int, fault error, fail func(func(int) error)) (asked int) {
				s.put(map[string]string{"providers/" + demoFile: "content", "providers/acme/other/registry.hcl": "x"})
				fail(func(now int) error {
					asked = now
					if now == n {
						return fault
					}
					return nil
				})
				got, err := row.read(s.Tree)
				fail(nil)
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

func conformChanges(t *testing.T, open func(t *testing.T) Storage) {
	release := map[string]string{sumsName: "sums", "b.zip": "package", "c.zip": "package"}
	in := func(dir string, files map[string]string) map[string]string {
		all := make(map[string]string)
		for name, content := range files {
			all[path.Join("providers", dir, name)] = content
		}
		return all
	}
	documents := func(files map[string]string) map[string][]byte {
		all := make(map[string][]byte)
		for name, content := range files {
			all[name] = []byte(content)
		}
		return all
	}
	none := map[string]string{}
	for _, row := range []struct {
		rule          string
		before, after map[string]string // visible files
		hidden        map[string]string
		change        func(ctx context.Context, f tree.Tree) error
		again         error // of the same change, after it was made
		mixed         bool  // files of both contents are seen
	}{
		{
			rule: "a small file is written", before: in("acme", map[string]string{"list": "old"}), after: in("acme", map[string]string{"list": "new"}),
			change: func(_ context.Context, f tree.Tree) error { return f.Providers.WriteFile("acme/list", []byte("new")) },
		},
		{
			rule: "a small file is created", before: none, after: in("acme", map[string]string{"list": "new"}), again: tree.ErrChanged,
			change: func(ctx context.Context, f tree.Tree) error {
				return f.Providers.CreateFile(ctx, "acme/list", []byte("new"))
			},
		},
		{
			rule: "a file that arrived replaces another", before: in("acme", map[string]string{"a.zip": "old"}), after: in("acme", map[string]string{"a.zip": "new"}),
			change: func(ctx context.Context, f tree.Tree) error {
				return arrive(ctx, f.Providers, "acme/a.zip", "new", tree.TemporaryFile.Rename)
			},
		},
		{
			rule: "a file is removed", before: in("acme", map[string]string{"list": "old"}), after: none,
			change: func(_ context.Context, f tree.Tree) error { return tree.StorageError(f.Providers.Remove("acme/list")) },
		},
		{
			rule: "a registry.hcl is replaced", before: in(demoFolder, map[string]string{"registry.hcl": "old"}), after: in(demoFolder, map[string]string{"registry.hcl": "new"}),
			again: tree.ErrMetadataChanged,
			change: func(_ context.Context, f tree.Tree) error {
				return f.Folder(demoAddress).WriteMetadata([]byte("old"), []byte("new"))
			},
		},
		{
			rule: "a folder is installed", before: none, after: in(demoFolder+"/1.0.0", release), hidden: in(tree.StagingName+"/demo", release),
			change: func(ctx context.Context, f tree.Tree) error {
				_, err := f.Providers.InstallFolder(ctx, tree.StagingName+"/demo", demoFolder+"/1.0.0", sumsName)
				if exists, _ := f.Providers.Exists(tree.StagingName + "/demo"); err != nil && !exists {
					return nil // the answer was lost
				}
				return err
			},
		},
		{
			rule: "documents are installed", before: none, after: in(demoFolder+"/1.0.0", release),
			change: func(ctx context.Context, f tree.Tree) error {
				return f.Providers.InstallDocuments(ctx, documents(release), demoFolder+"/1.0.0", sumsName)
			},
		},
		{
			rule: "a folder is removed", before: in(demoFolder+"/1.0.0", release), after: none,
			change: func(ctx context.Context, f tree.Tree) error {
				return f.Providers.RemoveFolder(ctx, demoFolder+"/1.0.0", sumsName)
			},
		},
		{
			rule: "the content of a folder is replaced", mixed: true,
			before: in(demoFolder+"/docs", map[string]string{"a.md": "old", "b/gone.md": "old"}), after: in(demoFolder+"/docs", map[string]string{"a.md": "new", "b/more.md": "new"}),
			change: func(ctx context.Context, f tree.Tree) error {
				return f.Providers.ReplaceFolder(ctx, documents(map[string]string{"a.md": "new", "b/more.md": "new"}), demoFolder+"/docs", tree.StagingName+"/docs")
			},
		},
	} {
		t.Run(row.rule, func(t *testing.T) {
			eachFault(t, open, func(s Storage, n int, fault error, fail func(func(int) error)) (asked int) {
				s.put(row.before).put(row.hidden)
				check := func(when string) {
					now := s.visible()
					mixed := row.mixed && !slices.ContainsFunc(slices.Collect(maps.Keys(now)), func(name string) bool {
						return now[name] != row.before[name] && now[name] != row.after[name]
					})
					if !maps.Equal(now, row.before) && !maps.Equal(now, row.after) && !mixed {
						t.Errorf("operation %d fails with %v: %s there are %q", n, fault, when, now)
					}
				}
				fail(func(now int) error {
					asked = now
					check("meanwhile")
					if now == n {
						return fault
					}
					return nil
				})
				err := row.change(t.Context(), s.Tree)
				fail(nil)
				check("afterwards")
				now := s.visible()
				for name := range row.after {
					if row.before[name] != "" && now[name] == "" {
						t.Errorf("operation %d fails with %v: %s is gone", n, fault, name)
					}
				}
				switch {
				case err == nil && !maps.Equal(now, row.after):
					t.Errorf("operation %d fails with %v, the change is made, and there are %q", n, fault, now)
				case err != nil && (!errors.Is(err, tree.ErrNotWritable) && !errors.As(err, new(*tree.Finding)) || asked < n):
					t.Errorf("operation %d fails with %v: %v", n, fault, err)
				}
				if err == nil {
					return asked
				}
				err = row.change(t.Context(), s.Tree)
				if err != nil && !(errors.Is(err, row.again) && maps.Equal(now, row.after)) && !errors.Is(err, tree.ErrReserved) {
					t.Errorf("operation %d failed with %v, and again it fails with %v", n, fault, err)
				}
				if now := s.visible(); err == nil && !maps.Equal(now, row.after) {
					t.Errorf("operation %d failed with %v, and after the next attempt there are %q", n, fault, now)
				}
				return asked
			})
		})
	}
}

// arrive writes a file and ends it.
func arrive(ctx context.Context, p tree.Part, name, content string, end func(tree.TemporaryFile, context.Context, string) (fs.FileInfo, error)) error {
	f, err := p.NewTemporary(ctx, name)
	if err != nil {
		return err
	}
	defer f.Discard()
	if _, err := f.Write([]byte(content)); err != nil {
		return err
	}
	info, err := end(f, ctx, name)
	if err == nil && info.Size() != int64(len(content)) {
		err = fmt.Errorf("it has %d bytes", info.Size())
	}
	return err
}

func conformCreation(t *testing.T, open func(t *testing.T) Storage) {
	const name = "modules/acme/vpc/aws/1.0.0.tar.gz"
	create := func(s Storage) error {
		return arrive(t.Context(), s.Tree.Modules, "acme/vpc/aws/1.0.0.tar.gz", "new", tree.TemporaryFile.Create)
	}
	for n, asked := 1, 1; n <= asked; n++ {
		s, copied := open(t), false
		s.Fail(func(now int) error {
			asked = now
			if _, taken := s.Contents()[name]; now == n && !taken {
				s.Put(name, "copy", 0)
				copied = true
			}
			return nil
		})
		err := create(s)
		s.Fail(nil)
		want := "new"
		if copied {
			want = "copy"
		}
		if content := s.Contents()[name]; content != want || (err == nil) == copied || copied && !errors.Is(err, tree.ErrChanged) {
			t.Errorf("a copy comes before operation %d: it is %q, %v", n, content, err)
		}
	}
	for _, row := range []struct {
		rule    string
		content string
		age     time.Duration
		err     error
		want    string
	}{
		{"a name that is taken", "old", time.Hour, tree.ErrChanged, "old"},
		{"an empty file that may be a reservation", "", 0, tree.ErrNotWritable, ""},
	} {
		s := open(t)
		s.Put(name, row.content, row.age)
		err := create(s)
		if errors.Is(err, tree.ErrChanged) && row.content == "" {
			err = row.err // a store has no reservations
		}
		if got := s.Contents()[name]; !errors.Is(err, row.err) || got != row.want {
			t.Errorf("%s: it is %q, %v", row.rule, got, err)
		}
	}
	s := open(t)
	f, err := s.Tree.Modules.NewTemporary(t.Context(), "acme/vpc/aws/1.0.0.tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("new")); err != nil {
		t.Fatal(err)
	}
	f.Discard()
	f.Discard()
	if left := s.Contents(); len(left) > 0 {
		t.Errorf("a file that is discarded leaves %q", left)
	}
}

func conformInstallation(t *testing.T, open func(t *testing.T) Storage) {
	const folder = "providers/" + demoFolder + "/1.0.0/"
	staged := map[string]string{"providers/.staging/demo/" + sumsName: "sums", "providers/.staging/demo/b.zip": "package"}
	for _, row := range []struct {
		rule    string
		present map[string]string
	}{
		{"a package", map[string]string{folder + "b.zip": "other"}},
		{"a whole release", map[string]string{folder + sumsName: "other", folder + "b.zip": "other"}},
		{"documentation", map[string]string{folder + "docs/index.md": "# Demo"}},
	} {
		s := open(t).put(staged).put(row.present)
		before := s.Contents()
		_, err := s.Tree.Providers.InstallFolder(t.Context(), ".staging/demo", demoFolder+"/1.0.0", sumsName)
		if !errors.Is(err, tree.ErrInTheWay) || !maps.Equal(s.Contents(), before) {
			t.Errorf("there is %s: %v, and then there are %q", row.rule, err, s.Contents())
		}
		err = s.Tree.Providers.InstallDocuments(t.Context(), map[string][]byte{sumsName: []byte("sums")}, demoFolder+"/1.0.0", sumsName)
		if !errors.Is(err, tree.ErrInTheWay) || !maps.Equal(s.Contents(), before) {
			t.Errorf("there is %s: %v, and then there are %q", row.rule, err, s.Contents())
		}
	}
	s := open(t)
	if s.Unshared {
		return
	}
	var mutex sync.Mutex
	var winners []string
	var all sync.WaitGroup
	for i := range 4 {
		from := fmt.Sprint(".staging/", i)
		s.Put("providers/"+from+"/"+sumsName, from, time.Hour)
		all.Go(func() {
			if _, err := s.Tree.Providers.InstallFolder(t.Context(), from, demoFolder+"/1.0.0", sumsName); err == nil {
				mutex.Lock()
				defer mutex.Unlock()
				winners = append(winners, from)
			}
		})
	}
	all.Wait()
	if len(winners) != 1 || s.visible()[folder+sumsName] != winners[0] {
		t.Errorf("several install a folder at once: %q have, and there are %q", winners, s.visible())
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
