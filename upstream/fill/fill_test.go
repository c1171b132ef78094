package fill_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/fill"
)

// What a fill leaves is a tree that needs no Filler.
func TestFill(t *testing.T) {
	tree, publisher := acme(t)
	s := newSite(t, tree)
	m := onDisk(t, s.Client(t, upstream.Origin{}), fill.Policy{})

	f := m.fill(t, linuxZip)
	want := tree.Read("providers/acme/demo/" + linuxZip)
	if content(t, f) != want || f.Size != int64(len(want)) || f.Name != linuxZip || f.Version != "1.0.0" || f.Platform != "linux_amd64" {
		t.Errorf("got %+v", f)
	}
	m.mustHave(t, held+linuxZip, held+sums, held+sums+".sig", keysFile, record)

	p := m.scan(t).Provider(demo)
	if p == nil || p.File(linuxZip) == nil || p.File(linuxZip).SHA256 != f.SHA256 {
		t.Fatalf("the index offers %+v", p)
	}
	r := p.Release("1.0.0")
	if len(r.Keys) != 1 || r.Keys[0].ID != publisher.ID() {
		t.Errorf("it is signed by %+v", r.Keys)
	}
	if missing := p.Missing(r); len(missing) != 1 || missing[0].URL != darwinZip {
		t.Errorf("missing are %+v", missing)
	}
	if m.Held(demo, linuxZip) == nil {
		t.Error("it is not known to be there")
	}
	if info, err := os.Stat(filepath.Join(m.root, held, linuxZip)); err != nil || info.Mode().Perm()&0o644 != 0o644 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
	if got := m.log.observed(fill.PackageFilled); len(got) != 1 || got[0] != "" {
		t.Errorf("observed %q", got)
	}
	m.fill(t, linuxZip) // which is there by now
	if n := m.log.count("filled registry.example.com/acme/demo 1.0.0 linux_amd64"); n != 1 {
		t.Errorf("the log tells of it %d times:\n%s", n, &m.log.text)
	}
}

// However many ask, each file is fetched once.
func TestFillOnceForAll(t *testing.T) {
	s := newAcme(t)
	m := onDisk(t, s.Client(t, upstream.Origin{}), fill.Policy{})
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
			t.Errorf("%s was asked for %d times", path, n)
		}
	}
}

// Instances that share a tree and a lock fetch a file once between them.
func TestInstancesFillOnce(t *testing.T) {
	s := newAcme(t)
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
		m := (&mirroring{Tree: indextest.OnDisk(t, root), root: root}).start(t, c, fill.Options{
			Sources: sourceOf(c, fill.Policy{}), Open: index.Directories{Root: root}.Open, Lock: lock,
		})
		for _, name := range []string{linuxZip, darwinZip} {
			all.Go(func() { m.fill(t, name) })
		}
	}
	all.Wait()
	if n, o := s.Count(zipFile), s.Count(files+darwinZip); n != 1 || o != 1 {
		t.Errorf("the packages were asked for %d and %d times", n, o)
	}
}

// A lock that is not to be had costs work, and nothing else.
func TestFillWithoutItsLock(t *testing.T) {
	s := newAcme(t)
	c := s.Client(t, upstream.Origin{})
	tree := indextest.New(t)
	m := (&mirroring{Tree: tree}).start(t, c, fill.Options{
		Sources: sourceOf(c, fill.Policy{}), Open: tree.Open,
		Lock: func(context.Context, string) (func(), error) { return nil, errors.New("the storage is down") },
	})
	m.fill(t, linuxZip)
	if m.log.count("not to be had") == 0 {
		t.Error("nothing is logged")
	}
}

// The file comes for whoever asks next, also when the one who asked has left.
func TestFillGoesOnWithoutItsClient(t *testing.T) {
	s := newAcme(t)
	begun, rest := make(chan struct{}), make(chan struct{})
	s.Fault(zipFile, func(w http.ResponseWriter, r *http.Request) {
		close(begun)
		<-rest
		s.Handler.ServeHTTP(w, r)
	})
	m := onDisk(t, s.Client(t, upstream.Origin{}), fill.Policy{})
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
		t.Errorf("it was asked for %d times", n)
	}
}

