package index_test

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/content"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

var network = address.Address{Namespace: "acme", Name: "network", System: "aws"}

// networkFiles are a module's, given as names and contents in turn.
func networkFiles(prefix string) []string {
	files := []string{
		"README.md", "# Network\n\nCreates a network.\n",
		"main.tf", "variable \"cidr\" {\n  type = string\n}\nresource \"aws_vpc\" \"this\" {}\n",
		"outputs.tf", "output \"id\" {\n  value = aws_vpc.this.id\n}\n",
		"modules/subnets/main.tf", "variable \"zones\" {}\n",
		"modules/subnets/README.md", "Creates the subnets.\n",
		"examples/complete/main.tf", "module \"network\" {\n  source = \"../..\"\n}\n",
		"images/plan.png", "\x89PNG",
	}
	for i := 0; i < len(files); i += 2 {
		files[i] = prefix + files[i]
	}
	return files
}

// networks writes a module in all the ways in which it may lie in a tree, each as a
// version of its own.
func networks(t *testing.T, folders *indextest.Tree) {
	t.Helper()
	dir := "modules/acme/network/aws/"
	files := networkFiles("")
	for i := 0; i < len(files); i += 2 {
		folders.Write(dir+"1.0.0/"+files[i], files[i+1])
		folders.Write(dir+"1.1.0/network/"+files[i], files[i+1])
	}
	folders.Write(dir+"2.0.0.tar.gz", indextest.TarGz(networkFiles("./")...))
	folders.Write(dir+"2.1.0.tgz", indextest.TarGz(networkFiles("network-2.1.0/")...))
	folders.Write(dir+"3.0.0.zip", indextest.Zip(networkFiles("")...))
	folders.Write(dir+"3.1.0.zip", indextest.Zip(networkFiles("network-3.1.0/")...))
}

// A module says the same however it lies in the tree.
func TestDescribe(t *testing.T) {
	files := indextest.New(t)
	networks(t, files)
	s := scan(t, files)
	versions := s.Module(index.PlaceOf(network)).Versions
	if len(versions) != 6 {
		t.Fatalf("%d versions are offered: %+v", len(versions), s.Report().Withheld)
	}
	first, err := s.Describe(t.Context(), versions[0])
	if err != nil {
		t.Fatal(err)
	}
	if len(first.Root.Variables) != 1 || len(first.Root.Outputs) != 1 || len(first.Submodules) != 1 || len(first.Examples) != 1 || first.Root.Readme.Content == "" {
		t.Errorf("it is %+v", first)
	}
	for _, v := range versions {
		p, err := s.Describe(t.Context(), v)
		if err != nil || !reflect.DeepEqual(p, first) {
			t.Errorf("%s is %+v, %v", v.Version, p, err)
		}
		if got, want := v.Summary(), first.Summary(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s is in short %+v, not %+v", v.Version, got, want)
		}
		if again, _ := s.Describe(t.Context(), v); again != p {
			t.Errorf("%s was read twice", v.Version)
		}
	}
}

// After a restart no archive is read for its short form.
func TestSummariesOutlastARestart(t *testing.T) {
	files := indextest.New(t)
	networks(t, files)
	store := new(memoryStore)
	for _, recalled := range []int{0, 6} {
		x := index.New(index.Options{Open: files.Open, Store: store})
		s, err := x.Rescan(t.Context())
		if err != nil || s.Recalled != recalled {
			t.Fatalf("%v, %d recalled", err, s.Recalled)
		}
		for _, v := range s.Module(index.PlaceOf(network)).Versions {
			if got := v.Summary(); got.Description != "Creates a network." || !reflect.DeepEqual(got.Inputs, []string{"cidr"}) || got.Examples != 1 {
				t.Errorf("with %d recalled, %s is in short %+v", recalled, v.Version, got)
			}
		}
		x.Close()
	}
}

