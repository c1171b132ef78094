package treetest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

func conformChanges(t *testing.T, open func(t *testing.T) Storage) {
	release := map[string]string{sumsName: "sums", "b.zip": "package", "c.zip": "package"}
	inFolder := func(dir string, files map[string]string) map[string]string {
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
			rule: "a small file is written", before: inFolder("acme", map[string]string{"list": "old"}), after: inFolder("acme", map[string]string{"list": "new"}),
			change: func(_ context.Context, f tree.Tree) error { return f.Providers.WriteFile("acme/list", []byte("new")) },
		},
		{
			rule: "a small file is created", before: none, after: inFolder("acme", map[string]string{"list": "new"}), again: tree.ErrChanged,
			change: func(ctx context.Context, f tree.Tree) error {
				return f.Providers.CreateFile(ctx, "acme/list", []byte("new"))
			},
		},
		{
			rule: "a file that arrived replaces another", before: inFolder("acme", map[string]string{"a.zip": "old"}), after: inFolder("acme", map[string]string{"a.zip": "new"}),
			change: func(ctx context.Context, f tree.Tree) error {
				return arrive(ctx, f.Providers, "acme/a.zip", "new", tree.TemporaryFile.Rename)
			},
		},
		{
			rule: "a file is removed", before: inFolder("acme", map[string]string{"list": "old"}), after: none,
			change: func(_ context.Context, f tree.Tree) error { return tree.StorageError(f.Providers.Remove("acme/list")) },
		},
		{
			rule: "a registry.hcl is replaced", before: inFolder(demoFolder, map[string]string{"registry.hcl": "old"}), after: inFolder(demoFolder, map[string]string{"registry.hcl": "new"}),
			again: tree.ErrMetadataChanged,
			change: func(_ context.Context, f tree.Tree) error {
				return f.Folder(demoAddress).WriteMetadata([]byte("old"), []byte("new"))
			},
		},
		{
			rule: "a folder is installed", before: none, after: inFolder(demoFolder+"/1.0.0", release), hidden: inFolder(tree.StagingName+"/demo", release),
			change: func(ctx context.Context, f tree.Tree) error {
				_, err := f.Providers.InstallFolder(ctx, tree.StagingName+"/demo", demoFolder+"/1.0.0", sumsName)
				if exists, _ := f.Providers.Exists(tree.StagingName + "/demo"); err != nil && !exists {
					return nil // the answer was lost
				}
				return err
			},
		},
		{
			rule: "documents are installed", before: none, after: inFolder(demoFolder+"/1.0.0", release),
			change: func(ctx context.Context, f tree.Tree) error {
				return f.Providers.InstallDocuments(ctx, documents(release), demoFolder+"/1.0.0", sumsName)
			},
		},
		{
			rule: "a folder is removed", before: inFolder(demoFolder+"/1.0.0", release), after: none,
			change: func(ctx context.Context, f tree.Tree) error {
				return f.Providers.RemoveFolder(ctx, demoFolder+"/1.0.0", sumsName)
			},
		},
		{
			rule: "the content of a folder is replaced", mixed: true,
			before: inFolder(demoFolder+"/docs", map[string]string{"a.md": "old", "b/gone.md": "old"}), after: inFolder(demoFolder+"/docs", map[string]string{"a.md": "new", "b/more.md": "new"}),
			change: func(ctx context.Context, f tree.Tree) error {
				return f.Providers.ReplaceFolder(ctx, tree.DocumentsOf(documents(map[string]string{"a.md": "new", "b/more.md": "new"})), demoFolder+"/docs", tree.StagingName+"/docs")
			},
		},
	} {
		t.Run(row.rule, func(t *testing.T) {
			eachFault(t, open, func(s Storage, n int, fault error) (asked int) {
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
				s.Fail(func(now int) error {
					asked = now
					check("meanwhile")
					if now == n {
						return fault
					}
					return nil
				})
				err := row.change(t.Context(), s.Tree)
				s.Fail(nil)
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
