package pull_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

// A filled tree can be served without a Filler.
func TestFill(t *testing.T) {
	folders, publisher := acme(t)
	s := newSite(t, folders)
	m := onDisk(t, s.Client(t, upstream.Origin{}), pull.Policy{})

	f := m.fill(t, linuxZip)
	want := folders.Read("providers/acme/demo/" + linuxZip)
	if m.content(t, f) != want || f.Size != int64(len(want)) || f.Name != linuxZip || f.Version != "1.0.0" || f.Platform != "linux_amd64" {
		t.Errorf("got %+v", f)
	}
	m.mustHave(t, directory+linuxZip, directory+sums, directory+sums+".sig", keysFile, record)

	p := m.scan(t).Provider(index.PlaceOf(demo))
	if p == nil || p.File(linuxZip) == nil || p.File(linuxZip).SHA256 != f.SHA256 {
		t.Fatalf("the index offers %+v", p)
	}
	r := p.Release("1.0.0")
	if len(r.Signature.Keys) != 1 || r.Signature.Keys[0].ID != publisher.ID() {
		t.Errorf("it is signed by %+v", r.Signature.Keys)
	}
	if missing := r.Missing(); len(missing) != 1 || missing[0].URL != darwinZip {
		t.Errorf("got missing %+v", missing)
	}
	if !m.remembers(linuxZip) {
		t.Error("it is not remembered")
	}
	if info, err := os.Stat(filepath.Join(m.root.dir, directory, linuxZip)); err != nil || info.Mode().Perm()&0o644 != 0o644 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
	if got := m.log.observed(pull.PackageFilled); len(got) != 1 || got[0] != "" {
		t.Errorf("observed %q", got)
	}
	m.fill(t, linuxZip) // already there
	if n := m.log.count("filled registry.example.com/acme/demo 1.0.0 linux_amd64"); n != 1 {
		t.Errorf("it is logged %d times:\n%s", n, &m.log.text)
	}
}

// Each file is fetched once, however many clients request it.
func TestFillOnceForAll(t *testing.T) { eachTree(t, testFillOnceForAll) }

func testFillOnceForAll(t *testing.T, on treeKind) {
	s := newAcme(t)
	m := on.mirror(t, s.Client(t, upstream.Origin{}), pull.Policy{})
	var all sync.WaitGroup
	for range 50 {
		for _, name := range []string{linuxZip, darwinZip} {
			all.Go(func() {
				if f, err := m.Fill(background(), demo, name); err != nil || f.Name != name {
					t.Errorf("got %v, %v", f, err)
				}
			})
		}
	}
	all.Wait()
	for _, path := range []string{zipFile, files + darwinZip, sumsFile, sigFile, versions} {
		if n := s.Count(path); n != 1 {
			t.Errorf("%s was requested %d times", path, n)
		}
	}
}

// A caller that looked into memory just before the flight of another caller landed gets its result.
func TestReleaseOnceForLateCallers(t *testing.T) {
	for _, test := range []struct {
		name string
		err  error
	}{
		{"a release is not requested again", nil},
		{"neither is a release that is refused", upstream.ErrUnavailable},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newAcme(t)
			if test.err != nil {
				s.Fault(sumsFile, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
			}
			m := onDisk(t, s.Client(t, upstream.Origin{}), pull.Policy{})
			_, first := m.Available(background(), demo, "1.0.0")
			before := s.Count(sumsFile)
			late := pull.ReleaseMissed(background(), m.Filler, demo, "1.0.0")
			if !errors.Is(first, test.err) || !errors.Is(late, test.err) {
				t.Errorf("got %v, then %v", first, late)
			}
			if n := s.Count(sumsFile); before == 0 || n != before {
				t.Errorf("%s was requested %d times, then %d times", sumsFile, before, n)
			}
		})
	}
}

// Instances that share a tree and a lock fetch a file once between them.
func TestInstancesFillOnce(t *testing.T) { eachTree(t, testInstancesFillOnce) }

func testInstancesFillOnce(t *testing.T, on treeKind) {
	s := newAcme(t)
	c := s.Client(t, upstream.Origin{})
	root := on.root(t)
	var locks sync.Map
	lock := func(_ context.Context, name string) (func(), error) {
		l, _ := locks.LoadOrStore(name, new(sync.Mutex))
		l.(*sync.Mutex).Lock()
		return l.(*sync.Mutex).Unlock, nil
	}
	var all sync.WaitGroup
	for range 5 {
		m := (&mirroring{Tree: root.tree(t), root: root}).start(t, c, pull.Options{
			Sources: sourceOf(c, pull.Policy{}), Open: root.open, Lock: lock,
		})
		for _, name := range []string{linuxZip, darwinZip} {
			all.Go(func() { m.fill(t, name) })
		}
	}
	all.Wait()
	if n, o := s.Count(zipFile), s.Count(files+darwinZip); n != 1 || o != 1 {
		t.Errorf("the packages were requested %d and %d times", n, o)
	}
}

