package e2e_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

const versionsOfDemo = "https://registry.example.com/v1/providers/acme/demo/versions"

// staged returns a tree outside of the registry. Tests move or copy its releases and
// modules into the registry's tree.
func staged(t *testing.T) *Tree { return newTree(t) }

// moveIn renames a file of another tree to the same path in this one.
func (files *Tree) moveIn(from *Tree, name string) {
	files.t.Helper()
	if err := os.MkdirAll(filepath.Dir(files.Path(name)), 0o755); err != nil {
		files.t.Fatal(err)
	}
	if err := os.Rename(from.Path(name), files.Path(name)); err != nil {
		files.t.Fatal(err)
	}
}

func demoPackage(version, platform string) string {
	return "providers/acme/demo/terraform-provider-demo_" + version + "_" + platform + ".zip"
}

// lists reports whether a list of versions contains a version.
func (r *Registry) lists(t *testing.T, url, version string) bool {
	t.Helper()
	answer := r.Get(t, url)
	return answer.Status == 200 && strings.Contains(answer.Body, `"`+version+`"`)
}

// The folder is watched: without periodic scans or requests, files renamed into
// it are served, and deleted ones are no longer served.
func TestChangesAreServed(t *testing.T) {
	t.Parallel()
	files := newTree(t).Provider("acme/demo", "1.0.0", platforms("plan9_386"))
	registry := startRegistry(t, site("registry.example.com", files, "rescan off"))

	from := staged(t).
		Provider("acme/demo", "1.1.0", platforms("plan9_386"), zipsOnly).
		Provider("acme/demo", "1.2.0", platforms("plan9_386"), zipsOnly)
	for _, version := range []string{"1.1.0", "1.2.0"} {
		began := time.Now()
		files.moveIn(from, demoPackage(version, "plan9_386"))
		eventually(t, version+" is listed", func() bool { return registry.lists(t, versionsOfDemo, version) })
		t.Logf("after the rename, %s is listed within %v", version, time.Since(began).Round(time.Millisecond))
	}
	if err := os.Remove(files.Path(demoPackage("1.1.0", "plan9_386"))); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	eventually(t, "1.1.0 is no longer listed", func() bool { return !registry.lists(t, versionsOfDemo, "1.1.0") })
	t.Logf("after the deletion, 1.1.0 is no longer listed within %v", time.Since(began).Round(time.Millisecond))

	// A new folder, with all its files.
	files.Module("acme/vpc/aws", "1.0.0", asFolder)
	eventually(t, "the module is listed", func() bool {
		return registry.lists(t, "https://registry.example.com/v1/modules/acme/vpc/aws/versions", "1.0.0")
	})
}

// incompressible returns content without repetitions, the same in each run.
func incompressible(size int64) io.Reader {
	return io.LimitReader(rand.NewChaCha8([32]byte{'e', '2', 'e'}), size)
}

// A file that is copied slowly under its final name is not offered until it is
// complete: at any time, it is absent or complete.
func TestFilesBeingCopied(t *testing.T) {
	t.Parallel()
	folders := newTree(t).Provider("acme/demo", "1.0.0", platforms("plan9_386"))
	registry := startRegistry(t, site("registry.example.com", folders, "rescan off"))

	from := staged(t).Module("acme/vpc/aws", "1.1.0", asTarGz).Module("acme/net/aws", "1.1.0", asZip)
	zip := from.Path(demoPackage("1.1.0", "plan9_386"))
	if err := writeZip(zip, "terraform-provider-demo_v1.1.0", incompressible(1<<20)); err != nil {
		t.Fatal(err)
	}
	type copied struct{ name, list, url, content string }
	var files []copied
	for _, f := range []copied{
		{demoPackage("1.1.0", "plan9_386"), "providers/acme/demo/versions",
			"mirror/registry.example.com/acme/demo/terraform-provider-demo_1.1.0_plan9_386.zip", from.Read(demoPackage("1.1.0", "plan9_386"))},
		{"modules/acme/vpc/aws/1.1.0.tar.gz", "modules/acme/vpc/aws/versions",
			"modules/acme/vpc/aws/1.1.0/archive.tar.gz", from.Read("modules/acme/vpc/aws/1.1.0.tar.gz")},
		{"modules/acme/net/aws/1.1.0.zip", "modules/acme/net/aws/versions",
			"modules/acme/net/aws/1.1.0/archive.zip", from.Read("modules/acme/net/aws/1.1.0.zip")},
	} {
		f.list = "https://registry.example.com/v1/" + f.list
		f.url = "https://registry.example.com/v1/" + f.url
		files = append(files, f)
	}

	// Requests are sent all the time, not only between two pieces.
	stop := make(chan struct{})
	var asking sync.WaitGroup
	for _, f := range files {
		asking.Go(func() {
			for asked := 0; ; asked++ {
				select {
				case <-stop:
					t.Logf("%s was requested %d times", f.url, asked)
					return
				default:
				}
				answer, err := registry.ask(f.url)
				switch {
				case err != nil:
					t.Error(err)
				case answer.Status == 200 && answer.Body != f.content:
					t.Errorf("%s: %d bytes were served that differ from the file of %d bytes", f.url, len(answer.Body), len(f.content))
				case answer.Status != 200 && answer.Status != 404 && answer.Status != 503:
					t.Errorf("%s: %d", f.url, answer.Status)
				}
			}
		})
	}
	const pieces = 5
	for piece := range pieces {
		point := len(registry.Log.Entries())
		for _, f := range files {
			size := len(f.content)
			if piece == 0 {
				writeFile(t, folders.Path(f.name), "")
			}
			appendTo(t, folders.Path(f.name), f.content[piece*size/pieces:(piece+1)*size/pieces])
		}
		if piece == pieces-1 {
			break
		}
		registry.Log.WaitAfter(t, point, 1, "it has scanned what is half there", Entry.scan)
		for _, f := range files {
			if registry.lists(t, f.list, "1.1.0") {
				t.Errorf("piece %d: %s lists it", piece, f.list)
			}
			if answer := registry.Get(t, f.url); answer.Status == 200 {
				t.Errorf("piece %d: %s is served", piece, f.url)
			}
		}
	}
	for _, f := range files {
		eventually(t, f.list+" lists it", func() bool { return registry.lists(t, f.list, "1.1.0") })
		eventually(t, f.url+" is served", func() bool { return registry.Get(t, f.url).Status == 200 })
	}
	close(stop)
	asking.Wait()
}

// Copying many files counts as one change, not one for each file.
func TestManyFilesAtOnce(t *testing.T) {
	t.Parallel()
	files := newTree(t).Provider("acme/other", "1.0.0", platforms("plan9_386"))
	registry := startRegistry(t, site("registry.example.com", files, "rescan off"))
	const count = 500
	from := staged(t)
	var names []string
	for i := range count {
		version := fmt.Sprintf("1.%d.0", i)
		name := demoPackage(version, "plan9_386")
		if err := writeZip(from.Path(name), "terraform-provider-demo_v"+version, strings.NewReader(version)); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	for _, name := range names {
		copyFile(t, from.Path(name), files.Path(name))
	}
	registry.Log.Wait(t, "all packages are offered", func(e Entry) bool { return e.scan() && e.Offered == count+1 })
	scans := registry.Log.Find(0, Entry.scan)
	t.Logf("%d files were indexed by %d scans", count, len(scans)-1)
	if len(scans) > 10 {
		t.Errorf("there were %d scans", len(scans))
	}
}
