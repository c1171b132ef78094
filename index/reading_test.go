package index_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// An archive that a request waits for is read immediately, although all workers are busy
// with other archives.
func TestRequestedArchivesAreReadFirst(t *testing.T) {
	files := indextest.New(t)
	for _, name := range []string{"a", "b", "c"} {
		files.Provider("acme/"+name, "1.0.0", "linux_amd64")
	}
	files.Write("modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", "x"))
	files.Write("modules/acme/vpc/aws/0.9.0.tar.gz", indextest.TarGz("main.tf", "y"))
	g := indextest.Gate{Fs: files.Fs, Opened: make(chan struct{})} // which holds back all zips
	o := options(t, indextest.On(t, g).Open)
	o.Workers = 1
	r := run(t, o)
	<-r.Ready()
	before := r.Snapshot()
	if !before.ListPending(index.PlaceOf(ownVPC)) || !before.ListPending(index.PlaceOf(address.Address{Namespace: "acme", Name: "a"})) {
		t.Error("lists are said to be complete before anything has been read")
	}
	s := r.Next(t.Context(), before, index.Selection{Address: ownVPC})
	if got := versionsOfVPC(s); got != "1.0.0 0.9.0" || s.Pending(index.PlaceOf(ownVPC), "") {
		t.Errorf("%s are listed", got)
	}
	if len(s.Report().Offered) != 2 || s.Report().Pending != 3 {
		t.Errorf("offered is %+v, %d are pending", s.Report().Offered, s.Report().Pending)
	}
	close(g.Opened)
	if s = r.scan(t); len(s.Report().Offered) != 5 {
		t.Errorf("in the end is offered %+v", s.Report().Offered)
	}
}

// A new file in the tree is offered at once, although many other archives are still to be read,
// and all workers are busy with them.
func TestAChangeIsOfferedWhileOtherArchivesAreUnread(t *testing.T) {
	files := indextest.New(t)
	for _, name := range []string{"a", "b", "c"} {
		files.Provider("acme/"+name, "1.0.0", "linux_amd64")
	}
	g := indextest.Gate{Fs: files.Fs, Opened: make(chan struct{})} // which holds back all zips
	o := options(t, indextest.On(t, g).Open)
	o.Workers = 1
	r := run(t, o)
	<-r.Ready()
	for _, version := range []string{"1.0.0", "1.1.0"} {
		files.Write("modules/acme/vpc/aws/"+version+".tar.gz", indextest.TarGz("main.tf", "# "+version+"\n"))
		r.Changed("modules/acme/vpc/aws")
		if s := r.until(t, offers("acme/vpc/aws", version)); s.Totals.Pending != 3 {
			t.Errorf("%d packages are pending", s.Totals.Pending)
		}
	}
	files.Remove("modules/acme/vpc/aws/1.0.0.tar.gz")
	r.Changed("modules/acme/vpc/aws")
	r.until(t, not(offers("acme/vpc/aws", "1.0.0")))
	close(g.Opened)
	r.until(t, offers("acme/c", "1.0.0"))
}

// A single version of many is read alone.
func TestARequestedVersionIsReadWithoutTheOthers(t *testing.T) {
	files := indextest.New(t)
	for _, v := range []string{"1.0.0", "1.1.0", "1.2.0"} {
		files.Provider("acme/demo", v, "linux_amd64")
	}
	g := indextest.Gate{Fs: files.Fs, Opened: make(chan struct{})}
	o := options(t, indextest.On(t, oldest{g, "_1.0.0_"}).Open)
	o.Workers = 1 // it is blocked by 1.2.0
	r := run(t, o)
	<-r.Ready()
	s := r.Next(t.Context(), r.Snapshot(), index.Selection{Address: ownDemo, Version: "1.0.0"})
	if p := s.Provider(index.PlaceOf(ownDemo)); p.Release("1.0.0") == nil || p.Release("1.1.0") != nil {
		t.Errorf("offered is %+v", s.Report().Offered)
	}
	close(g.Opened)
}

