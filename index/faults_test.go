package index_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
)

// Errors of file systems that may occur although the file exists. None of them means that a
// file does not exist.
var transient = []syscall.Errno{syscall.EIO, syscall.ESTALE, syscall.ETIMEDOUT, syscall.ENOMEM, syscall.EMFILE, syscall.EACCES}

// injected are the errors that a test lets happen. Short tests, under the race detector, have
// one of each kind: the numbers of the others take the same way.
func injected() []syscall.Errno {
	if testing.Short() {
		return []syscall.Errno{syscall.EIO, syscall.EACCES}
	}
	return transient
}

// faultyTree has each kind of folder and file that a scan reads.
func faultyTree(t *testing.T) *indextest.Tree {
	files := indextest.New(t)
	author, forger := indextest.NewPublisher(t), indextest.NewPublisher(t)
	files.Keys("acme", author)
	files.Provider("acme/forged", "1.0.0", "linux_amd64").Signed(forger)
	files.Provider("acme/demo", "1.0.0", "linux_amd64", "linux_arm64").Manifest("5.0").Signed(author)
	files.ProviderIn("providers/acme/demo/1.1.0", "demo", "1.1.0", "linux_amd64").Checksums()
	files.Write("providers/acme/demo/registry.hcl", "deprecated \"1.0.0\" {\n  reason = \"old\"\n}\n")
	files.ProviderIn("providers/registry.terraform.io/hashicorp/aws/1.0.0", "aws", "1.0.0", "linux_amd64").Checksums()
	files.ProviderIn("providers/registry.terraform.io/hashicorp/aws/1.1.0", "aws", "1.1.0", "linux_amd64").Checksums()
	files.Write("providers/registry.terraform.io/hashicorp/aws/registry.hcl", "withdrawn \"1.1.0\" {\n  reason = \"malware\"\n}\n")
	files.Write("modules/acme/vpc/aws/1.0.0/main.tf", "# a module\n")
	files.Write("modules/acme/vpc/aws/1.1.0.tar.gz", indextest.TarGz("main.tf", "# a module\n")).SourceOfTag("modules/acme/vpc/aws", "1.1.0", aCommit)
	files.Write("modules/acme/vpc/aws/1.2.0.zip", indextest.Zip("main.tf", "# a module\n"))
	files.Write("modules/acme/vpc/aws/registry.hcl", "withdrawn \"1.2.0\" {\n  reason = \"broken\"\n}\ngit {\n  url = \"https://github.com/acme/vpc\"\n}\n")
	return files
}

// listPending is the answer for a version in a list that lacks others.
const listPending = ", in a list that is pending"

// answers returns the state of each version of the faulty tree that clients see.
func answers(s *index.Snapshot) (told map[string]string) {
	told = make(map[string]string)
	tell := func(a address.Address, version string, offered bool, withdrawn []index.WithdrawnVersion) {
		key := a.String() + " " + version
		switch {
		case slices.ContainsFunc(withdrawn, func(w index.WithdrawnVersion) bool { return w.Version == version }):
			told[key] = "withdrawn"
		case s.Provider(index.PlaceOf(a)).Release(version) != nil:
			told[key] = "offered, signed by " + s.Provider(index.PlaceOf(a)).Release(version).Signature.String()
		case offered:
			told[key] = "offered"
		case s.Pending(index.PlaceOf(a), version):
			told[key] = "pending"
		default:
			told[key] = "absent"
		}
		if s.ListPending(index.PlaceOf(a)) {
			told[key] += listPending
		}
	}
	for _, a := range []address.Address{{Namespace: "acme", Name: "demo"}, {Namespace: "acme", Name: "forged"}, {Hostname: "registry.terraform.io", Namespace: "hashicorp", Name: "aws"}} {
		for _, v := range []string{"1.0.0", "1.1.0"} {
			tell(a, v, false, s.WithdrawnVersions(index.Place{Address: a, Merged: true}))
		}
	}
	for _, v := range []string{"1.0.0", "1.1.0", "1.2.0"} {
		known := s.Module(index.PlaceOf(ownVPC)).Version(v)
		tell(ownVPC, v, known != nil, s.WithdrawnVersions(index.Place{Address: ownVPC, Merged: true}))
		if known != nil {
			told["the tag of "+v] = fmt.Sprint(known.Tag != nil)
		}
	}
	return told
}

