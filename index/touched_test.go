package index_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
)

// Offered versions stay listed while their files are read again: a list without a version
// makes clients silently choose an older one.

func versionsOfVPC(s *index.Snapshot) string {
	m := s.Module(index.PlaceOf(ownVPC))
	if m == nil {
		return "none"
	}
	var versions []string
	for _, v := range m.Versions {
		versions = append(versions, v.Version)
	}
	return strings.Join(versions, " ")
}

func TestAModuleFolderThatIsTouchedStaysListed(t *testing.T) {
	dir, files, o := onDisk(t)
	files.Write("modules/acme/vpc/aws/1.0.0/main.tf", "# 1.0.0\n")
	files.Write("modules/acme/vpc/aws/1.1.0/main.tf", "# 1.1.0\n")
	var c clock
	c.set(time.Hour)
	o.Now = c.now
	x := newIndex(t, o)
	before, err := x.Rescan(t.Context())
	if err != nil || versionsOfVPC(before) != "1.1.0 1.0.0" {
		t.Fatalf("at first %s are listed, %v", versionsOfVPC(before), err)
	}

	c.set(0)
	touched := time.Now()
	if err := os.Chtimes(filepath.Join(dir, "modules/acme/vpc/aws/1.1.0/main.tf"), touched, touched); err != nil {
		t.Fatal(err)
	}
	s, err := x.Rescan(t.Context())
	if err != nil || versionsOfVPC(s) != "1.1.0 1.0.0" {
		t.Fatalf("while it is touched %s are listed, %v", versionsOfVPC(s), err)
	}
	if _, err := s.Open(s.Module(index.PlaceOf(ownVPC)).Version("1.1.0").Archive); !errors.Is(err, tree.ErrChanged) {
		t.Errorf("its archive, of which it is not known whether it is the same, gives %v", err)
	}
	if len(s.Report().Offered) != 2 || s.Report().Pending != 1 {
		t.Errorf("reported are %+v and %d pending", s.Report().Offered, s.Report().Pending)
	}
	if !s.Pending(index.PlaceOf(ownVPC), "") || s.ListPending(index.PlaceOf(ownVPC)) {
		t.Error("the list is said to be incomplete, or the archive not to be read")
	}

	c.set(time.Hour)
	s, err = x.Rescan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f, err := s.Open(s.Module(index.PlaceOf(ownVPC)).Version("1.1.0").Archive)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
}

// The same for all files that must be read again, with a fault beside them.
func TestTouchedFilesStayListed(t *testing.T) {
	files := indextest.New(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64", "linux_arm64")
	files.Provider("acme/demo", "1.1.0", "linux_amd64", "linux_arm64")
	files.Write("providers/acme/demo/terraform-provider-demo_1.1.0_darwin_arm64.zip", "no zip")
	files.Write("modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", "# 1.0.0\n"))
	files.Write("modules/acme/vpc/aws/1.1.0.zip", indextest.Zip("main.tf", "# 1.1.0\n"))
	g := indextest.Gate{Fs: files.Fs, Opened: make(chan struct{}, 1000)}
	for range 100 {
		g.Opened <- struct{}{}
	}
	o := options(t, indextest.On(t, g).Open)
	r := run(t, o)
	before := r.scan(t)

	for len(g.Opened) > 0 {
		<-g.Opened
	}
	restored := time.Date(2026, 3, 3, 3, 3, 3, 0, time.UTC)
	afero.Walk(files.Fs, ".", func(name string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			files.Fs.Chtimes(name, restored, restored)
		}
		return nil
	})
	reading := make(chan *index.Snapshot)
	go func() { // the next scan reads all files, and is blocked
		defer close(reading)
		x, _ := r.Rescan(t.Context())
		reading <- x
	}()
	during := r.Next(t.Context(), before, index.Selection{Address: ownVPC, Version: "1.0.0"}) // no gate blocks this file
	if got := versionsOfVPC(during); got != "1.1.0 1.0.0" {
		t.Errorf("of the module %s are listed", got)
	}
	if p := during.Provider(index.PlaceOf(ownDemo)); p == nil || len(p.Releases) != 2 || p.Releases[0].Version != "1.1.0" {
		t.Errorf("of the provider is offered %+v", p)
	}
	close(g.Opened)
	after := <-reading
	if !slices.EqualFunc(after.Report().Offered, before.Report().Offered, func(a, b index.Offer) bool { return a.Address == b.Address && a.Version == b.Version }) {
		t.Errorf("in the end is offered %+v", after.Report().Offered)
	}
}

