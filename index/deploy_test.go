//go:build unix

package index_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
)

// A deployment replaces a directory by another. The index notices that in the directory
// around it, which may be outside of the watched directories.
func TestDeploymentsAreSeen(t *testing.T) {
	t.Parallel()
	symlink := func(t *testing.T, target, name string) {
		t.Helper()
		if err := os.Symlink(target, name+"_new"); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(name+"_new", name); err != nil { // as deployments do, in one step
			t.Fatal(err)
		}
	}
	mkdir := func(t *testing.T, name string) {
		t.Helper()
		if err := os.MkdirAll(name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	release := func(t *testing.T, dir, version string) {
		t.Helper()
		indextest.OnDisk(t, dir).Provider("acme/demo", version, "linux_amd64")
	}
	for _, test := range []struct {
		rule   string
		first  func(t *testing.T, dir string) source.Directories
		deploy func(t *testing.T, dir string)
	}{
		{
			"the root is a symlink that is pointed elsewhere",
			func(t *testing.T, dir string) source.Directories {
				release(t, dir+"/releases/1", "1.0.0")
				symlink(t, "releases/1", dir+"/current")
				return source.Directories{Root: dir + "/current"}
			},
			func(t *testing.T, dir string) {
				release(t, dir+"/releases/2", "2.0.0")
				symlink(t, "releases/2", dir+"/current")
			},
		},
		{
			"a folder above the root is",
			func(t *testing.T, dir string) source.Directories {
				release(t, dir+"/releases/1/tree", "1.0.0")
				symlink(t, dir+"/releases/1", dir+"/current")
				return source.Directories{Root: dir + "/current/tree"}
			},
			func(t *testing.T, dir string) {
				release(t, dir+"/releases/2/tree", "2.0.0")
				symlink(t, dir+"/releases/2", dir+"/current")
			},
		},
		{
			"a hidden symlink is, which everything else leads through, as in Kubernetes' volumes",
			func(t *testing.T, dir string) source.Directories {
				release(t, dir+"/..2026_01_01", "1.0.0")
				symlink(t, "..2026_01_01", dir+"/..data")
				symlink(t, "..data/providers", dir+"/providers")
				return source.Directories{Root: dir}
			},
			func(t *testing.T, dir string) {
				release(t, dir+"/..2026_01_02", "2.0.0")
				symlink(t, "..2026_01_02", dir+"/..data")
			},
		},
		{
			"a symlink is that a folder of the tree leads through",
			func(t *testing.T, dir string) source.Directories {
				release(t, dir+"/.store/1", "1.0.0")
				symlink(t, "1", dir+"/.store/current")
				mkdir(t, dir+"/providers")
				symlink(t, "../.store/current/providers/acme", dir+"/providers/acme")
				return source.Directories{Root: dir}
			},
			func(t *testing.T, dir string) {
				release(t, dir+"/.store/2", "2.0.0")
				symlink(t, "2", dir+"/.store/current")
			},
		},
		{
			"a symlink is that a part of the root leads through",
			func(t *testing.T, dir string) source.Directories {
				release(t, dir+"/deployed/1", "1.0.0")
				symlink(t, "1/providers", dir+"/deployed/current")
				symlink(t, "deployed/current", dir+"/providers")
				return source.Directories{Root: dir}
			},
			func(t *testing.T, dir string) {
				release(t, dir+"/deployed/2", "2.0.0")
				symlink(t, "2/providers", dir+"/deployed/current")
			},
		},
		{
			"a part that is deep in the root is",
			func(t *testing.T, dir string) source.Directories {
				release(t, dir+"/deployed/1", "1.0.0")
				symlink(t, "1/providers", dir+"/deployed/current")
				return source.Directories{Root: dir, Providers: "deployed/current"}
			},
			func(t *testing.T, dir string) {
				release(t, dir+"/deployed/2", "2.0.0")
				symlink(t, "2/providers", dir+"/deployed/current")
			},
		},
		{
			"a part that lies elsewhere is removed and made again",
			func(t *testing.T, dir string) source.Directories {
				mkdir(t, dir+"/root")
				release(t, dir+"/mnt", "1.0.0")
				return source.Directories{Root: dir + "/root", Providers: dir + "/mnt/providers"}
			},
			func(t *testing.T, dir string) {
				if err := os.RemoveAll(dir + "/mnt"); err != nil {
					t.Fatal(err)
				}
				release(t, dir+"/mnt", "2.0.0")
			},
		},
	} {
		t.Run(test.rule, func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			d := test.first(t, dir)
			o := options(t, d.Open)
			o.Watch, o.Paths = true, d.Paths() // and no periodic scan
			o.Now = inAnHour                   // nothing is read again because it is young
			r := run(t, o)
			r.until(t, offers("acme/demo", "1.0.0"))
			test.deploy(t, dir)
			s := r.until(t, offers("acme/demo", "2.0.0"))
			if offers("acme/demo", "1.0.0")(s) {
				t.Error("what was there before is still offered")
			}
			// Changes in the new folder are watched too.
			indextest.OnDisk(t, "/").ProviderIn(filepath.Join(providersOf(d), "acme/demo"), "demo", "3.0.0", "linux_amd64")
			r.until(t, offers("acme/demo", "3.0.0"))
		})
	}
}

// The target of a symlink may be gone for a while, as when a deployment removes it first. The registry
// notices when the target comes back.
func TestTheTargetOfASymlinkComesBack(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ rule, link, target string }{
		{"a namespace", "providers/acme", ".store/current/providers/acme"},
		{"a package", "providers/acme/demo/" + zipName, ".store/current/providers/acme/demo/" + zipName},
	} {
		t.Run(test.rule, func(t *testing.T) {
			dir := t.TempDir()
			link, store := filepath.Join(dir, test.link), filepath.Join(dir, ".store")
			indextest.OnDisk(t, store+"/next").Provider("acme/demo", "1.0.0", "linux_amd64")
			indextest.OnDisk(t, dir).Provider("other/demo", "1.0.0", "linux_amd64")
			if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
				t.Fatal(err)
			}
			up, err := filepath.Rel(filepath.Dir(link), filepath.Join(dir, test.target))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(up, link); err != nil {
				t.Fatal(err)
			}
			d := source.Directories{Root: dir}
			o := options(t, d.Open)
			o.Watch, o.Paths = true, d.Paths() // and no periodic scan
			o.Now = inAnHour                   // nothing is read again because it is young
			r := run(t, o)
			if offers("acme/demo", "1.0.0")(r.until(t, offers("other/demo", "1.0.0"))) {
				t.Fatal("it is offered without the target")
			}
			if err := os.Rename(store+"/next", store+"/current"); err != nil {
				t.Fatal(err)
			}
			r.until(t, offers("acme/demo", "1.0.0"))
		})
	}
}

// providersOf returns where the providers lie.
func providersOf(d source.Directories) string {
	return d.Paths()[1]
}