// An unavailable lock costs work, and nothing else.
func TestFillWithoutItsLock(t *testing.T) {
	s := newAcme(t)
	c := s.Client(t, upstream.Origin{})
	folders := indextest.New(t)
	m := (&mirroring{Tree: folders}).start(t, c, pull.Options{
		Sources: sourceOf(c, pull.Policy{}), Open: folders.Open,
		Lock: func(context.Context, string) (func(), error) { return nil, errors.New("the storage is down") },
	})
	m.fill(t, linuxZip)
	if m.log.count("not available") == 0 {
		t.Error("nothing is logged")
	}
}

// A storage that hangs keeps fills for a while, and not for ever. Fills do not wait one after the other.
func TestFillsWhoseLockHangs(t *testing.T) {
	var hang chan struct{} // closed at the end of the bubble
	for _, test := range []struct {
		rule string
		lock func(ctx context.Context) (unlock func(), err error)
		logs int
	}{
		{"when it is taken", func(ctx context.Context) (func(), error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, 4},
		{"when it is given back", func(context.Context) (func(), error) { return func() { <-hang }, nil }, 0},
	} {
		t.Run(test.rule, func(t *testing.T) {
			s := newAcme(t)
			s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
				folders := indextest.New(t)
				hang = make(chan struct{})
				defer close(hang)
				m := (&mirroring{Tree: folders}).start(t, c, pull.Options{
					Sources: sourceOf(c, pull.Policy{}), Open: folders.Open,
					Lock: func(ctx context.Context, _ string) (func(), error) { return test.lock(ctx) },
				})
				defer m.Close()
				began := time.Now()
				var all sync.WaitGroup
				for _, name := range []string{linuxZip, darwinZip} {
					all.Go(func() { m.fill(t, name) })
				}
				all.Wait()
				if took := time.Since(began); took >= 6*time.Minute {
					t.Errorf("it took %s", took)
				}
				if n := m.log.count("not available"); n != test.logs {
					t.Errorf("there are %d lines about it", n)
				}
			})
		})
	}
}

// A fill continues when the client that requested it has left.
func TestFillsGoOnWithoutTheirClient(t *testing.T) {
	s := newAcme(t)
	begun, rest := make(chan struct{}), make(chan struct{})
	s.Fault(zipFile, func(w http.ResponseWriter, r *http.Request) {
		close(begun)
		<-rest
		s.Handler.ServeHTTP(w, r)
	})
	m := onDisk(t, s.Client(t, upstream.Origin{}), pull.Policy{})
	ctx, leave := context.WithCancel(background())
	left := make(chan error)
	go func() {
		_, err := m.Fill(ctx, demo, linuxZip)
		left <- err
	}()
	<-begun
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	close(rest)
	m.fill(t, linuxZip)
	if n := s.Count(zipFile); n != 1 {
		t.Errorf("it was requested %d times", n)
	}
}

// Close interrupts fills, which leave nothing behind.
func TestClosingEndsFills(t *testing.T) {
	s := newAcme(t)
	begun := make(chan struct{})
	s.Fault(zipFile, func(w http.ResponseWriter, r *http.Request) {
		w.Write([]byte("PK"))
		w.(http.Flusher).Flush()
		close(begun)
		<-r.Context().Done()
	})
	m := onDisk(t, s.Client(t, upstream.Origin{}), pull.Policy{})
	ended := make(chan error)
	go func() {
		_, err := m.Fill(background(), demo, linuxZip)
		ended <- err
	}()
	<-begun
	m.Close()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	m.mustHave(t)
}

// noise does not compress.
func noise(size int) string {
	b := make([]byte, size)
	rand.NewChaCha8([32]byte{}).Read(b)
	return string(b)
}

func TestFillIsWatched(t *testing.T) {
	folders := indextest.New(t)
	publisher := indextest.NewPublisher(t)
	large := indextest.Zip("terraform-provider-demo", noise(1<<20))
	release := folders.Provider("acme/demo", "1.0.0", "linux_amd64")
	folders.Write("providers/acme/demo/"+linuxZip, large)
	release.Signed(publisher)
	folders.Keys("acme", publisher)
	s := newSite(t, folders)
	m := onDisk(t, s.Client(t, upstream.Origin{}), pull.Policy{})
	var heard []int64
	var announced int64
	if _, err := m.Filler.Fill(background(), demo, linuxZip, nil, pull.FillOptions{Progress: func(n, size int64) { heard, announced = append(heard, n), size }}); err != nil {
		t.Fatal(err)
	}
	if len(heard) < 2 || heard[len(heard)-1] != int64(len(large)) {
		t.Errorf("called %d times, at last with %v of %d bytes", len(heard), heard[len(heard)-1], len(large))
	}
	if announced != int64(len(large)) {
		t.Errorf("its size is announced as %d", announced)
	}
}

