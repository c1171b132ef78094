package pull_test

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
	"github.com/caddy-terraform/caddy-terraform-registry/pull/quota"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/upstreamtest"
)

// The module of the tests, and the files of its package.
var vpc = upstreamtest.VPC

const (
	moduleFolder  = "modules/" + host + "/acme/vpc/aws/"
	modulePackage = moduleFolder + "1.0.0.tar.gz"
	moduleSource  = moduleFolder + ".1.0.0.source.json"
	moduleList    = moduleFolder + ".versions.json"
	archivePath   = upstreamtest.ModuleArchivePath
)

var withModules = pull.Policy{Modules: true}

// vpcArchive returns the origin's archive, which has two modules.
func vpcArchive() string {
	return indextest.TarGz("main.tf", `variable "cidr" {}`, "README.md", "# VPC", "modules/a/main.tf", `module "b" { source = "../b" }`, "modules/b/main.tf", "", "modules/c/main.tf", "")
}

// newModules returns an origin with a module in an archive. more is appended to its
// location.
func newModules(t testing.TB, more string) *site {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir()) // nothing must be left there
	s := newAcme(t)
	s.ModuleArchive(vpcArchive(), more)
	return s
}

// fillModule fills version 1.0.0, which must succeed.
func (m *mirroring) fillModule(t testing.TB) *pull.FilledModule {
	t.Helper()
	f, err := m.FillModule(background(), vpc, "1.0.0", nil)
	if err != nil {
		t.Fatal(err)
	}
	nothingInScratch(t)
	return f
}

// mustRefuseModule checks that version 1.0.0 is not fetched, and that nothing is left.
func (m *mirroring) mustRefuseModule(t testing.TB, kind error, says string) {
	t.Helper()
	before := m.files(t)
	f, err := m.FillModule(background(), vpc, "1.0.0", nil)
	if f != nil || !errors.Is(err, kind) || !strings.Contains(err.Error(), says) {
		t.Fatalf("got %v, %v, want: %v, saying %q", f, err, kind, says)
	}
	if after := m.files(t); !slices.Equal(before, after) {
		t.Errorf("the tree had %q, and now has %q", before, after)
	}
	nothingInScratch(t)
}

// tarNames returns the names in a .tar.gz.
func tarNames(t testing.TB, content string) (names []string) {
	t.Helper()
	z, err := gzip.NewReader(strings.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			names = append(names, h.Name)
		}
	}
}

// A folder that is being copied is served when it has not changed for a while, and then
// in its present state: files that are added later are part of it.
func TestModuleFoldersThatAreBeingCopied(t *testing.T) {
	s := newModules(t, "")
	m := inMemory(t, s.Client(t, upstream.Origin{}), withModules, indextest.New(t))
	m.Write(moduleFolder+"1.0.0/main.tf", "")
	now := time.Now()
	if err := m.Fs.Chtimes(moduleFolder+"1.0.0/main.tf", now, now); err != nil {
		t.Fatal(err)
	}
	if f, err := m.FillModule(background(), vpc, "1.0.0", nil); f != nil || !errors.Is(err, tree.ErrChanged) {
		t.Fatalf("while it is being copied: got %v, %v", f, err)
	}
	if n := s.Count(upstreamtest.ModuleDownloadPath); n != 0 {
		t.Errorf("the origin was asked %d times", n)
	}
	want := []string{"main.tf"}
	m.Write(moduleFolder+"1.0.0/main.tf", "") // long ago
	for _, name := range []string{"", "outputs.tf", "variables.tf"} {
		if name != "" {
			m.Write(moduleFolder+"1.0.0/"+name, "")
			want = append(want, name)
		}
		opened, err := m.fillModule(t).Open()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(opened)
		if err != nil {
			t.Fatal(err)
		}
		if got := tarNames(t, string(content)); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		opened.Close()
	}
}

func nothingInScratch(t testing.TB) {
	t.Helper()
	if entries, err := os.ReadDir(os.TempDir()); err != nil || len(entries) > 0 {
		t.Errorf("in the folder for temporary files there is %v, %v", entries, err)
	}
}