// Close cuts fills off, which leave nothing behind.
func TestClosingEndsFills(t *testing.T) {
	s := newAcme(t)
	begun := make(chan struct{})
	s.Fault(zipFile, func(w http.ResponseWriter, r *http.Request) {
		w.Write([]byte("PK"))
		w.(http.Flusher).Flush()
		close(begun)
		<-r.Context().Done()
	})
	m := onDisk(t, s.Client(t, upstream.Origin{}), fill.Policy{})
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

// noise is what does not get smaller in a zip.
func noise(size int) string {
	b := make([]byte, size)
	rand.NewChaCha8([32]byte{}).Read(b)
	return string(b)
}

func TestFillIsWatched(t *testing.T) {
	tree := indextest.New(t)
	publisher := indextest.NewPublisher(t)
	large := indextest.Zip("terraform-provider-demo", noise(1<<20))
	release := tree.Provider("acme/demo", "1.0.0", "linux_amd64")
	tree.Write("providers/acme/demo/"+linuxZip, large)
	release.Signed(publisher)
	tree.Keys("acme", publisher)
	s := newSite(t, tree)
	m := onDisk(t, s.Client(t, upstream.Origin{}), fill.Policy{})
	var heard []int64
	var announced int64
	if _, err := m.FillWatched(background(), demo, linuxZip, func(n, size int64) { heard, announced = append(heard, n), size }); err != nil {
		t.Fatal(err)
	}
	if len(heard) < 2 || heard[len(heard)-1] != int64(len(large)) {
		t.Errorf("heard %d times, at last %v of %d", len(heard), heard[len(heard)-1], len(large))
	}
	if announced != int64(len(large)) {
		t.Errorf("its size is told as %d", announced)
	}
}

// What vouches for packages can be had before they are there, by mirrors of this
// one. It is not written down without them.
func TestDocumentsOfAReleaseThatIsNotHeld(t *testing.T) {
	tree, _ := acme(t)
	m := onDisk(t, newSite(t, tree).Client(t, upstream.Origin{}), fill.Policy{})
	for _, name := range []string{sums, sums + ".sig"} {
		if got := content(t, m.fill(t, name)); got != tree.Read("providers/acme/demo/"+name) {
			t.Errorf("%s is %q", name, got)
		}
	}
	m.mustHave(t)
}

func TestAvailable(t *testing.T) {
	s := newAcme(t)
	m := onDisk(t, s.Client(t, upstream.Origin{}), fill.Policy{Platforms: []address.Platform{linux}})
	list, err := m.Available(background(), demo, "1.0.0")
	if err != nil || len(list) != 1 || list[0].URL != linuxZip {
		t.Errorf("got %+v, %v", list, err)
	}
	m.mustRefuse(t, darwinZip, upstream.ErrNotFound, "")
	if _, err := m.Available(background(), demo, "2.0.0"); !errors.Is(err, upstream.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	if n := s.Count("/v1/providers/acme/demo/2.0.0/download/linux/amd64"); n != 0 {
		t.Error("the origin was asked for what it does not list")
	}
}

// A mirror's own hashes of files are handed on only where they are what the
// package is checked with: nobody has signed them.
func TestHashesOfAMirrorThatNobodyChecks(t *testing.T) {
	tree, publisher := acme(t)
	const wrong = "h1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
	zh := "zh:" + sumOf(tree.Read("providers/acme/demo/"+linuxZip))
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
			s := newSite(t, tree)
			s.Fault(files+"1.0.0.json", body(`{"archives":{"linux_amd64":{"url":"`+linuxZip+`","hashes":[`+test.hashes+`]}}}`))
			if !test.signed {
				s.Fault(sumsFile, status(404))
			}
			root := t.TempDir()
			if test.signed {
				indextest.OnDisk(t, root).Keys(host+"/acme", publisher)
			}
			m := over(t, s.Client(t, upstream.Origin{Mirror: mirrorBase}), fill.Policy{Signatures: fill.PreferSignatures}, root)
			list, err := m.Available(background(), demo, "1.0.0")
			if err != nil || len(list) != 1 || len(list[0].H1()) != test.want {
				t.Errorf("got %+v, %v", list, err)
			}
		})
	}
}

// Nothing is asked of the origin that cannot be there.
func TestNamesThatAreNone(t *testing.T) {
	s := newAcme(t)
	m := onDisk(t, s.Client(t, upstream.Origin{}), fill.Policy{})
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