// Snapshots of an index share what has been read.
func TestDescriptionsOutlastASnapshot(t *testing.T) {
	files := indextest.New(t)
	networks(t, files)
	x := newIndex(t, index.Options{Open: files.Open})
	describe := func() any {
		s, err := x.Rescan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		p, err := s.Describe(t.Context(), s.Module(index.PlaceOf(network)).Version("2.0.0"))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if first := describe(); describe() != first {
		t.Error("it was read twice")
	}
}

func TestReadModuleFile(t *testing.T) {
	files := indextest.New(t)
	networks(t, files)
	dir := "modules/acme/network/aws/"
	large := strings.Repeat("x", 4<<20+1)
	files.Write(dir+"4.0.0/main.tf", "# none").Write(dir+"4.0.0/large", large).Write(dir+"4.0.0/largest", large[1:])
	files.Write(dir+"4.1.0.tar.gz", indextest.TarGz("main.tf", "# none", "large", large, "largest", large[1:], "twice", "first", "./twice", "second"))
	files.Write(dir+"4.2.0.zip", indextest.Zip("main.tf", "# none", "large", large, "largest", large[1:], "twice", "first", "./twice", "second"))
	s := scan(t, files)
	for _, v := range s.Module(index.PlaceOf(network)).Versions {
		for _, test := range []struct {
			name, content string
			want          error
		}{
			{"images/plan.png", "\x89PNG", nil},
			{"./modules/../images//plan.png", "\x89PNG", nil},
			{"images/other.png", "", fs.ErrNotExist},
			{"images", "", fs.ErrNotExist},
			{"", "", fs.ErrNotExist},
			{".", "", fs.ErrNotExist},
			{"/images/plan.png", "", fs.ErrNotExist},
			{"../2.0.0.tar.gz", "", fs.ErrNotExist},
			{"../../../../../images/plan.png", "", fs.ErrNotExist},
			{"images/plan.png\x00", "", fs.ErrNotExist},
			{"large", "", content.ErrFileTooLarge},
			{"largest", large[1:], nil},
			{"twice", "second", nil},
		} {
			if large := v.Version >= "4"; large != (test.name == "large" || test.name == "largest" || test.name == "twice") || v.Version == "4.0.0" && test.name == "twice" {
				continue
			}
			got, err := s.ReadModuleFile(t.Context(), v, test.name)
			if string(got) != test.content || !errors.Is(err, test.want) {
				t.Errorf("%s of %s is %.100q, %v", test.name, v.Version, got, err)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, v := range s.Module(index.PlaceOf(network)).Versions {
		if _, err := s.ReadModuleFile(ctx, v, "main.tf"); !errors.Is(err, context.Canceled) {
			t.Errorf("when the caller has gone, %s is %v", v.Version, err)
		}
		if _, err := s.Describe(ctx, v); !errors.Is(err, context.Canceled) {
			t.Errorf("when the caller has gone, %s is %v", v.Version, err)
		}
	}
}

// A package is described as it was verified, or not at all.
func TestChangedPackagesAreNotDescribed(t *testing.T) {
	for _, changed := range []string{"1.0.0/main.tf", "2.0.0.tar.gz", "3.0.0.zip"} {
		files := indextest.OnDisk(t, t.TempDir())
		networks(t, files)
		s := scan(t, files)
		version, _, _ := strings.Cut(changed, "/")
		v := s.Module(index.PlaceOf(network)).Version(version[:len("1.0.0")])
		files.Write("modules/acme/network/aws/"+changed, "something else")
		if _, err := s.Describe(t.Context(), v); !errors.Is(err, tree.ErrChanged) {
			t.Errorf("of %s the error is %v", changed, err)
		}
		if _, err := s.ReadModuleFile(t.Context(), v, "main.tf"); !errors.Is(err, tree.ErrChanged) {
			t.Errorf("of a file of %s the error is %v", changed, err)
		}
		files.Remove("modules/acme/network/aws/" + changed)
		if _, err := s.Describe(t.Context(), v); !errors.Is(err, tree.ErrChanged) {
			t.Errorf("of %s, removed, the error is %v", changed, err)
		}
	}
}

func TestPublished(t *testing.T) {
	dir := t.TempDir()
	files := indextest.OnDisk(t, dir)
	networks(t, files)
	files.Provider("acme/demo", "1.0.0", "linux_amd64", "darwin_arm64").Checksums()
	files.Provider("acme/demo", "1.1.0", "linux_amd64").Checksums()
	setTime := func(name string, hour int) time.Time {
		stamp := time.Date(2026, 2, 3, hour, 0, 0, 0, time.UTC)
		if err := os.Chtimes(filepath.Join(dir, name), stamp, stamp); err != nil {
			t.Fatal(err)
		}
		return stamp
	}
	setTime("modules/acme/network/aws/1.0.0/main.tf", 1)
	folder := setTime("modules/acme/network/aws/1.0.0/README.md", 2)
	packed := setTime("modules/acme/network/aws/2.0.0.tar.gz", 3)
	setTime("providers/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip", 4)
	packages := setTime("providers/acme/demo/terraform-provider-demo_1.0.0_darwin_arm64.zip", 5)
	documents := setTime("providers/acme/demo/terraform-provider-demo_1.1.0_SHA256SUMS", 6)
	s := scan(t, files)
	m := s.Module(index.PlaceOf(network))
	p := s.Provider(index.PlaceOf(ownDemo))
	for _, test := range []struct {
		rule      string
		got, want time.Time
	}{
		{"of a folder, its newest file's", m.Version("1.0.0").Published(), folder},
		{"of an archive, its own", m.Version("2.0.0").Published(), packed},
		{"of a release, its newest package's", p.Release("1.0.0").Published(), packages},
		{"of a release, its newest document's", p.Release("1.1.0").Published(), documents},
	} {
		if !test.got.Equal(test.want) {
			t.Errorf("%s: got %s, not %s", test.rule, test.got, test.want)
		}
	}
}

// A symlink in a zip has a path, and is no README.
func TestSymlinksInArchivesAreNotRead(t *testing.T) {
	files := indextest.New(t)
	files.Write("modules/acme/network/aws/1.0.0.zip", zipWithSymlink(t, "README.md", "/etc/passwd"))
	s := scan(t, files)
	v := s.Module(index.PlaceOf(network)).Version("1.0.0")
	p, err := s.Describe(t.Context(), v)
	if err != nil || p.Root.Readme.Content != "" || v.Summary().Words != "" {
		t.Errorf("got %+v, %v; in short %+v", p, err, v.Summary())
	}
	if _, err := s.ReadModuleFile(t.Context(), v, "README.md"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the error is %v", err)
	}
}

func zipWithSymlink(t *testing.T, name, target string) string {
	t.Helper()
	var b strings.Builder
	z := zip.NewWriter(&b)
	for _, f := range []struct {
		name, content string
		mode          fs.FileMode
	}{{"main.tf", "# nothing", 0o644}, {name, target, fs.ModeSymlink | 0o777}} {
		h := &zip.FileHeader{Name: f.name}
		h.SetMode(f.mode)
		w, err := z.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(f.content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// The files of a package are listed by path, each as clients have it after unpacking, and
// told apart by their content. Symlinks and names that lead out are left out.
func TestListModule(t *testing.T) {
	files := indextest.New(t)
	dir := "modules/acme/network/aws/"
	files.Write(dir+"1.0.0/main.tf", "# a").Write(dir+"1.0.0/modules/x/main.tf", "# b").Write(dir+"1.0.0/modules/x.md", "").Write(dir+"1.0.0/a b/ü.txt", "u")
	files.Write(dir+"2.0.0.tar.gz", indextest.TarGz("./main.tf", "first", "main.tf", "# a", "./b.tf", "# b", "\xff", "x"))
	files.Write(dir+"3.0.0.zip", indextest.Zip("network/main.tf", "# a", "network/modules/x/main.tf", "# b"))
	files.Write(dir+"4.0.0.zip", zipWithSymlink(t, "README.md", "/etc/passwd"))
	s := scan(t, files)
	for version, want := range map[string]string{
		"1.0.0": "a b/ü.txt 1, main.tf 3, modules/x.md 0, modules/x/main.tf 3",
		"2.0.0": "b.tf 3, main.tf 3",
		"3.0.0": "main.tf 3, modules/x/main.tf 3",
		"4.0.0": "main.tf 9",
	} {
		v := s.Module(index.PlaceOf(network)).Version(version)
		list, err := s.ListModule(t.Context(), v)
		if err != nil {
			t.Errorf("%s: %v", version, err)
			continue
		}
		var got []string
		for _, f := range list.List {
			got = append(got, fmt.Sprintf("%s %d", f.Path, f.Size))
		}
		if joined := strings.Join(got, ", "); joined != want || list.Partial {
			t.Errorf("%s has %s (partial: %t), not %s", version, joined, list.Partial, want)
		}
		if again, err := s.ListModule(t.Context(), v); again != list || err != nil {
			t.Errorf("%s was read twice, %v", version, err)
		}
		if f := list.File("main.tf"); version != "4.0.0" && (f == nil || f.Sum != wire.SHA256Of([]byte("# a"))) {
			t.Errorf("%s: main.tf is %+v", version, f)
		}
		if list.File("modules") != nil || list.File("") != nil {
			t.Errorf("%s: a folder is a file", version)
		}
	}
	first, _ := s.ListModule(t.Context(), s.Module(index.PlaceOf(network)).Version("1.0.0"))
	for folder, want := range map[string]int{"": 4, "modules": 2, "modules/x": 1, "modules/y": 0, "main.tf": 0} {
		if got := len(first.Below(folder)); got != want {
			t.Errorf("in %q are %d files, not %d", folder, got, want)
		}
	}
}

// A local file system tells when a folder was last changed, whatever times its files have been given,
// and a rename does not change this.
func TestWhenAFolderWasLastChanged(t *testing.T) {
	dir := t.TempDir()
	indextest.OnDisk(t, dir).Write("new/1.0.0/main.tf", "").Write("modules/acme/network/aws/2.0.0.tar.gz", indextest.TarGz("main.tf", ""))
	old := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	if err := os.Chtimes(filepath.Join(dir, "new/1.0.0/main.tf"), old, old); err != nil {
		t.Fatal(err)
	}
	written := time.Now()
	for time.Since(written) < 20*time.Millisecond { // a file system's clock is no finer
		runtime.Gosched()
	}
	if err := os.Rename(filepath.Join(dir, "new/1.0.0"), filepath.Join(dir, "modules/acme/network/aws/1.0.0")); err != nil {
		t.Fatal(err)
	}
	s, err := index.Scan(t.Context(), index.Options{Open: source.Directories{Root: dir}.Open})
	if err != nil {
		t.Fatal(err)
	}
	m := s.Module(index.PlaceOf(network))
	if since := m.Version("1.0.0").Archive.UnchangedSince(); since.After(written) || since.Before(old.AddDate(1, 0, 0)) {
		t.Errorf("it was last changed at %v, and written before %v", since, written)
	}
	if since := m.Version("2.0.0").Archive.UnchangedSince(); !since.IsZero() {
		t.Errorf("an archive has the time %v", since)
	}
	files := indextest.New(t)
	networks(t, files)
	if since := scan(t, files).Module(index.PlaceOf(network)).Version("1.0.0").Archive.UnchangedSince(); !since.IsZero() {
		t.Errorf("a file system that tells nothing has the time %v", since)
	}
}
