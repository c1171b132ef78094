package index_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
)

// bucketOf returns a bucket with the files of a tree.
func bucketOf(t *testing.T, build func(*indextest.Tree)) *treetest.Bucket {
	t.Helper()
	dir := t.TempDir()
	build(indextest.OnDisk(t, dir))
	b := new(treetest.Bucket)
	put(t, b, dir)
	return b
}

// put puts the files in a directory of the disk into a bucket, with their times.
func put(t *testing.T, b *treetest.Bucket, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		at, _ := filepath.Rel(dir, name)
		b.Put(filepath.ToSlash(at), string(content), info.ModTime())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// onBucket starts an index of a bucket that scans when it is told to.
func onBucket(t *testing.T, b *treetest.Bucket, change func(*index.Options)) *index.Index {
	t.Helper()
	o := options(t, nil)
	o.Listed = source.Directories{Root: "."}.Listed(b)
	if change != nil {
		change(&o)
	}
	x := newIndex(t, o)
	return x
}

func wholeTree(t *indextest.Tree) {
	t.Provider("acme/demo", "1.0.0", "linux_amd64", "darwin_arm64")
	t.Provider("registry.terraform.io/hashicorp/null", "3.2.0", "linux_amd64")
	t.Write("modules/acme/vpc/aws/1.0.0/main.tf", `variable "name" {}`)
	t.Write("modules/acme/vpc/aws/2.0.0/main.tf", `variable "region" {}`)
	t.Write("modules/acme/vpc/aws/2.0.0/modules/subnet/main.tf", `output "a" { value = 1 }`)
}

// The offers do not depend on where the tree lies.
func TestABucketOffersWhatADiskDoes(t *testing.T) {
	dir := t.TempDir()
	wholeTree(indextest.OnDisk(t, dir))
	b := new(treetest.Bucket)
	put(t, b, dir)
	o := options(t, source.Directories{Root: dir}.Open)
	disk := scanWith(t, o)
	bucket := rescan(t, onBucket(t, b, func(other *index.Options) { other.Signer = o.Signer }))
	if got, want := fmt.Sprint(bucket.Report().Offered), fmt.Sprint(disk.Report().Offered); got != want {
		t.Errorf("a bucket offers %s, a disk %s", got, want)
	}
	if len(bucket.Report().Withheld) > 0 {
		t.Errorf("withheld: %v", bucket.Report().Withheld)
	}
	for m := range bucket.Modules() {
		packed := m.Version("2.0.0").Archive
		f, err := bucket.Open(packed)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		content, err := io.ReadAll(f)
		if err != nil || sha256.Sum256(content) != packed.SHA256 {
			t.Errorf("a packed folder of a bucket: %v", err)
		}
	}
}

// A store is paid by request, and throttles clients that ask too often.
func TestRequestsOfAScan(t *testing.T) {
	b := bucketOf(t, wholeTree)
	b.Page = 2
	x := onBucket(t, b, nil)
	rescan(t, x)
	first := b.Requests()
	if pages := 2 + 2 + 1; first["list"] != pages { // providers, modules, keys
		t.Errorf("the first scan lists %d pages, want %d", first["list"], pages)
	}
	rescan(t, x)
	if again := b.Requests(); again["list"] != first["list"] || len(again) != 1 {
		t.Errorf("a scan of an unchanged bucket makes the requests %v, want listings alone", again)
	}
	before := x.Snapshot()
	x.Refresh("providers/acme/demo")
	x.Start()
	x.Next(t.Context(), before)
	if one := b.Requests(); one["list"] != 1 || len(one) != 1 {
		t.Errorf("a scan after a change in one folder makes the requests %v, want one listing", one)
	}
}

var errDown = errors.New("503 SlowDown")

// A store that fails says nothing about the files: offered versions stay offered, and the
// store is asked again.
func TestAStoreThatFails(t *testing.T) {
	const demo, other = "acme/demo 1.0.0", "acme/other 1.0.0"
	zip := func(name string) string {
		return "providers/acme/" + name + "/terraform-provider-" + name + "_1.0.0_linux_amd64.zip"
	}
	build := func(name string) func(*indextest.Tree) {
		return func(files *indextest.Tree) { files.Provider("acme/"+name, "1.0.0", "linux_amd64") }
	}
	for _, test := range []struct {
		name    string
		fails   func(operation, name string) bool
		scanned bool // the scan is not a failure as a whole
		offered []string
		pending int
	}{
		{"listing", func(operation, _ string) bool { return operation == "list" }, false, []string{demo}, 0},
		{"listing one of the parts", func(operation, name string) bool { return operation == "list" && name == "modules" }, false, []string{demo}, 0},
		{"reading a new archive", func(_, name string) bool { return name == zip("other") }, true, []string{demo}, 1},
		{"reading what has been read before", func(_, name string) bool { return name == zip("demo") }, true, []string{demo, other}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := bucketOf(t, build("demo"))
			l := newLogged(t, index.Options{Listed: source.Directories{Root: "."}.Listed(b), Signer: options(t, nil).Signer})
			rescan(t, l.Index)
			added := bucketOf(t, build("other"))
			for _, name := range added.Names() {
				content, err := fs.ReadFile(added, name)
				if err != nil {
					t.Fatal(err)
				}
				b.Put(name, string(content), time.Now())
			}
			var fails atomic.Bool
			b.Fail = func(operation, name string) error {
				if fails.Load() && test.fails(operation, name) {
					return errDown
				}
				return nil
			}
			fails.Store(true)
			for range 3 {
				if _, err := l.Rescan(t.Context()); (err == nil) != test.scanned {
					t.Fatalf("the scan ends with %v", err)
				}
			}
			s := l.Snapshot()
			if got := offeredBy(s); fmt.Sprint(got) != fmt.Sprint(test.offered) || s.Report().Pending != test.pending || len(s.Report().Withheld) > 0 {
				t.Errorf("it offers %v, with %d pending, and withholds %v", got, s.Report().Pending, s.Report().Withheld)
			}
			if n := strings.Count(l.log.String(), errDown.Error()); n > 1 || n == 0 && !(test.scanned && test.pending == 0) {
				t.Errorf("the failure is logged %d times:\n%s", n, l.log.String())
			}
			fails.Store(false)
			if got := offeredBy(rescan(t, l.Index)); len(got) != 2 {
				t.Errorf("once it works again it offers %v", got)
			}
		})
	}
}