// The same holds while a file is copied over an old one of its name: it is empty at first
// and then too short. A file that stays like that is withheld.
func TestFilesWrittenInPlaceStayListed(t *testing.T) {
	dir, folders, o := onDisk(t)
	folders.Write("modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", "# 1.0.0\n"))
	folders.Write("modules/acme/vpc/aws/1.1.0.tar.gz", indextest.TarGz("main.tf", "# 1.1.0\n"))
	folders.Provider("acme/demo", "1.0.0", "linux_amd64")
	folders.Provider("acme/demo", "1.1.0", "linux_amd64")
	var c stoppedClock
	c.set(time.Now().Add(time.Hour))
	o.Now = c.now
	x := newIndex(t, o)
	rescan(t, x)

	files := []string{"modules/acme/vpc/aws/1.1.0.tar.gz", "providers/acme/demo/terraform-provider-demo_1.1.0_linux_amd64.zip"}
	listed := func(s *index.Snapshot) string {
		list := "the modules " + versionsOfVPC(s) + " and the providers"
		for _, r := range s.Provider(index.PlaceOf(ownDemo)).Releases {
			list += " " + r.Version
		}
		return list
	}
	for _, size := range []int64{0, 100} {
		for _, name := range files {
			if err := os.Truncate(filepath.Join(dir, name), size); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(filepath.Join(dir, name), c.now(), c.now()); err != nil {
				t.Fatal(err)
			}
		}
		s := rescan(t, x)
		if got := listed(s); got != "the modules 1.1.0 1.0.0 and the providers 1.1.0 1.0.0" || len(s.Report().Withheld) != 2 {
			t.Errorf("with %d bytes %s are listed, and withheld is %+v", size, got, s.Report().Withheld)
		}
		if _, err := s.Open(s.Module(index.PlaceOf(ownVPC)).Version("1.1.0").Archive); !errors.Is(err, tree.ErrChanged) {
			t.Errorf("with %d bytes the archive gives %v", size, err)
		}
	}
	c.advance(time.Minute)
	if got := listed(rescan(t, x)); got != "the modules 1.0.0 and the providers 1.0.0" {
		t.Errorf("in the end %s are listed", got)
	}
}

// A folder is offered once it has not changed for a while, even if the index has just begun
// and has never seen it.
func TestAYoungModuleFolderIsWaitedFor(t *testing.T) {
	_, files, o := onDisk(t)
	files.Write("modules/acme/vpc/aws/1.0.0/main.tf", "x")
	x := newIndex(t, o)
	s, err := x.Rescan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if versionsOfVPC(s) != "none" || !s.ListPending(index.PlaceOf(ownVPC)) {
		t.Fatalf("at once %s are listed", versionsOfVPC(s))
	}
	// Another scan follows, although nothing is watched and no time between scans
	// is set.
	x.Start()
	for versionsOfVPC(s) == "none" {
		if s = x.Next(t.Context(), s, index.Selection{Address: ownVPC}); s == nil {
			t.Fatal("no scan follows")
		}
	}
}