func TestFillModule(t *testing.T) { eachTree(t, testFillModule) }

func testFillModule(t *testing.T, on treeKind) {
	for _, test := range []struct {
		rule, more, folder string
		names              []string
	}{
		{"whole", "", "", []string{"README.md", "main.tf", "modules/a/main.tf", "modules/b/main.tf", "modules/c/main.tf"}},
		{"a folder of it, and those that it calls", "//modules/a", "modules/a", []string{"modules/a/main.tf", "modules/b/main.tf"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			s := newModules(t, test.more)
			m := on.mirror(t, s.Client(t, upstream.Origin{}), withModules)
			f := m.fillModule(t)
			if f.Name != "archive.tar.gz" || f.Version != "1.0.0" || f.Folder != test.folder || !f.New {
				t.Errorf("it is %+v", f)
			}
			m.mustHave(t, modulePackage, moduleSource, moduleList)
			names := tarNames(t, m.Read(modulePackage))
			if !slices.Equal(names, test.names) {
				t.Errorf("it has %q, want %q", names, test.names)
			}
			r, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			r.Close()
			snapshot := m.scan(t)
			v := snapshot.Module(index.PlaceOf(vpc)).Version("1.0.0")
			if len(snapshot.Report().Withheld) > 0 || v == nil || v.Archive.SHA256 != f.SHA256 || v.Folder != test.folder || snapshot.Report().IgnoredTotal > 0 {
				t.Errorf("the index has %+v: %+v", v, snapshot.Report())
			}
			if again := m.fillModule(t); again.New || again.SHA256 != f.SHA256 {
				t.Errorf("once more it is %+v", again)
			}
			if known, err := m.FillModule(background(), vpc, "v1.0", snapshot.Module(index.PlaceOf(vpc))); err != nil || known.New || known.Folder != test.folder {
				t.Errorf("as the index has it, it is %+v, %v", known, err)
			}
			if n := s.Count(archivePath); n != 1 {
				t.Errorf("the archive was requested %d times", n)
			}
			if m.log.count("filled "+vpc.String()+" 1.0.0") != 1 || m.log.count("module="+vpc.String()) != 1 {
				t.Errorf("logged is %s", &m.log.text)
			}
			if got := m.log.observed(pull.PackageFilled); !slices.Equal(got, []string{""}) {
				t.Errorf("observed is %q", got)
			}
		})
	}
}