// Each single operation of a scan may fail, once or for a while: offered versions stay
// offered, withdrawn versions stay withdrawn, and no archive is read again afterwards.
func TestFaultsOfAScan(t *testing.T) {
	for _, errno := range injected() {
		for _, lasts := range []string{"once", "for a while"} {
			t.Run(fmt.Sprintf("%v %s", errno, lasts), func(t *testing.T) {
				var faults treetest.Faults
				files := faultyTree(t)
				o := options(t, faults.Open(files.Open))
				o.Workers, o.Now = 1, inAnHour
				for n := 1; ; n++ {
					x := index.New(o)
					before := rescan(t, x)
					whole := answers(before)
					faults.Once(n, errno)
					if lasts == "for a while" {
						faults.From(n, errno)
					}
					during := rescan(t, x)
					asked, failed := faults.End()
					for key, told := range answers(during) {
						if told != whole[key] && !(whole[key] == "absent" && told == "pending") {
							t.Errorf("while %v fails, %s is %s, and was %s", first(failed), key, told, whole[key])
						}
					}
					after := rescan(t, x)
					if told := answers(after); fmt.Sprint(told) != fmt.Sprint(whole) || after.Read > 0 {
						t.Errorf("after %v has failed: %v, and %d archives are read again", first(failed), told, after.Read)
					}
					x.Close()
					if len(failed) == 0 {
						t.Logf("a scan has %d operations", asked)
						return
					}
				}
			})
		}
	}
}

// A problem is reported for as long as it lasts, also while other archives of the folder are
// read one after the other.
func TestAFaultIsReportedWhileArchivesAreRead(t *testing.T) {
	var faults treetest.Faults
	files := indextest.New(t)
	release := files.Provider("acme/demo", "1.0.0", "linux_amd64").Checksums()
	g := indextest.Gate{Fs: files.Fs, Path: "demo_2.", Opened: make(chan struct{}, 2)}
	o := options(t, faults.Open(indextest.On(t, g).Open))
	o.Now = inAnHour
	r := run(t, o)
	await := func(s *index.Snapshot, offered, pending int) *index.Snapshot {
		t.Helper()
		for s == nil || len(s.Report().Offered) != offered || s.Report().Pending != pending {
			if s = r.Next(t.Context(), s); s == nil {
				t.Fatalf("there is no snapshot with %d versions offered, and %d archives pending", offered, pending)
			}
		}
		return s
	}
	<-r.Ready()
	s := await(r.Snapshot(), 1, 0)
	faults.When(func(_ int, o treetest.Operation) error {
		if strings.HasSuffix(o.Path, release.ChecksumsName()) && o.Name != "stat" {
			return syscall.EACCES
		}
		return nil
	})
	files.Write(release.ChecksumsName(), files.Read(release.ChecksumsName())+"\n")
	files.Provider("acme/demo", "2.0.0", "linux_amd64")
	files.Provider("acme/demo", "2.1.0", "linux_amd64")
	r.Changed("providers/acme/demo")
	s = await(s, 1, 2)
	for _, read := range []int{0, 1} {
		if read > 0 {
			g.Opened <- struct{}{}
			s = await(s, 2, 1)
		}
		if withheld := s.Report().Withheld; len(withheld) != 1 || withheld[0].Path != release.ChecksumsName() {
			t.Errorf("when %d archives have been read, the problems are %+v", read, withheld)
		}
	}
	close(g.Opened)
}

// Scans look for signed releases while the archives of their folder are read. They do not read
// SHA256SUMS and its signature again, which costs two requests for each release in a bucket.
func TestDocumentsAreReadOnceWhileArchivesAreRead(t *testing.T) {
	var faults treetest.Faults
	files, author := indextest.OnDisk(t, t.TempDir()), indextest.NewPublisher(t)
	files.Keys("acme", author)
	files.Provider("acme/demo", "1.0.0", "linux_amd64").Signed(author)
	g := indextest.Gate{Fs: files.Fs, Opened: make(chan struct{})} // which holds back all zips
	o := options(t, faults.Open(indextest.On(t, g).Open))
	o.Now, o.KeyCopies = inAnHour, new(indextest.KeyCopies)
	r := run(t, o)
	<-r.Ready()
	before := r.Snapshot()
	if before.Report().Pending != 1 {
		t.Fatalf("%d archives are pending, want 1", before.Report().Pending)
	}
	var read atomic.Int64
	faults.When(func(_ int, o treetest.Operation) error {
		if strings.Contains(o.Path, "_SHA256SUMS") && strings.HasPrefix(o.Name, "open") {
			read.Add(1)
		}
		return nil
	})
	r.Refresh("providers/acme/demo")
	r.Next(t.Context(), before)
	if n := read.Load(); n > 0 {
		t.Errorf("a scan has opened %d documents that were read before", n)
	}
	close(g.Opened)
}