// The documents of a release are available to chained mirrors before its packages
// are in the tree. They are not written without a package.
func TestDocumentsOfAReleaseThatIsNotInTheTree(t *testing.T) {
	eachTree(t, testDocumentsOfAReleaseThatIsNotInTheTree)
}

func testDocumentsOfAReleaseThatIsNotInTheTree(t *testing.T, on treeKind) {
	folders, _ := acme(t)
	m := on.mirror(t, newSite(t, folders).Client(t, upstream.Origin{}), pull.Policy{})
	for _, name := range []string{sums, sums + ".sig"} {
		if got := m.content(t, m.fill(t, name)); got != folders.Read("providers/acme/demo/"+name) {
			t.Errorf("%s is %q", name, got)
		}
	}
	m.mustHave(t)
}

func TestAvailable(t *testing.T) { eachTree(t, testAvailable) }

func testAvailable(t *testing.T, on treeKind) {
	s := newAcme(t)
	m := on.mirror(t, s.Client(t, upstream.Origin{}), pull.Policy{Platforms: []address.Platform{linux}})
	list, err := m.Available(background(), demo, "1.0.0")
	if err != nil || len(list) != 1 || list[0].URL != linuxZip {
		t.Errorf("got %+v, %v", list, err)
	}
	m.mustRefuse(t, darwinZip, upstream.ErrNotFound, "")
	if _, err := m.Available(background(), demo, "2.0.0"); !errors.Is(err, upstream.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	if n := s.Count("/v1/providers/acme/demo/2.0.0/download/linux/amd64"); n != 0 {
		t.Error("a version that the origin does not list was requested")
	}
}

// A mirror's h1: hashes, which are not signed, are passed on only if the package is
// checked against them.
func TestHashesOfAMirror(t *testing.T) { eachTree(t, testHashesOfAMirror) }

func testHashesOfAMirror(t *testing.T, on treeKind) {
	folders, publisher := acme(t)
	const wrong = "h1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
	zh := "zh:" + sumOf(folders.Read("providers/acme/demo/"+linuxZip))
	for _, test := range []struct {
		rule, hashes string
		signed       bool
		want         int
	}{
		{"beside a signed SHA256SUMS", `"` + wrong + `"`, true, 0},
		{"beside a sha256", `"` + wrong + `","` + zh + `"`, false, 0},
		{"alone", `"` + wrong + `"`, false, 1},
	} {
		t.Run(test.rule, func(t *testing.T) {
			s := newSite(t, folders)
			s.Fault(files+"1.0.0.json", body(`{"archives":{"linux_amd64":{"url":"`+linuxZip+`","hashes":[`+test.hashes+`]}}}`))
			if !test.signed {
				s.Fault(sumsFile, status(404))
			}
			root := on.root(t)
			if test.signed {
				root.tree(t).Keys(host+"/acme", publisher)
			}
			m := over(t, s.Client(t, upstream.Origin{Mirror: mirrorBase}), pull.Policy{Signatures: pull.PreferSignatures}, root)
			list, err := m.Available(background(), demo, "1.0.0")
			if err != nil || len(list) != 1 || len(list[0].OfFiles()) != test.want {
				t.Errorf("got %+v, %v", list, err)
			}
		})
	}
}

// Names that no file of a release has are not requested from the origin.
func TestInvalidFileNames(t *testing.T) {
	s := newAcme(t)
	m := onDisk(t, s.Client(t, upstream.Origin{}), pull.Policy{})
	for _, name := range []string{
		"", "..", "index.json", "terraform-provider-other_1.0.0_linux_amd64.zip", "terraform-provider-demo_v1.0.0_linux_amd64.zip",
		"terraform-provider-demo_1.0_linux_amd64.zip", "terraform-provider-demo_1.0.0_../x_amd64.zip", "terraform-provider-demo_1.0.0_linux.zip",
		"terraform-provider-demo_1.0.0_", "terraform-provider-demo_../../x_SHA256SUMS",
	} {
		if _, err := m.Fill(background(), demo, name); !errors.Is(err, upstream.ErrNotFound) {
			t.Errorf("%q: got %v", name, err)
		}
	}
	other := demo
	other.Hostname = "other.example.com"
	if _, err := m.Fill(background(), other, linuxZip); !errors.Is(err, upstream.ErrNotFound) || m.Mirrors(other) || !m.Mirrors(demo) {
		t.Errorf("got %v", err)
	}
	if len(s.Asked()) != 0 {
		t.Errorf("asked %v", s.Asked()[0].URL)
	}
}

// If a root is replaced just after a fill, while the tree is still open, the next
// package is written to the new root.
func TestFillIntoARootThatWasReplaced(t *testing.T) {
	s := newAcme(t)
	m := onDisk(t, s.Client(t, upstream.Origin{}), pull.Policy{})
	m.fill(t, darwinZip)
	if err := errors.Join(os.Rename(m.root.dir, m.root.dir+".old"), os.Mkdir(m.root.dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(m.root.dir + ".old") })
	m.fill(t, linuxZip)
	for _, name := range []string{linuxZip, sums, sums + ".sig"} {
		if _, err := os.Stat(filepath.Join(m.root.dir, directory, name)); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(filepath.Join(m.root.dir+".old", directory, linuxZip)); err == nil {
		t.Error("it is in the folder that was replaced")
	}
}

// A directory of providers elsewhere on the disk may disappear. Packages written to a
// new one in its place might be lost, so nothing is fetched.
func TestFillIntoAFolderThatIsGone(t *testing.T) {
	s := newAcme(t)
	c := s.Client(t, upstream.Origin{})
	for _, filledBefore := range []bool{false, true} {
		root, providers := t.TempDir(), t.TempDir()
		m := (&mirroring{Tree: indextest.OnDisk(t, root), root: treeRoot{dir: root}}).start(t, c, pull.Options{
			Sources: sourceOf(c, pull.Policy{}),
			Open:    source.Directories{Root: root, Providers: providers}.Open,
		})
		if filledBefore { // and the tree is still open
			m.fill(t, darwinZip)
		}
		if err := os.RemoveAll(providers); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Fill(background(), demo, linuxZip); !errors.Is(err, tree.ErrNotWritable) {
			t.Errorf("got %v", err)
		}
		if n := s.Count(zipFile); n != 0 {
			t.Errorf("the package was fetched %d times", n)
		}
		if _, err := os.Stat(providers); err == nil {
			t.Error("the folder is there again")
		}
	}
}

// An unreadable file system refuses to open files with a name.
type unreadable struct {
	afero.Fs
	name string
}

func (u unreadable) Open(name string) (afero.File, error) {
	if strings.Contains(name, u.name) {
		return nil, &os.PathError{Op: "open", Path: name, Err: syscall.EACCES}
	}
	return u.Fs.Open(name)
}

// A read-only Filler reports packages to be fetched and packages that cannot be read.
func TestReadOnlyFiller(t *testing.T) {
	folders, publisher := acme(t)
	s := newSite(t, folders)
	c := s.Client(t, upstream.Origin{})
	attempt := func(fs afero.Fs) error {
		mine := indextest.On(t, fs)
		m := (&mirroring{Tree: mine}).start(t, c, pull.Options{
			Sources: sourceOf(c, pull.Policy{}), ReadOnly: true, Open: mine.Open,
		})
		_, err := m.Fill(background(), demo, linuxZip)
		return err
	}
	memory := afero.NewMemMapFs()
	if err := attempt(memory); !errors.Is(err, pull.ErrWouldFill) {
		t.Errorf("a package that is missing: got %v", err)
	}
	present := indextest.On(t, memory)
	present.Keys(host+"/acme", publisher)
	present.Provider(host+"/acme/demo", "1.0.0", "linux_amd64", "darwin_arm64").Signed(publisher)
	if err := attempt(memory); err != nil {
		t.Errorf("a package in the tree: got %v", err)
	}
	if err := attempt(unreadable{memory, linuxZip}); !errors.Is(err, tree.ErrNotWritable) || errors.Is(err, pull.ErrWouldFill) {
		t.Errorf("a package that cannot be read: got %v", err)
	}
	if n := s.Count(zipFile); n != 0 {
		t.Errorf("the package was fetched %d times", n)
	}
}

// The disk begins to sync a package when its last byte is there, and not after the checks.
func TestPackagesAreSyncedWhileTheyAreChecked(t *testing.T) {
	s := newAcme(t)
	root := treeKind{}.root(t)
	var faults treetest.Faults
	ahead := faults.SyncedAhead()
	m := (&mirroring{Tree: root.tree(t), root: root}).start(t, s.Client(t, upstream.Origin{}), pull.Options{
		Sources: sourceOf(s.Client(t, upstream.Origin{}), pull.Policy{}), Open: faults.Open(root.open),
	})
	m.fill(t, linuxZip)
	if !ahead() {
		t.Error("a package is checked before the disk syncs it")
	}
}