// A module is fetched once, for all clients and all instances over a tree.
func TestFillModuleOnceForAll(t *testing.T) {
	s := newModules(t, "")
	c := s.Client(t, upstream.Origin{})
	root := t.TempDir()
	var locks sync.Map
	lock := func(_ context.Context, name string) (func(), error) {
		l, _ := locks.LoadOrStore(name, new(sync.Mutex))
		l.(*sync.Mutex).Lock()
		return l.(*sync.Mutex).Unlock, nil
	}
	var all sync.WaitGroup
	for range 5 {
		m := (&mirroring{Tree: indextest.OnDisk(t, root), root: treeRoot{dir: root}}).start(t, c, pull.Options{
			Sources: sourceOf(c, withModules), Open: source.Directories{Root: root}.Open, Lock: lock,
		})
		for range 10 {
			all.Go(func() {
				if _, err := m.FillModule(background(), vpc, "1.0.0", nil); err != nil {
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
	if n := s.Count(archivePath); n != 1 {
		t.Errorf("the archive was requested %d times", n)
	}
	nothingInScratch(t)
}

// A fetch continues when the client that requested it has left.
func TestModulesComeInWithoutTheirClient(t *testing.T) {
	s := newModules(t, "")
	begun, rest := make(chan struct{}), make(chan struct{})
	packed := s.Fault(archivePath, nil)
	s.Fault(archivePath, func(w http.ResponseWriter, r *http.Request) {
		close(begun)
		<-rest
		packed(w, r)
	})
	m := onDisk(t, s.Client(t, upstream.Origin{}), withModules)
	ctx, leave := context.WithCancel(background())
	left := make(chan error)
	go func() {
		_, err := m.FillModule(ctx, vpc, "1.0.0", nil)
		left <- err
	}()
	<-begun
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("the client got %v", err)
	}
	if folder, err := m.ModuleFolder(background(), vpc, "1.0.0"); err != nil || folder != "" {
		t.Errorf("meanwhile the folder is %q, %v", folder, err)
	}
	if n := s.Count(upstreamtest.ModuleDownloadPath); n != 1 {
		t.Errorf("the origin was asked %d times where it is", n)
	}
	close(rest)
	m.fillModule(t)
	if n := s.Count(archivePath); n != 1 {
		t.Errorf("the archive was requested %d times", n)
	}
}

// A version in the tree is used, in whatever form.
func TestModulesInTheTree(t *testing.T) {
	for rule, test := range map[string]struct {
		files  []string
		folder string
	}{
		"a .zip":                         {[]string{moduleFolder + "1.0.0.zip", indextest.Zip("main.tf", "")}, ""},
		"a .tgz of a code host":          {[]string{moduleFolder + "1.0.0.tgz", indextest.TarGz("vpc/main.tf", "")}, "vpc"},
		"a folder":                       {[]string{moduleFolder + "v1.0.0/main.tf", ""}, ""},
		"a folder spelled in other case": {[]string{"modules/" + host + "/Acme/VPC/aws/1.0.0/main.tf", ""}, ""},
	} {
		t.Run(rule, func(t *testing.T) {
			s := newModules(t, "")
			folders := indextest.New(t)
			for i := 0; i < len(test.files); i += 2 {
				folders.Write(test.files[i], test.files[i+1])
			}
			m := inMemory(t, s.Client(t, upstream.Origin{}), withModules, folders)
			f := m.fillModule(t)
			if f.Folder != test.folder || !f.New {
				t.Errorf("it is %+v", f)
			}
			r, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			r.Close()
			if len(s.Asked()) > 0 {
				t.Errorf("the origin was asked: %s", s.Asked()[0].URL)
			}
		})
	}
	t.Run("a package that cannot be offered is not replaced", func(t *testing.T) {
		s := newModules(t, "")
		folders := indextest.New(t).Write(modulePackage, "broken")
		inMemory(t, s.Client(t, upstream.Origin{}), withModules, folders).mustRefuseModule(t, pull.ErrConflict, "cannot offer it")
	})
	t.Run("empty files that nobody writes to are replaced", func(t *testing.T) {
		s := newModules(t, "")
		folders := indextest.New(t).Write(modulePackage, "").Write(moduleSource, "")
		m := inMemory(t, s.Client(t, upstream.Origin{}), withModules, folders)
		m.fillModule(t)
		if snapshot := m.scan(t); len(snapshot.Module(index.PlaceOf(vpc)).Versions) != 1 || m.Read(moduleSource) == "" {
			t.Errorf("the index has %+v", snapshot.Report())
		}
	})
	for _, name := range []string{modulePackage, moduleSource} {
		t.Run("somebody is about to write "+name, func(t *testing.T) {
			s := newModules(t, "")
			folders := indextest.New(t).Write(name, "")
			now := time.Now()
			if err := folders.Fs.Chtimes(name, now, now); err != nil {
				t.Fatal(err)
			}
			m := inMemory(t, s.Client(t, upstream.Origin{}), withModules, folders)
			if filled, err := m.FillModule(background(), vpc, "1.0.0", nil); filled != nil || !errors.Is(err, tree.ErrReserved) {
				t.Errorf("got %+v, %v", filled, err)
			}
			if got := folders.Read(name); got != "" {
				t.Errorf("it has become %q", got)
			}
		})
	}
	t.Run("a further version comes beside it", func(t *testing.T) {
		s := newModules(t, "")
		folders := indextest.New(t).Write("modules/"+host+"/Acme/VPC/aws/0.9.0.zip", indextest.Zip("main.tf", ""))
		m := inMemory(t, s.Client(t, upstream.Origin{}), withModules, folders)
		m.fillModule(t)
		if snapshot := m.scan(t); len(snapshot.Module(index.PlaceOf(vpc)).Versions) != 2 || len(snapshot.Report().Withheld) > 0 {
			t.Errorf("the index has %+v", snapshot.Report())
		}
	})
}

// Each reason for not mirroring a module has its own error, and a correct sentence.
func TestModulesThatAreNotMirrored(t *testing.T) {
	const withdrawal = `withdrawn "1.0.0" { reason = "it is broken" }`
	deny, err := pull.ParsePattern("acme/*/aws")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		rule    string
		policy  pull.Policy
		address address.Address
		version string
		before  func(s *site, folders *indextest.Tree)
		kind    error
		says    string
	}{
		{"modules are not", pull.Policy{}, vpc, "1.0.0", nil, pull.ErrNotMirrored, "it is not mirrored"},
		{"the hostname is not", withModules, vpc.WithHostname("other.example.com"), "1.0.0", nil, pull.ErrNotMirrored, "it is not mirrored"},
		{"it is a provider", withModules, demo, "1.0.0", nil, pull.ErrNotMirrored, "it is not mirrored"},
		{"that is no version", withModules, vpc, "latest", nil, pull.ErrNotMirrored, "it is not mirrored"},
		{"it is denied", pull.Policy{Modules: true, Deny: []address.Pattern{deny}}, vpc, "1.0.0", nil, pull.ErrExcluded, "the configuration of this mirror excludes it"},
		{"it is too young", pull.Policy{Modules: true, MinAge: time.Hour}, vpc, "1.0.0", nil, pull.ErrTooYoung, "published too recently"},
		{"the version does not exist", withModules, vpc, "9.0.0", nil, pull.ErrUnlisted, "version 9.0.0: its registry does not list the version"},
		{"the module does not exist", withModules, address.Address{Hostname: host, Namespace: "acme", Name: "other", System: "aws"}, "1.0.0", nil, upstream.ErrNotFound, "answered 404"},
		{"it is withdrawn", withModules, vpc, "1.0.0", func(_ *site, folders *indextest.Tree) { folders.Write(moduleFolder+"registry.hcl", withdrawal) }, pull.ErrWithdrawn, "withdrawn here"},
		{"its registry is down", withModules, vpc, "1.0.0", func(s *site, _ *indextest.Tree) { s.Fault(upstreamtest.ModuleVersionsPath, status(503)) }, upstream.ErrUnavailable, "answered 503"},
		{"its registry does not say where it is", withModules, vpc, "1.0.0", func(s *site, _ *indextest.Tree) { s.Fault(upstreamtest.ModuleDownloadPath, status(204)) }, upstream.ErrMalformed, "does not say where"},
		{"its files are not there", withModules, vpc, "1.0.0", func(s *site, _ *indextest.Tree) { s.Fault(archivePath, status(404)) }, upstream.ErrMalformed, "not there"},
		{"there is no module in it", withModules, vpc, "1.0.0", func(s *site, _ *indextest.Tree) { s.ModuleArchive(indextest.TarGz("README.md", "x"), "") }, upstream.ErrMalformed, "version 1.0.0 of the module: there is no .tf file in it"},
		{"there is no module in its folder", withModules, vpc, "1.0.0", func(s *site, _ *indextest.Tree) { s.ModuleArchive(vpcArchive(), "//modules") }, nil, ""},
		{"it cannot be read", withModules, vpc, "1.0.0", func(s *site, _ *indextest.Tree) { s.ModuleArchive(vpcArchive()[:100], "") }, upstream.ErrMalformed, ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			s := newModules(t, "")
			folders := indextest.New(t)
			if test.before != nil {
				test.before(s, folders)
			}
			m := inMemory(t, s.Client(t, upstream.Origin{}), test.policy, folders)
			before := m.files(t)
			f, err := m.FillModule(background(), test.address, test.version, nil)
			if test.kind == nil {
				if err != nil {
					t.Errorf("got %v", err)
				}
				return
			}
			if f != nil || !errors.Is(err, test.kind) || !strings.Contains(err.Error(), test.says) {
				t.Fatalf("got %v, %v", f, err)
			}
			asked := len(s.Asked())
			if _, again := m.FillModule(background(), test.address, test.version, nil); again == nil || again.Error() != err.Error() || len(s.Asked()) != asked {
				t.Errorf("once more the error is %v, after %d requests", again, len(s.Asked())-asked)
			}
			after := slices.DeleteFunc(m.files(t), func(name string) bool { return name == moduleList })
			if !slices.Equal(before, after) {
				t.Errorf("the tree has %q", after)
			}
			nothingInScratch(t)
			if pull.Reason(err) == "other" {
				t.Error("it has no reason for metrics")
			}
		})
	}
}

// A version that has changed is refused, whether it is still in the tree or not.
func TestModulesThatHaveMoved(t *testing.T) { eachTree(t, testModulesThatHaveMoved) }

func testModulesThatHaveMoved(t *testing.T, on treeKind) {
	s := newModules(t, "")
	c := s.Client(t, upstream.Origin{})
	root := on.root(t)
	first := over(t, c, withModules, root)
	kept := first.fillModule(t)
	source := first.Read(moduleSource)
	s.ModuleArchive(indextest.TarGz("main.tf", "# moved"), "")

	m := over(t, c, withModules, root)
	if again := m.fillModule(t); again.SHA256 != kept.SHA256 || s.Count(archivePath) != 1 {
		t.Errorf("the one in the tree became %+v", again)
	}
	m.Remove(modulePackage)
	m = over(t, c, withModules, root)
	for range 3 {
		m.mustRefuseModule(t, pull.ErrConflict, "the version in the tree differs from the origin's: it was an archive with the sha256 ")
	}
	if m.Read(moduleSource) != source {
		t.Error("the record has changed")
	}
	if n := m.log.count("could not be mirrored"); n != 1 {
		t.Errorf("it is logged %d times", n)
	}
	s.ModuleArchive(vpcArchive(), "")
	if again := over(t, c, withModules, root).fillModule(t); again.SHA256 != kept.SHA256 {
		t.Errorf("the package after the tag has moved back is %+v", again)
	}
	if m.Read(moduleSource) != source {
		t.Error("the record has changed")
	}
}

// If the registry or the store failed before a package was in the tree, no client has
// received the package: the version may have changed by now.
func TestModulesThatHaveMovedBeforeTheyWereThere(t *testing.T) {
	s := newModules(t, "")
	c := s.Client(t, upstream.Origin{})
	root := treeKind{bucket: true}.root(t)
	failing := func(name string, from int) {
		puts := 0
		root.bucket.Fail = func(operation, put string) error {
			if operation != "put" || put != name {
				return nil
			}
			if puts++; puts < from {
				return nil
			}
			return errors.New("503 SlowDown")
		}
	}
	failing(modulePackage, 1)
	if _, err := over(t, c, withModules, root).FillModule(background(), vpc, "1.0.0", nil); !errors.Is(err, tree.ErrStore) {
		t.Fatal(err)
	}
	s.ModuleArchive(indextest.TarGz("main.tf", "# moved"), "")
	failing(moduleSource, 2) // after the package was written
	m := over(t, c, withModules, root)
	kept := m.fillModule(t)

	// The record counts because the package is there, although the record is still
	// pending.
	root.bucket.Fail = nil
	if again := over(t, c, withModules, root).fillModule(t); again.SHA256 != kept.SHA256 {
		t.Errorf("the one in the tree became %+v", again)
	}
	m.Remove(modulePackage)
	s.ModuleArchive(vpcArchive(), "")
	over(t, c, withModules, root).mustRefuseModule(t, pull.ErrConflict, "differs from the origin's")
}

// A store that has written a package may say that it was there before. The record is complete nevertheless.
func TestModulesWhoseCreationIsNotAnswered(t *testing.T) {
	s := newModules(t, "")
	root := treeKind{bucket: true}.root(t)
	root.bucket.Lose = func(operation, name string) error {
		if operation == "put" && name == modulePackage {
			return fs.ErrExist
		}
		return nil
	}
	m := over(t, s.Client(t, upstream.Origin{}), withModules, root)
	m.fillModule(t)
	if record := m.Read(moduleSource); strings.Contains(record, "pending") {
		t.Errorf("the record is %s", record)
	}
}

// A record that is pending although its package is there is completed when the list of versions is renewed:
// the package itself is answered from the index. It then protects the version, also without the package.
func TestPendingRecordsAreCompleted(t *testing.T) {
	for _, rule := range []string{"after the process was killed", "after the record could not be written"} {
		t.Run(rule, func(t *testing.T) {
			s := newModules(t, "")
			s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
				var faults treetest.Faults
				m := faulty(t, c, withModules, indextest.New(t), &faults)
				defer func() { m.Close() }()
				if _, err := m.Versions(background(), vpc); err != nil {
					t.Fatal(err)
				}
				var packaged atomic.Bool
				faults.When(func(_ int, o treetest.Operation) error {
					if o.Path == modulePackage && o.Name != "stat" && o.Name != "open" {
						packaged.Store(true)
					}
					if packaged.Load() && o.Path == moduleSource && o.Name == "rename" {
						return syscall.EIO
					}
					return nil
				})
				if _, err := m.FillModule(background(), vpc, "1.0.0", nil); err != nil {
					t.Fatal(err)
				}
				faults.End()
				if record := m.Read(moduleSource); !strings.Contains(record, "pending") {
					t.Fatalf("the record is %s", record)
				}
				if rule == "after the process was killed" {
					m.Close()
					m = inMemory(t, c, withModules, m.Tree)
				}
				present := m.scan(t).Module(index.PlaceOf(vpc))
				time.Sleep(time.Hour)
				if _, err := m.FillModule(background(), vpc, "1.0.0", present); err != nil {
					t.Fatal(err)
				}
				if _, err := m.CurrentVersions(background(), vpc); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if record := m.Read(moduleSource); strings.Contains(record, "pending") {
					t.Fatalf("the record is %s", record)
				}
				m.Remove(modulePackage)
				s.ModuleArchive(indextest.TarGz("main.tf", "# moved"), "")
				m.mustRefuseModule(t, pull.ErrConflict, "differs from the origin's")
			})
		})
	}
}