// offeredBy returns what a snapshot offers, as ADDRESS VERSION.
func offeredBy(s *index.Snapshot) (list []string) {
	for _, o := range s.Report().Offered {
		list = append(list, o.Address+" "+o.Version)
	}
	return list
}

// A body that ends too early is not a damaged archive, which would stay withheld until its
// file changes.
func TestABodyThatEndsTooEarly(t *testing.T) {
	b := bucketOf(t, func(files *indextest.Tree) { files.Provider("acme/demo", "1.0.0", "linux_amd64") })
	cut := &truncating{Bucket: b}
	cut.on.Store(true)
	o := options(t, nil)
	o.Listed = source.Directories{Root: "."}.Listed(cut)
	x := newIndex(t, o)
	if s := rescan(t, x); s.Report().Pending != 1 || len(s.Report().Withheld) > 0 {
		t.Errorf("%d are pending, withheld are %v", s.Report().Pending, s.Report().Withheld)
	}
	cut.on.Store(false)
	if s := rescan(t, x); len(offeredBy(s)) != 1 {
		t.Errorf("read again, it is not offered: %+v", s.Report())
	}
}

// truncating is a bucket whose files end after half of their bytes.
type truncating struct {
	*treetest.Bucket
	on atomic.Bool
}

func (b *truncating) Open(name string) (fs.File, error) {
	f, err := b.Bucket.Open(name)
	if info, statErr := b.Stat(name); err == nil && statErr == nil && !info.IsDir() && b.on.Load() {
		return truncated{f.(seekable), info.Size() / 2}, nil
	}
	return f, err
}

type seekable interface {
	fs.File
	io.ReadSeeker
	io.ReaderAt
}

type truncated struct {
	seekable
	end int64
}

func (f truncated) Read(p []byte) (int, error) {
	at, err := f.Seek(0, io.SeekCurrent)
	if err != nil || at >= f.end {
		return 0, errors.Join(err, io.ErrUnexpectedEOF)
	}
	return f.seekable.Read(p[:min(int64(len(p)), f.end-at)])
}

func (f truncated) ReadAt(p []byte, at int64) (int, error) {
	if at+int64(len(p)) > f.end {
		return 0, io.ErrUnexpectedEOF
	}
	return f.seekable.ReadAt(p, at)
}

// An object that replaces another may have the same size and time, which stores keep to the
// second.
func TestAnObjectThatIsReplaced(t *testing.T) {
	const name = "modules/acme/vpc/aws/1.0.0/main.tf"
	at := time.Now().Add(-time.Hour)
	b := new(treetest.Bucket)
	b.Put(name, `variable "a" {}`, at)
	x := onBucket(t, b, nil)
	s := rescan(t, x)
	b.Put(name, `variable "b" {}`, at)
	for m := range s.Modules() {
		if _, err := s.Open(m.Version("1.0.0").Archive); !errors.Is(err, tree.ErrChanged) {
			t.Errorf("what has replaced it is opened: %v", err)
		}
	}
	old := onlyModule(s)
	if now := onlyModule(rescan(t, x)); now == old {
		t.Error("the next scan does not see it")
	}
}

// onlyModule returns the digest of the only module.
func onlyModule(s *index.Snapshot) (sum [sha256.Size]byte) {
	for m := range s.Modules() {
		sum = m.Latest().Archive.SHA256
	}
	return sum
}

// A lifecycle rule may archive old packages. That is no failure of the store, so the other
// packages are offered.
func TestAnArchivedObjectIsWithheld(t *testing.T) {
	b := bucketOf(t, wholeTree)
	const archived = "modules/acme/vpc/aws/1.5.0.tar.gz"
	b.Put(archived, indextest.TarGz("main.tf", `variable "zone" {}`), time.Now())
	b.Fail = func(operation, name string) error {
		if operation == "get" && name == archived {
			return fs.ErrPermission
		}
		return nil
	}
	s := rescan(t, onBucket(t, b, nil))
	if len(s.Report().Offered) != 4 || len(s.Report().Withheld) != 1 || s.Report().Withheld[0].Path != archived || s.Report().Pending != 0 {
		t.Errorf("offered are %v, withheld %v", s.Report().Offered, s.Report().Withheld)
	}
}