// Each operation of the first scan may fail, too. Then there are no earlier results: a file
// that cannot be read is pending, and is absent only if the server has no right to read it.
func TestFaultsOfAStart(t *testing.T) {
	for _, errno := range injected() {
		for _, lasts := range []string{"once", "for a while"} {
			t.Run(fmt.Sprintf("%v %s", errno, lasts), func(t *testing.T) {
				var faults treetest.Faults
				files := faultyTree(t)
				o := options(t, faults.Open(files.Open))
				o.Workers, o.Now = 1, inAnHour
				whole := answers(rescan(t, index.New(o)))
				for n := 1; ; n++ {
					x := index.New(o)
					faults.Once(n, errno)
					if lasts == "for a while" {
						faults.From(n, errno)
					}
					during := rescan(t, x)
					_, failed := faults.End()
					for key, told := range answers(during) {
						told = strings.TrimSuffix(told, listPending)
						if forbidden := errno == syscall.EACCES; told != whole[key] && told != "pending" && !(forbidden && told == "absent") {
							t.Errorf("while %v fails, %s is %s, and should be %s or pending", first(failed), key, told, whole[key])
						}
					}
					if told := answers(rescan(t, x)); fmt.Sprint(told) != fmt.Sprint(whole) {
						t.Errorf("after %v has failed: %v", first(failed), told)
					}
					x.Close()
					if len(failed) == 0 {
						return
					}
				}
			})
		}
	}
}

func first(failed []treetest.Operation) string {
	if len(failed) == 0 {
		return "nothing"
	}
	return failed[0].String()
}

// A symlink that dangles or leads out of the root, or a folder that may not be read,
// preserves the version of its name, and nothing else.
func TestLastingFaults(t *testing.T) {
	outside := t.TempDir()
	for _, test := range []struct {
		rule    string
		replace string // by the fault
		kept    string // what the fault preserves
	}{
		{"a part", "providers", "acme/demo 1.0.0, acme/other 1.0.0"},
		{"a namespace", "providers/acme", "acme/demo 1.0.0, acme/other 1.0.0"},
		{"the folder of an address", "providers/acme/demo", "acme/demo 1.0.0"},
		{"the folder of a version", "providers/acme/demo/1.0.0", "acme/demo 1.0.0"},
		{"a package", "providers/acme/demo/1.0.0/" + zipName, "acme/demo 1.0.0"},
		{"SHA256SUMS", "providers/acme/demo/1.0.0/terraform-provider-demo_1.0.0_SHA256SUMS", "acme/demo 1.0.0"},
		{"modules", "modules", "acme/vpc/aws 1.0.0"},
		{"the folder of a module", "modules/acme/vpc/aws", "acme/vpc/aws 1.0.0"},
		{"a module", "modules/acme/vpc/aws/1.0.0", "acme/vpc/aws 1.0.0"},
		{"a file of a module", "modules/acme/vpc/aws/1.0.0/main.tf", "acme/vpc/aws 1.0.0"},
	} {
		for _, link := range []string{"nothing", filepath.Join(outside, "x"), outside} {
			t.Run(test.rule+" is a link to "+filepath.Base(link), func(t *testing.T) {
				root, files, o := onDisk(t)
				files.ProviderIn("providers/acme/demo/1.0.0", "demo", "1.0.0", "linux_amd64").Checksums()
				files.ProviderIn("providers/acme/other/1.0.0", "other", "1.0.0", "linux_amd64").Checksums()
				files.Write("modules/acme/vpc/aws/1.0.0/main.tf", "# a module\n")
				o.Now = inAnHour
				x := newIndex(t, o)
				before := rescan(t, x)
				if len(before.Report().Offered) != 3 {
					t.Fatalf("offered is %+v", before.Report().Offered)
				}
				at := filepath.Join(root, filepath.FromSlash(test.replace))
				if err := os.Rename(at, filepath.Join(outside, strings.ReplaceAll(t.Name(), "/", "_"))); err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(link, at); err != nil {
					t.Fatal(err)
				}
				if test.replace != "modules" && !strings.HasPrefix(test.replace, "modules/acme/vpc/aws") {
					files.Write("modules/acme/vpc/aws/1.1.0.tar.gz", indextest.TarGz("main.tf", "# a module\n")).SourceOfTag("modules/acme/vpc/aws", "1.1.0", aCommit)
				} else {
					files.ProviderIn("providers/acme/other/1.1.0", "other", "1.1.0", "linux_amd64").Checksums()
				}
				now := rescan(t, x)
				if len(now.Report().Offered) != 4 {
					t.Errorf("offered is %+v, withheld is %+v", now.Report().Offered, now.Report().Withheld)
				}
				if !slices.ContainsFunc(now.Report().Withheld, func(p index.Problem) bool {
					return strings.HasPrefix(test.replace, p.Path) && p.Reason == tree.Unreadable
				}) {
					t.Errorf("it is not reported: %+v", now.Report().Withheld)
				}
			})
		}
	}
}