// A record that is pending although its package is there counts when the module is checked.
func TestPendingRecordsAreChecked(t *testing.T) {
	s := newModules(t, "//modules/a?archive=tar.gz")
	m := onDisk(t, s.Client(t, upstream.Origin{}), withModules)
	m.fillModule(t)
	m.Write(moduleSource, strings.Replace(m.Read(moduleSource), "\n}", ",\n  \"pending\": true\n}", 1))
	s.ModuleArchive(vpcArchive(), "//modules/b?archive=tar.gz&checksum=sha256:"+sumOf(vpcArchive()))
	if err := m.CheckModule(background(), vpc, "1.0.0"); !errors.Is(err, pull.ErrConflict) {
		t.Errorf("got %v", err)
	}
	if record := m.Read(moduleSource); strings.Contains(record, "pending") {
		t.Errorf("the record is %s", record)
	}
}

// Without a readable record, nothing shows whether a version has moved.
func TestModulesWithADamagedRecord(t *testing.T) { eachTree(t, testModulesWithADamagedRecord) }

func testModulesWithADamagedRecord(t *testing.T, on treeKind) {
	s := newModules(t, "")
	c := s.Client(t, upstream.Origin{})
	root := on.root(t)
	m := over(t, c, withModules, root)
	m.fillModule(t)
	m.Remove(modulePackage)
	m.Write(moduleSource, "{")
	m = over(t, c, withModules, root)
	m.mustRefuseModule(t, pull.ErrConflict, "is damaged: to fetch it again, remove .VERSION.source.json from its folder")
	if got := m.Read(moduleSource); got != "{" {
		t.Errorf("the record has become %q", got)
	}
}

