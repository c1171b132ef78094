package index_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
)

// A change in the bytes of an offered version is noticed, even if they were replaced while
// the registry was stopped, and is remembered over restarts.
func TestBytesOfOfferedVersionsThatChange(t *testing.T) {
	const (
		linux  = "providers/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip"
		darwin = "providers/acme/demo/terraform-provider-demo_1.0.0_darwin_arm64.zip"
		newer  = "providers/acme/demo/terraform-provider-demo_1.1.0_linux_amd64.zip"
		listed = "providers/acme/listed/terraform-provider-listed_1.0.0_linux_amd64.zip"
		module = "modules/acme/vpc/aws/1.0.0.zip"
		folder = "modules/acme/net/aws/1.0.0/main.tf"
	)
	zip := func(more string) string {
		return indextest.Zip("terraform-provider-demo_v1.0.0", "#!/bin/sh\n"+more)
	}
	begin := func(files *indextest.Tree) {
		files.Write(linux, zip("first")).Write(darwin, zip("first"))
		files.Write(module, indextest.Zip("main.tf", "# a module\n", "outputs.tf", "# nothing\n"))
		files.Write(folder, "# a module\n")
	}
	type step func(files *indextest.Tree)
	write := func(name, content string) step { return func(files *indextest.Tree) { files.Write(name, content) } }
	for _, test := range []struct {
		rule  string
		steps []step
		want  string // changes, by path
		runs  bool   // only while the registry runs: it cannot know otherwise
	}{
		{rule: "nothing", steps: []step{func(*indextest.Tree) {}}},
		{rule: "another package", steps: []step{write(linux, zip("second one"))}, want: linux},
		{rule: "two other packages", steps: []step{write(linux, zip("second one")), write(darwin, zip("second one"))}, want: darwin + " " + linux},
		{rule: "a package twice", steps: []step{write(linux, zip("second one")), write(linux, zip("the third one"))}, want: linux},
		{rule: "a package that comes back", steps: []step{write(linux, zip("second one")), write(linux, zip("first"))}},
		{rule: "a package that was broken meanwhile", steps: []step{write(linux, "PK"), write(linux, zip("second one"))}, want: linux},
		{rule: "a package that was broken meanwhile and comes back", steps: []step{write(linux, "PK"), write(linux, zip("first"))}},
		{rule: "a package that is touched", steps: []step{func(files *indextest.Tree) {
			_ = files.Fs.Chtimes(linux, time.Unix(1e9, 0), time.Unix(1e9, 0))
		}}},
		{rule: "a new version", steps: []step{write(newer, zip("second one"))}},
		{rule: "a package that was broken at first", steps: []step{write(newer, "PK"), write(newer, zip("second one"))}},
		{rule: "other files of a module", steps: []step{write(module, indextest.Zip("main.tf", "# another module\n"))}, want: module},
		{rule: "a module that is repacked", steps: []step{write(module, indextest.Zip("outputs.tf", "# nothing\n", "main.tf", "# a module\n")), func(files *indextest.Tree) {
			_ = files.Fs.Chtimes(module, time.Unix(1e9, 0), time.Unix(1e9, 0))
		}}},
		{rule: "other files of a folder", steps: []step{write(folder, "# another module\n")}, want: "modules/acme/net/aws/1.0.0"},
		{rule: "a withdrawn version is not offered", steps: []step{write("modules/acme/vpc/aws/registry.hcl", `withdrawn "1.0.0" {}`), write(module, indextest.Zip("main.tf", "# another module\n"))}},
		{rule: "a package that was not the one of SHA256SUMS and is put right", runs: true, steps: []step{func(files *indextest.Tree) {
			files.Provider("acme/listed", "1.0.0", "linux_amd64").Checksums()
			files.Write(listed, indextest.Zip("terraform-provider-listed_v1.0.0", "damaged"))
		}, func(files *indextest.Tree) { files.Provider("acme/listed", "1.0.0", "linux_amd64") }}},
	} {
		for _, stopped := range []bool{false, true} {
			if stopped && test.runs {
				continue
			}
			name := test.rule
			if stopped {
				name += ", while the registry was stopped"
			}
			t.Run(name, func(t *testing.T) {
				files := indextest.New(t)
				begin(files)
				o := options(t, files.Open)
				o.Store = new(memoryStore)
				x := index.New(o)
				rescan(t, x)
				restart := func() {
					x.Close()
					x = index.New(o)
				}
				for _, do := range test.steps {
					if stopped {
						restart()
					}
					do(files)
					rescan(t, x)
				}
				for range 2 { // now, and after a restart
					s := rescan(t, x)
					var changed []string
					for _, c := range s.Changed {
						changed = append(changed, c.Path)
						if c.Was == c.Is || c.Noticed.IsZero() {
							t.Errorf("changed as %+v", c)
						}
					}
					slices.Sort(changed)
					if got := strings.Join(changed, " "); got != test.want {
						t.Errorf("%q has changed, want %q", got, test.want)
					}
					notes := 0
					for _, offer := range s.Report().Offered {
						for _, n := range offer.Notes {
							if strings.Contains(n, "first offered") {
								notes++
							}
						}
					}
					if notes != len(changed) {
						t.Errorf("%d notes in the report, want %d", notes, len(changed))
					}
					restart()
				}
				x.Close()
			})
		}
	}
}