// A listing may name a record that is not found a moment later, as an old one of an NFS client does.
// The version does not lose its tag for that.
func TestRecordOfATagThatIsNotFoundOnce(t *testing.T) {
	var faults treetest.Faults
	o := options(t, faults.Open(faultyTree(t).Open))
	o.Now = inAnHour
	x := newIndex(t, o)
	faults.When(func(_ int, o treetest.Operation) error {
		if o.Name == "open" && o.Path == "modules/acme/vpc/aws/"+tree.SourceName("1.1.0") {
			return syscall.ENOENT
		}
		return nil
	})
	rescan(t, x)
	if _, failed := faults.End(); len(failed) == 0 {
		t.Fatal("the record was not opened")
	}
	if v := rescan(t, x).Module(index.PlaceOf(ownVPC)).Version("1.1.0"); v == nil || v.Tag == nil {
		t.Errorf("the version is %+v", v)
	}
}

// Of a version of a module that is there twice, the other files do not take the place of those that
// clients were offered and that cannot be read at the moment.
func TestFaultsOfAModuleThatIsThereTwice(t *testing.T) {
	root, files, o := onDisk(t)
	files.Write("modules/acme/vpc/aws/1.0.0/main.tf", "# one\n")
	files.Write("modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", "# two\n"))
	o.Now = inAnHour
	x := newIndex(t, o)
	offered := func() *index.File { return rescan(t, x).Module(index.PlaceOf(ownVPC)).Version("1.0.0").Archive }
	before := offered()
	at := filepath.Join(root, "modules", filepath.FromSlash(strings.TrimPrefix(before.Path(), "modules/")))
	if err := os.Rename(at, filepath.Join(root, "away")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nothing", at); err != nil {
		t.Fatal(err)
	}
	if now := offered(); now.SHA256 != before.SHA256 {
		t.Errorf("%s was offered, and %s is, since the first cannot be read", before.Path(), now.Path())
	}
}

// Single files that an operator removes are gone. If all files vanish at once, their volume
// is not mounted, until there are files again or a rescan is requested.
func TestEmptiedParts(t *testing.T) {
	files := indextest.New(t)
	files.ProviderIn("providers/acme/demo/1.0.0", "demo", "1.0.0", "linux_amd64").Checksums()
	files.Write("modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", ""))
	files.Write("modules/acme/vpc/gcp/1.0.0.tar.gz", indextest.TarGz("main.tf", ""))
	unmounted := indextest.New(t)
	unmounted.Fs.MkdirAll("providers", 0o755)
	var volume atomic.Pointer[indextest.Tree]
	volume.Store(files)
	x := newIndex(t, options(t, func() (tree.Tree, error) { return volume.Load().Open() }))
	x.Start()
	<-x.Ready()
	offered := func() int {
		x.Hint()
		s := x.Snapshot()
		for change := x.Changed(); !s.Sees(change) || s.Totals.Pending > 0; {
			s = x.Next(t.Context(), s)
		}
		return len(s.Report().Offered)
	}
	for _, step := range []struct {
		rule    string
		do      func()
		offered int
	}{
		{"all is there", func() {}, 3},
		{"one of several is removed", func() { files.Fs.RemoveAll("modules/acme/vpc/gcp") }, 2},
		{"the volume is not mounted", func() { volume.Store(unmounted) }, 2},
		{"it still is not", func() {}, 2},
		{"it is mounted again", func() { volume.Store(files) }, 2},
		{"all modules are removed", func() { files.Fs.RemoveAll("modules/acme") }, 2},
		{"a module is put there", func() { files.Write("modules/acme/vpc/azure/1.0.0.tar.gz", indextest.TarGz("main.tf", "")) }, 2},
		{"it is removed", func() { files.Fs.RemoveAll("modules/acme") }, 2},
		{"a rescan is asked for", func() { rescan(t, x) }, 1},
	} {
		step.do()
		if n := offered(); n != step.offered {
			t.Errorf("%s: %d are offered: %+v", step.rule, n, x.Snapshot().Report().Offered)
		}
	}
	if s := rescan(t, x); s.Read > 0 {
		t.Errorf("%d archives are read again", s.Read)
	}
}