func TestModulesStayWithinTheQuota(t *testing.T) {
	s := newModules(t, "")
	c := s.Client(t, upstream.Origin{})
	for _, test := range []struct {
		rule string
		max  int64
		free int64
		kind error
		asks int // how often the archive is requested
	}{
		{"there is more in the tree already", 1000, 1 << 40, quota.ErrMaxHeld, 0},
		{"the free part of it is smaller than the module", 20_001, 1 << 40, quota.ErrMaxHeld, 1},
		{"it is large enough", 1 << 30, 1 << 40, nil, 1},
		{"the disk is full", 1 << 30, 1000, tree.ErrDiskFull, 0},
	} {
		t.Run(test.rule, func(t *testing.T) {
			before := s.Count(archivePath)
			defer func() {
				if asks := s.Count(archivePath) - before; asks != test.asks {
					t.Errorf("the archive is requested %d times", asks)
				}
			}()
			folders := indextest.New(t).Write("providers/"+host+"/a/b/x", strings.Repeat("x", 10_000)).Write("modules/"+host+"/a/b/c/x", strings.Repeat("x", 10_000))
			source := sourceOf(c, withModules)
			changed := source[host]
			changed.Quota = quota.New(test.max, []svchost.Hostname{host})
			source[host] = changed
			m := (&mirroring{Tree: folders}).start(t, c, pull.Options{
				Sources: source, Open: folders.Open,
				FreeSpace: func(a address.Address) (int64, error) {
					if a != vpc {
						t.Errorf("the space for %v is asked for", a)
					}
					return test.free, nil
				},
			})
			if test.kind == nil {
				m.fillModule(t)
				return
			}
			m.mustRefuseModule(t, test.kind, "")
		})
	}
}

