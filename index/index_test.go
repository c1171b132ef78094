package index_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
)

// newIndex returns an index that ends with the test.
func newIndex(t testing.TB, o index.Options) *index.Index {
	t.Helper()
	x := index.New(o)
	t.Cleanup(func() { x.Close() })
	return x
}

// rescan scans a tree once more.
func rescan(t *testing.T, x *index.Index) *index.Snapshot {
	t.Helper()
	s, err := x.Rescan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if x.Snapshot() != s {
		t.Error("what was scanned is not the snapshot")
	}
	return s
}

func TestTheLifeOfAnIndex(t *testing.T) {
	files := indextest.New(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64")

	t.Run("before it begins there is no snapshot", func(t *testing.T) {
		x := newIndex(t, options(t, files.Open))
		select {
		case <-x.Ready():
			t.Error("it is ready")
		default:
		}
		if x.Snapshot() != nil {
			t.Error("there is a snapshot")
		}
	})
	t.Run("it begins once, and is ready with the first snapshot", func(t *testing.T) {
		x := run(t, options(t, files.Open))
		x.Start() // again
		<-x.Ready()
		if x.Snapshot() == nil {
			t.Error("there is no snapshot")
		}
		if !offers("acme/demo", "1.0.0")(x.scan(t)) {
			t.Error("the provider is not offered")
		}
	})
	t.Run("a hint has it look again", func(t *testing.T) {
		x := run(t, options(t, files.Open))
		x.scan(t)
		for range 100 {
			x.Hint() // never waits
		}
		x.scan(t)
	})
	t.Run("closed it stays closed, and its snapshot good", func(t *testing.T) {
		x := run(t, options(t, files.Open))
		s := x.scan(t)
		for range 2 {
			if err := x.Close(); err != nil {
				t.Error(err)
			}
		}
		x.Start()
		x.Hint()
		if _, err := x.Rescan(t.Context()); !errors.Is(err, context.Canceled) {
			t.Errorf("it looks again: %v", err)
		}
		if x.Snapshot() != s || served(t, s, s.Provider(index.PlaceOf(ownDemo)).File(zipName)) == "" {
			t.Error("the snapshot is of no use any more")
		}
	})
	t.Run("closed before it begins it never does", func(t *testing.T) {
		x := index.New(options(t, files.Open))
		x.Close()
		x.Start()
		x.Close()
		if x.Snapshot() != nil {
			t.Error("there is a snapshot")
		}
	})
	t.Run("a scan ends with the context of its caller", func(t *testing.T) {
		x := newIndex(t, options(t, files.Open))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := x.Rescan(ctx); !errors.Is(err, context.Canceled) || x.Snapshot() != nil {
			t.Errorf("the error is %v", err)
		}
	})
	t.Run("all of it at once", func(*testing.T) {
		x := index.New(options(t, files.Open))
		var all sync.WaitGroup
		for range 4 {
			for _, f := range []func(){x.Start, x.Hint, func() { x.Rescan(t.Context()) }, func() { x.Snapshot() }, func() { x.Progress() }, func() { x.Stats() }, func() { x.Observe(nil) }, func() { x.Close() }} {
				all.Go(f)
			}
		}
		all.Wait()
	})
}

// opening calls a function whenever a package is opened.
type opening struct {
	afero.Fs
	call func(name string)
}

func (o opening) Open(name string) (afero.File, error) {
	o.call(name)
	return o.Fs.Open(name)
}

func TestClosingInTheMiddleOfAScan(t *testing.T) {
	files := indextest.New(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64").Checksums()
	var x *index.Index
	x = index.New(options(t, indextest.On(t, opening{files.Fs, func(name string) {
		if strings.HasSuffix(name, ".zip") {
			x.Close()
		}
	}}).Open))
	if _, err := x.Rescan(t.Context()); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	if s := x.Snapshot(); s != nil && (len(s.Report().Offered) > 0 || len(s.Report().Withheld) > 0) {
		t.Errorf("half a scan is published: %+v", s.Report())
	}
}

func TestAScanThatFailsKeepsWhatThereIs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "root")
	indextest.OnDisk(t, dir).Provider("acme/demo", "1.0.0", "linux_amd64")
	x := newIndex(t, options(t, source.Directories{Root: dir}.Open))
	first := rescan(t, x)

	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	if _, err := x.Rescan(t.Context()); err == nil || strings.Contains(err.Error(), dir) {
		t.Errorf("the error is %v", err)
	}
	if x.Snapshot() != first {
		t.Fatal("what was offered is not any more")
	}
	if served(t, first, first.Provider(index.PlaceOf(ownDemo)).File(zipName)) == "" {
		t.Error("what is offered cannot be served")
	}

	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	indextest.OnDisk(t, dir).Provider("acme/demo", "1.1.0", "linux_amd64")
	if s := rescan(t, x); !offers("acme/demo", "1.0.0")(s) || !offers("acme/demo", "1.1.0")(s) {
		t.Errorf("offered is %+v", s.Report().Offered)
	}
}