// An edit is served in one piece, as soon as the folder has not changed for a while.
func TestAnEditedModuleFolder(t *testing.T) {
	t.Parallel()
	dir, files, o := onDisk(t)
	files.Write("modules/acme/vpc/aws/1.0.0/main.tf", "# before\n")
	files.Write("modules/acme/vpc/aws/1.0.0/modules/subnet/main.tf", "# before\n")
	o.Watch = true // scans happen only after changes
	r := run(t, o)
	r.until(t, offers("acme/vpc/aws", "1.0.0"))

	for _, name := range []string{"main.tf", "modules/subnet/main.tf", "modules/subnet/new.tf"} {
		before := r.Snapshot()
		tag := before.Module(index.PlaceOf(ownVPC)).Version("1.0.0").Archive.Tag()
		if err := os.WriteFile(filepath.Join(dir, "modules/acme/vpc/aws/1.0.0", name), []byte("# after "+name+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		s := r.until(t, func(s *index.Snapshot) bool {
			return s.Module(index.PlaceOf(ownVPC)).Version("1.0.0").Archive.Tag() != tag
		})
		f, err := s.Open(s.Module(index.PlaceOf(ownVPC)).Version("1.0.0").Archive)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		content, err := io.ReadAll(f)
		f.Close()
		if err != nil || !strings.Contains(string(content), "# after "+name) {
			t.Errorf("%s: what is served does not have the edit, %v", name, err)
		}
	}
}

// A folder from which files are being removed is not offered without them before it has not
// changed for a while, since other files may replace them.
func TestAModuleFolderThatLosesFilesHasToRest(t *testing.T) {
	dir, files, o := onDisk(t)
	files.Write("modules/acme/vpc/aws/1.0.0/main.tf", "# kept\n")
	files.Write("modules/acme/vpc/aws/1.0.0/modules/subnet/main.tf", "# kept\n")
	files.Write("modules/acme/vpc/aws/1.0.0/modules/subnet/outputs.tf", "# removed\n")
	var c stoppedClock
	c.set(time.Now().Add(time.Hour))
	o.Now = c.now
	x := newIndex(t, o)
	before := rescan(t, x).Module(index.PlaceOf(ownVPC)).Version("1.0.0").Archive.Tag()

	files.Remove("modules/acme/vpc/aws/1.0.0/modules/subnet/outputs.tf")
	removed := c.now().Add(-time.Second / 2)
	if err := os.Chtimes(filepath.Join(dir, "modules/acme/vpc/aws/1.0.0/modules/subnet"), removed, removed); err != nil {
		t.Fatal(err)
	}
	if s := rescan(t, x); s.Module(index.PlaceOf(ownVPC)).Version("1.0.0").Archive.Tag() != before || s.Report().Pending != 1 {
		t.Errorf("%d are pending, and the folder is offered as it is just now", s.Report().Pending)
	}
	c.advance(time.Hour)
	if s := rescan(t, x); s.Module(index.PlaceOf(ownVPC)).Version("1.0.0").Archive.Tag() == before || s.Report().Pending != 0 {
		t.Errorf("%d are pending, and the folder is not offered as it is", s.Report().Pending)
	}
}

// Unlike elsewhere in the tree, files whose name begins with a dot are part of a module:
// their changes are noticed as well.
func TestADotFileOfAModuleFolderIsWatched(t *testing.T) {
	t.Parallel()
	_, files, o := onDisk(t)
	files.Write("modules/acme/vpc/aws/1.0.0/main.tf", "# the module\n")
	files.Write("modules/acme/vpc/aws/1.0.0/notes.txt", "# not a part of it\n")
	files.Write("modules/acme/vpc/aws/1.0.0/modules/subnet/main.tf", "# another\n")
	o.Watch = true // scans happen only after changes
	r := run(t, o)
	s := r.until(t, offers("acme/vpc/aws", "1.0.0"))
	for _, test := range []struct{ name, content string }{
		{".terraformignore", "notes.txt\n"},
		{".terraform.lock.hcl", "# locked\n"},
		{"modules/subnet/.tflint.hcl", "# a rule\n"},
	} {
		tag := s.Module(index.PlaceOf(ownVPC)).Version("1.0.0").Archive.Tag()
		files.Write("modules/acme/vpc/aws/1.0.0/"+test.name, test.content)
		s = r.until(t, func(s *index.Snapshot) bool {
			return s.Module(index.PlaceOf(ownVPC)).Version("1.0.0").Archive.Tag() != tag
		})
	}
}

// A file that is rewritten in place and given its old time is not served under its old
// digest.
func TestAFileRewrittenUnderItsOldTime(t *testing.T) {
	dir := t.TempDir()
	files := indextest.OnDisk(t, dir)
	files.Provider("acme/demo", "1.0.0", "linux_amd64")
	files.Write("modules/acme/vpc/aws/1.0.0/main.tf", "# before\n")
	files.Write("modules/acme/vpc/aws/1.1.0.tar.gz", indextest.TarGz("main.tf", "x"))
	s := scanWith(t, options(t, source.Directories{Root: dir}.Open))
	for _, file := range []struct {
		name string
		file *index.File
	}{
		{"providers/acme/demo/" + zipName, s.Provider(index.PlaceOf(ownDemo)).Releases[0].Packages[0].File},
		{"modules/acme/vpc/aws/1.1.0.tar.gz", s.Module(index.PlaceOf(ownVPC)).Version("1.1.0").Archive},
		{"modules/acme/vpc/aws/1.0.0/main.tf", s.Module(index.PlaceOf(ownVPC)).Version("1.0.0").Archive},
	} {
		name := filepath.Join(dir, file.name)
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		f.WriteAt([]byte("?"), info.Size()/2)
		f.Close()
		if err := os.Chtimes(name, info.ModTime(), info.ModTime()); err != nil {
			t.Fatal(err)
		}
		if opened, err := s.Open(file.file); !errors.Is(err, tree.ErrChanged) {
			t.Errorf("%s: it is served, or the error is %v", file.name, err)
			if opened != nil {
				opened.Close()
			}
		}
	}
}

// Nothing marks the end of a copy into a folder: it is offered once it has not changed for a while.
// A folder that is offered need not rest again.
func TestAFolderIsOfferedOnceItRests(t *testing.T) {
	for _, test := range []struct {
		rule    string
		address address.Address
		file    string
	}{
		{"a module", ownVPC, "modules/acme/vpc/aws/%s/main.tf"},
		{"an unpacked package", ownDemo, "providers/acme/demo/%s/linux_amd64/terraform-provider-demo"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			_, files, o := onDisk(t)
			files.Write(fmt.Sprintf(test.file, "1.0.0"), "# there at the start\n")
			var c stoppedClock
			c.set(time.Now().Add(2 * time.Second)) // it has not changed for long enough by then
			o.Watch, o.Now = true, c.now
			r := run(t, o)
			r.until(t, offers(test.address.String(), "1.0.0"))

			files.Write(fmt.Sprintf(test.file, "1.1.0"), "# being copied\n")
			for _, step := range []struct {
				rule    string
				now     time.Time
				offered bool
				pending int
			}{
				{"at once", time.Now(), false, 1},
				{"when it rests", time.Now().Add(2 * time.Second), true, 0},
				{"then", time.Now(), true, 0},
			} {
				c.set(step.now)
				s, err := r.Rescan(t.Context())
				if err != nil || offers(test.address.String(), "1.1.0")(s) != step.offered || s.Pending(index.PlaceOf(test.address), "") == step.offered || s.Report().Pending != step.pending {
					t.Errorf("%s, offered is %+v, and %d are pending, %v", step.rule, s.Report().Offered, s.Report().Pending, err)
				}
			}
		})
	}
}