func TestReadOnlyFillersFetchNoModules(t *testing.T) {
	s := newModules(t, "")
	c := s.Client(t, upstream.Origin{})
	folders := indextest.New(t)
	m := (&mirroring{Tree: folders}).start(t, c, pull.Options{Sources: sourceOf(c, withModules), Open: folders.Open, ReadOnly: true})
	m.mustRefuseModule(t, pull.ErrWouldFill, "")
	if n := s.Count(archivePath); n != 0 {
		t.Errorf("the archive was requested %d times", n)
	}
}

// The folder of a module in its package is known before the package is there.
func TestModuleFolder(t *testing.T) {
	s := newModules(t, "//modules/a")
	s.Fault(archivePath, status(503))
	m := onDisk(t, s.Client(t, upstream.Origin{}), withModules)
	for range 3 {
		if folder, err := m.ModuleFolder(background(), vpc, "1.0.0"); err != nil || folder != "modules/a" {
			t.Errorf("got %q, %v", folder, err)
		}
	}
	if n := s.Count(upstreamtest.ModuleDownloadPath); n != 1 {
		t.Errorf("the origin was asked %d times", n)
	}
	for range 3 {
		if _, err := m.ModuleFolder(background(), vpc, "2.0.0"); !errors.Is(err, pull.ErrUnlisted) {
			t.Errorf("of a version that does not exist it is %v", err)
		}
	}
	if _, err := m.ModuleFolder(background(), demo, "1.0.0"); !errors.Is(err, pull.ErrNotMirrored) {
		t.Errorf("of a provider it is %v", err)
	}
	m.mustHave(t)
}