func TestWhatIsWithheldIsLoggedOncePerChange(t *testing.T) {
	const name = "providers/acme/demo/" + zipName
	files := indextest.New(t)
	files.Write(name, "no zip")
	x := newIndex(t, options(t, files.Open))
	var log bytes.Buffer
	x.Observe(&index.Observer{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	for _, test := range []struct {
		rule   string
		change func()
		lines  int
	}{
		{"the first time", func() {}, 1},
		{"not again", func() {}, 0},
		{"for another reason", func() { files.Write(name, "") }, 1},
		{"not when it is good", func() { files.Provider("acme/demo", "1.0.0", "linux_amd64") }, 0},
		{"when it is bad again", func() { files.Write(name, "no zip") }, 1},
	} {
		test.change()
		log.Reset()
		rescan(t, x)
		if n := strings.Count(log.String(), "level=WARN"); n != test.lines {
			t.Errorf("%s: %d lines\n%s", test.rule, n, &log)
		}
	}
}

// A file that has been read is not read again as long as it does not change.
func TestUnchangedFilesAreNotReadAgain(t *testing.T) {
	const name = "providers/acme/demo/" + zipName
	files := indextest.New(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64")
	files.Write("providers/acme/demo/terraform-provider-demo_1.1.0_linux_amd64.zip", "no zip")
	files.Write("modules/acme/vpc/aws/1.0.0.zip", indextest.Zip("main.tf", "x"))
	files.Write("modules/acme/vpc/aws/1.1.0/main.tf", "x")
	zip := files.Read(name)
	var c stoppedClock
	c.set(indextest.Born.Add(365 * 24 * time.Hour))

	var mutex sync.Mutex
	opened := make(map[string]int)
	o := options(t, indextest.On(t, opening{files.Fs, func(name string) {
		mutex.Lock()
		defer mutex.Unlock()
		opened[name]++
	}}).Open)
	o.Now = c.now
	x := newIndex(t, o)

	all := []string{name, "providers/acme/demo/terraform-provider-demo_1.1.0_linux_amd64.zip", "modules/acme/vpc/aws/1.0.0.zip", "modules/acme/vpc/aws/1.1.0/main.tf"}
	touch := func(name string, at time.Time) {
		if err := files.Fs.Chtimes(name, at, at); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		rule   string
		change func()
		read   []string
	}{
		{"everything, the first time", func() {}, all},
		{"nothing that stayed the same, good or bad", func() {}, nil},
		{"what has another time", func() { touch(name, indextest.Born) }, all[:1]},
		{"what has another size", func() { files.Write(all[1], "no zip either") }, all[1:2]},
		{"a folder of which a file is new", func() { files.Write("modules/acme/vpc/aws/1.1.0/outputs.tf", "x") }, all[3:]},
		{"a folder of which a file is gone", func() { files.Remove("modules/acme/vpc/aws/1.1.0/outputs.tf") }, all[3:]},
		{"what is so young that it may change unnoticed", func() { touch(name, c.now().Add(-time.Second)) }, all[:1]},
		{"and that again", func() {}, all[:1]},
		{"until it is old enough", func() { c.advance(time.Minute) }, all[:1]},
		{"and then no more", func() {}, nil},
		{"what was gone for a while", func() {
			files.Remove(name)
			rescan(t, x)
			files.Write(name, zip)
		}, all[:1]},
	} {
		test.change()
		mutex.Lock()
		clear(opened)
		mutex.Unlock()
		s := rescan(t, x)
		for _, name := range all {
			want := false
			for _, read := range test.read {
				want = want || read == name
			}
			mutex.Lock()
			times := opened[name]
			mutex.Unlock()
			if times > 0 != want {
				t.Errorf("%s: %s is opened %d times", test.rule, name, times)
			}
		}
		if len(s.Report().Offered) != 3 || len(s.Report().Withheld) != 1 {
			t.Errorf("%s: offered is %+v, withheld is %+v", test.rule, s.Report().Offered, s.Report().Withheld)
		}
	}
}

// The next scan knows the results of a scan that was broken off.
func TestTheResultsOfABrokenOffScanAreKept(t *testing.T) {
	files := indextest.New(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64", "linux_arm64")
	ctx, cancel := context.WithCancel(t.Context())
	var once sync.Once
	count := 0
	o := options(t, indextest.On(t, opening{files.Fs, func(name string) {
		if strings.HasSuffix(name, ".zip") {
			if count++; count == 2 {
				once.Do(cancel)
			}
		}
	}}).Open)
	o.Workers = 1
	x := newIndex(t, o)
	x.Rescan(ctx)
	if s := rescan(t, x); s.Recalled == 0 || len(s.Report().Offered) != 1 {
		t.Errorf("%d archives were known, offered is %+v", s.Recalled, s.Report().Offered)
	}
}

// A scan may be requested before the index has made its own first one. It uses the
// memo and is watched like any other.
func TestAFirstScanOnRequest(t *testing.T) {
	_, files, o := onDisk(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64")
	o.Store, o.Watch = new(memoryStore), true
	first := index.New(o)
	for { // a file that is too young is read again
		s, err := first.Rescan(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if s.Read == 0 {
			break
		}
	}
	first.Close()

	for range 20 {
		r := index.New(o)
		r.Start()
		s, err := r.Rescan(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if s.Read != 0 || s.Recalled != 1 {
			t.Errorf("%d archives are read, %d recalled", s.Read, s.Recalled)
		}
		r.Close()
	}
}