// A package that cannot be read for days is still known by its first bytes when it is there again,
// also after a restart.
func TestBytesThatChangeWhileTheyCannotBeRead(t *testing.T) {
	const module, folder = "modules/acme/vpc/aws/1.0.0.zip", "modules/acme/net/aws/1.0.0"
	const version = "providers/acme/demo/1.0.0"
	for _, test := range []struct {
		rule, replace, changed string
		denied                 bool // it is there, with another mode; else there is a symlink to nothing
	}{
		{"the folder of a version", version, version + "/" + zipName, false},
		{"a package", version + "/" + zipName, version + "/" + zipName, false},
		{"a package that may not be opened", version + "/" + zipName, version + "/" + zipName, true},
		{"a module", module, module, false},
		{"a module that may not be opened", module, module, true},
		{"the folder of a module", folder, folder, false},
		{"a file of a module", folder + "/main.tf", folder, false},
		{"a file of a module that may not be opened", folder + "/main.tf", folder, true},
	} {
		t.Run(test.rule, func(t *testing.T) {
			var faults treetest.Faults
			root := t.TempDir()
			files := indextest.OnDisk(t, root)
			write := func(content string) {
				files.Write(version+"/"+zipName, indextest.Zip("terraform-provider-demo_v1.0.0", "#!"+content))
				files.Write(module, indextest.Zip("main.tf", content)).Write(folder+"/main.tf", content)
			}
			write("# first\n")
			var now atomic.Pointer[time.Time]
			pass := func(d time.Duration) { t := inAnHour().Add(d); now.Store(&t) }
			pass(0)
			o := options(t, faults.Open(source.Directories{Root: root}.Open))
			o.Now = func() time.Time { return *now.Load() }
			o.Store, o.Identity = new(memoryStore), "a tree"
			x := index.New(o)
			rescan(t, x)
			at, away := filepath.Join(root, filepath.FromSlash(test.replace)), filepath.Join(root, "away")
			hide := func() error { return errors.Join(os.Rename(at, away), os.Symlink("nothing", at)) }
			show := func() error { return errors.Join(os.Remove(at), os.Rename(away, at)) }
			if test.denied {
				faults.When(func(_ int, o treetest.Operation) error {
					if strings.HasPrefix(o.Name, "open") && o.Path == test.replace {
						return syscall.EACCES
					}
					return nil
				})
				hide = func() error { return os.Chmod(at, 0o600) }
				show = func() error { faults.End(); return nil }
			}
			if err := hide(); err != nil {
				t.Fatal(err)
			}
			for n := range 4 {
				pass(time.Duration(n+1) * 13 * time.Hour)
				rescan(t, x)
			}
			x.Close()
			x = index.New(o)
			defer x.Close()
			if err := show(); err != nil {
				t.Fatal(err)
			}
			write("# another one\n")
			s := rescan(t, x)
			if !slices.ContainsFunc(s.Changed, func(c index.ChangedVersion) bool { return c.Path == test.changed }) {
				t.Errorf("%s is not among the changes, %+v", test.changed, s.Changed)
			}
		})
	}
}

// Each change is logged and reported once, with the first hash.
func TestChangedBytesAreToldOnce(t *testing.T) {
	const name = "modules/acme/vpc/aws/1.0.0.zip"
	files := indextest.New(t).Write(name, indextest.Zip("main.tf", "# a module\n"))
	var log bytes.Buffer
	var told []index.ChangedVersion
	x := newIndex(t, options(t, files.Open))
	x.Observe(&index.Observer{
		Logger:    slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Rewritten: func(c index.ChangedVersion) { told = append(told, c) },
	})
	first := rescan(t, x).Module(index.PlaceOf(ownVPC)).Versions[0].FileHashes.H1()
	for range 2 {
		files.Write(name, indextest.Zip("main.tf", "# another module\n"))
		rescan(t, x)
		rescan(t, x)
	}
	if len(told) != 1 || told[0].Was != first || told[0].Address != ownVPC || told[0].Version != "1.0.0" {
		t.Errorf("told %+v", told)
	}
	if n := strings.Count(log.String(), "the bytes of an offered version have changed"); n != 1 {
		t.Errorf("the log is %s", log.String())
	}
}

// A single scan compares with the records of an Index, and stores nothing.
func TestScanComparesWithAnIndex(t *testing.T) {
	const name = "modules/acme/vpc/aws/1.0.0.zip"
	files := indextest.New(t).Write(name, indextest.Zip("main.tf", "# a module\n"))
	o := options(t, files.Open)
	o.Store, o.Identity = new(memoryStore), "a tree"
	changed := func(o index.Options) int {
		s, err := index.Scan(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		return len(s.Changed)
	}
	x := index.New(o)
	rescan(t, x)
	x.Close()
	if n := changed(o); n != 0 {
		t.Errorf("%d changes of what is as it was", n)
	}
	files.Write(name, indextest.Zip("main.tf", "# another module\n"))
	for range 2 {
		if n := changed(o); n != 1 {
			t.Errorf("%d changes, want 1", n)
		}
	}
	other := o
	other.Identity = "another tree"
	if n := changed(other); n != 0 {
		t.Errorf("%d changes of another tree", n)
	}
}