// Once an origin has listed a module, its list outlives an outage and a restart. The
// folder that clients receive before a package is in the tree is the folder that the
// index returns later: the origin's folder, even if the only folder of an archive looks
// like the module.
func TestModulesWithoutConfigurationAtTheRoot(t *testing.T) {
	s := newModules(t, "")
	s.ModuleArchive(indextest.TarGz("vpc-1.0.0/main.tf", "", "vpc-1.0.0/modules/a/main.tf", ""), "")
	m := onDisk(t, s.Client(t, upstream.Origin{}), withModules)
	folder, err := m.ModuleFolder(background(), vpc, "1.0.0")
	if err != nil {
		t.Fatal(err)
	}
	f := m.fillModule(t)
	if v := m.scan(t).Module(index.PlaceOf(vpc)).Version("1.0.0"); folder != "" || f.Folder != folder || v.Folder != folder {
		t.Errorf("it is in %q, %q, %q", folder, f.Folder, v.Folder)
	}
}

func TestListsOfModules(t *testing.T) {
	s := newModules(t, "")
	s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
		folders := indextest.New(t)
		m := inMemory(t, c, withModules, folders)
		m.fillModule(t)
		m.Close()
		s.Fault(upstreamtest.ModuleVersionsPath, status(503))
		time.Sleep(time.Hour)
		again := inMemory(t, c, withModules, folders)
		defer again.Close()
		o, err := again.Versions(background(), vpc)
		if err != nil || listedIn(o) != "1.0.0" || !o.Stale {
			t.Errorf("got %+v, %v", o, err)
		}
		synctest.Wait()
	})
}