// A request for a version under several addresses, or for a version that waits for something
// else than reading, does not cause snapshots without news: each costs a pass over
// everything, and the request would ask for the next one immediately.
func TestWaitingForAnUnknownVersionMakesNoSnapshots(t *testing.T) {
	named := address.Address{Hostname: "registry.example.com", Namespace: "acme", Name: "demo"}
	files := indextest.New(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64")
	files.Provider("registry.example.com/acme/demo", "2.0.0", "linux_amd64")
	o := options(t, files.Open)
	synctest.Test(t, func(t *testing.T) {
		g := indextest.Gate{Fs: files.Fs, Opened: make(chan struct{})}
		o.Open = indextest.On(t, g).Open
		r := run(t, o)
		<-r.Ready()
		var s *index.Snapshot
		go func() {
			s = r.Next(t.Context(), r.Snapshot(), index.Selection{Address: named, Version: "1.0.0"}, index.Selection{Address: ownDemo, Version: "1.0.0"})
		}()
		synctest.Wait()
		if s != nil {
			t.Errorf("there is a snapshot, although nothing has been read: offered is %+v", s.Report().Offered)
		}
		close(g.Opened)
		synctest.Wait()
		if s == nil || s.Provider(index.PlaceOf(ownDemo)).Release("1.0.0") == nil {
			t.Error("no snapshot has the version when it has been read")
		}
		r.Close()
	})
}

// oldest allows reading the files whose name contains a text.
type oldest struct {
	indextest.Gate
	name string
}

func (o oldest) Open(name string) (afero.File, error) {
	if strings.Contains(name, o.name) {
		return o.Gate.Fs.Open(name)
	}
	return o.Gate.Open(name)
}

// pacing notes in which order files are read.
type pacing struct {
	afero.Fs
	mutex  sync.Mutex
	reads  []string
	begun  chan struct{} // closed when the first archive is read
	resume chan struct{} // closed when it may go on
	once   sync.Once
}

type pacingFile struct {
	afero.File
	of   *pacing
	name string
}

func (p *pacing) Open(name string) (afero.File, error) {
	f, err := p.Fs.Open(name)
	if err != nil || !strings.HasSuffix(name, ".zip") && !strings.HasSuffix(name, ".gz") {
		return f, err
	}
	return &pacingFile{f, p, name}, nil
}

func (f *pacingFile) Read(b []byte) (int, error) {
	urgent := strings.HasSuffix(f.name, ".gz")
	if urgent {
		f.of.once.Do(func() { close(f.of.resume) })
	} else {
		select {
		case <-f.of.begun:
		default:
			close(f.of.begun)
			<-f.of.resume
		}
	}
	f.of.mutex.Lock()
	f.of.reads = append(f.of.reads, f.name)
	f.of.mutex.Unlock()
	return f.File.Read(b)
}

// Other reads pause meanwhile: they would share the disk and the cores.
func TestOtherReadingPausesForRequestedArchives(t *testing.T) {
	files := indextest.New(t)
	files.Write("providers/acme/demo/"+zipName, indextest.Zip("terraform-provider-demo", strings.Repeat("some program ", 1<<20)))
	files.Write("modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", strings.Repeat("# text\n", 1<<20)))
	p := &pacing{Fs: files.Fs, begun: make(chan struct{}), resume: make(chan struct{})}
	o := options(t, indextest.On(t, p).Open)
	o.Workers = 1
	r := run(t, o)
	<-p.begun
	s := r.Next(t.Context(), r.Snapshot(), index.Selection{Address: ownVPC})
	if got := versionsOfVPC(s); got != "1.0.0" {
		t.Errorf("%s are listed", got)
	}
	r.until(t, offers("acme/demo", "1.0.0"))
	p.mutex.Lock()
	defer p.mutex.Unlock()
	isUrgent := func(name string) bool { return strings.HasSuffix(name, ".gz") }
	first := slices.IndexFunc(p.reads, isUrgent)
	last := len(p.reads) - 1
	for !isUrgent(p.reads[last]) {
		last--
	}
	others := 0
	for _, name := range p.reads[first : last+1] {
		if !isUrgent(name) {
			others++
		}
	}
	if others > 1 { // the read that had begun
		t.Errorf("%d other reads in between", others)
	}
}

// A request ends with its context, and with the index.
func TestWaitingEnds(t *testing.T) {
	files := indextest.New(t)
	r := run(t, options(t, files.Open))
	s := r.scan(t)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if s := r.Next(t.Context(), s); s != nil {
			t.Error("there is a snapshot without a scan")
		}
	}()
	r.Close()
	<-ended
}

// A verified signature is remembered over restarts, however many scans there were before.
func TestSignaturesAreRememberedOverManyScans(t *testing.T) {
	files := indextest.New(t)
	p := indextest.NewPublisher(t)
	files.Keys("acme", p).Provider("acme/demo", "1.0.0", "linux_amd64").Signed(p)
	o := options(t, files.Open)
	o.Store = new(memoryStore)
	first := index.New(o)
	for range 3 {
		if _, err := first.Rescan(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	first.Close()
	if verified := first.Stats().Verified; verified != 1 {
		t.Errorf("%d signatures are verified in three scans", verified)
	}
	second := newIndex(t, o)
	s, err := second.Rescan(t.Context())
	if err != nil || !offers("acme/demo", "1.0.0")(s) {
		t.Fatalf("offered is %+v, %v", s.Report().Offered, err)
	}
	if second.Stats().Verified != 0 {
		t.Error("after a restart it is verified again")
	}
}