// An origin that takes long to say where the archive is has not made the link old.
func TestASlowOriginIsAskedOnceForALink(t *testing.T) {
	s := newModules(t, "")
	asked := 0
	s.Fault(upstreamtest.ModuleDownloadPath, func(w http.ResponseWriter, r *http.Request) {
		asked++
		time.Sleep(16 * time.Second)
		upstreamtest.Location(archivePath)(w, r)
	})
	s.InBubble(t, upstream.Origin{Timeout: time.Minute}, func(t *testing.T, c *upstream.Client) {
		m := inMemory(t, c, withModules, indextest.New(t))
		defer m.Close()
		m.fillModule(t)
	})
	if asked != 1 {
		t.Errorf("it is asked %d times", asked)
	}
}

// Registries sign the links to archives, some for half a minute. A module may wait longer than that for a
// slot, and then is fetched by a new link.
func TestModulesThatHaveWaitedAreFetchedByANewLink(t *testing.T) {
	s := newModules(t, "")
	s.Fault(upstreamtest.ModuleDownloadPath, func(w http.ResponseWriter, r *http.Request) {
		upstreamtest.Location(archivePath+"?until="+time.Now().Add(30*time.Second).UTC().Format("150405"))(w, r)
	})
	s.Fault(archivePath, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("until") < time.Now().UTC().Format("150405") {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		upstreamtest.Content(vpcArchive())(w, r)
	})
	s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
		m := inMemory(t, c, withModules, indextest.New(t))
		defer m.Close()
		var releases []func()
		for range upstream.MaxDownloads {
			release, err := c.ReserveDownload(background())
			if err != nil {
				t.Fatal(err)
			}
			releases = append(releases, release)
		}
		var all sync.WaitGroup
		all.Go(func() { m.fillModule(t) })
		time.Sleep(time.Minute)
		for _, release := range releases {
			release()
		}
		all.Wait()
	})
}

// A package that is copied into the tree at the moment at which the fetched one gets its name counts. The
// fetched one is removed.
func TestModulesThatAreCopiedAtTheLastMoment(t *testing.T) {
	zipped := indextest.Zip("copied.tf", "")
	s := newModules(t, "")
	folders := indextest.New(t)
	var faults treetest.Faults
	m := faulty(t, s.Client(t, upstream.Origin{}), withModules, folders, &faults)
	faults.When(func(_ int, o treetest.Operation) error {
		if o.Path == modulePackage && o.Name != "stat" && o.Name != "open" && o.Name != "remove" {
			m.Write(moduleFolder+"1.0.0.zip", zipped)
		}
		return nil
	})
	f, err := m.FillModule(background(), vpc, "1.0.0", nil)
	if err != nil || m.content(t, &f.Filled) != zipped {
		t.Errorf("got %v, %v", f, err)
	}
	if names := m.files(t); slices.Contains(names, modulePackage) || !slices.Contains(names, moduleFolder+"1.0.0.zip") {
		t.Errorf("the tree has %q", names)
	}
}
