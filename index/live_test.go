package index_test

import (
	"bytes"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// memoryStore keeps a memo over simulated restarts.
type memoryStore struct {
	mutex sync.Mutex
	memo  indextest.Memo
	saves int
	fails error
}

func (s *memoryStore) Open() (io.ReadSeekCloser, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.memo.Open()
}

func (s *memoryStore) Save(write func(io.Writer) error) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.fails != nil {
		return s.fails
	}
	s.saves++
	return s.memo.Save(write)
}

// A running index, its scans as they end, and what it logs.
type running struct {
	*index.Index
	scans chan *index.Snapshot
	log   *syncBuffer
}

type syncBuffer struct {
	mutex sync.Mutex
	bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.Buffer.Write(p)
}

func (b *syncBuffer) Reset() {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.Buffer.Reset()
}

func (b *syncBuffer) String() string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.Buffer.String()
}

func run(t *testing.T, o index.Options) *running {
	t.Helper()
	r := &running{Index: index.New(o), scans: make(chan *index.Snapshot, 1000), log: new(syncBuffer)}
	r.Observe(&index.Observer{
		Logger:  slog.New(slog.NewTextHandler(r.log, nil)),
		Scanned: func(_, now *index.Snapshot, _ time.Duration) { r.scans <- now },
	})
	r.Start()
	t.Cleanup(func() { r.Close() })
	return r
}

// scan waits for the next scan to end.
func (r *running) scan(t *testing.T) *index.Snapshot {
	t.Helper()
	select {
	case s := <-r.scans:
		return s
	case <-time.After(30 * time.Second):
		t.Fatalf("no scan; the log says:\n%s", r.log)
		return nil
	}
}

// until waits for a scan whose snapshot meets a condition.
func (r *running) until(t *testing.T, wanted func(*index.Snapshot) bool) *index.Snapshot {
	t.Helper()
	for {
		if s := r.scan(t); wanted(s) {
			return s
		}
	}
}

func offers(address, version string) func(*index.Snapshot) bool {
	return func(s *index.Snapshot) bool {
		for _, o := range s.Report().Offered {
			if o.Address == address && o.Version == version {
				return true
			}
		}
		return false
	}
}

func not(f func(*index.Snapshot) bool) func(*index.Snapshot) bool {
	return func(s *index.Snapshot) bool { return !f(s) }
}

func TestARestartReadsNothing(t *testing.T) {
	dir, files, o := onDisk(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64", "linux_arm64")
	files.Write("modules/acme/vpc/aws/1.0.0/main.tf", "# a module\n")
	files.Write("providers/acme/demo/terraform-provider-demo_2.0.0_linux_amd64.zip", "no zip")
	store := new(memoryStore)
	o.Store, o.Identity = store, dir

	first := run(t, o)
	first.scan(t)
	s := first.scan(t) // a file that was written a moment ago is read twice
	first.Close()

	second := run(t, o).scan(t)
	if second.Read != 0 || second.Recalled != 4 {
		t.Errorf("%d archives are read, %d recalled", second.Read, second.Recalled)
	}
	if len(second.Report().Withheld) != 1 || second.Report().Withheld[0] != s.Report().Withheld[0] {
		t.Errorf("withheld is %+v", second.Report().Withheld)
	}
	for _, address := range []string{"acme/demo", "acme/vpc/aws"} {
		if !offers(address, "1.0.0")(second) {
			t.Errorf("%s is not offered", address)
		}
	}

	t.Run("but what was changed under its old size and time", func(t *testing.T) {
		name := filepath.Join(dir, "providers/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip")
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		content, _ := os.ReadFile(name)
		content[len(content)/2] ^= 0xff
		if err := os.WriteFile(name, content, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(name, info.ModTime(), info.ModTime()); err != nil {
			t.Fatal(err)
		}
		if s := run(t, o).scan(t); s.Read != 1 {
			t.Errorf("%d archives are read", s.Read)
		}
	})
}

// Reading a key verifies its own signatures, and each publisher has a key.
func TestARestartReadsNoKeys(t *testing.T) {
	acme := indextest.NewPublisher(t)
	files, opened := indextest.New(t), 0
	files.Provider("acme/demo", "1.0.0", "linux_amd64").Signed(acme)
	files.Keys("acme", acme)
	files.Write("keys/globex.asc", acme.PublicKey()+acme.PrivateKey())
	o := options(t, indextest.On(t, opening{files.Fs, func(name string) {
		if strings.HasSuffix(name, ".asc") {
			opened++
		}
	}}).Open)
	o.Store = new(memoryStore)
	first := index.New(o)
	before := rescan(t, first)
	rescan(t, first) // which does not lose what the memo knows
	first.Close()

	files.Provider("acme/demo", "2.0.0", "linux_amd64").Signed(acme)
	opened = 0
	second := index.New(o)
	s := rescan(t, second)
	if opened > 0 {
		t.Errorf("keys are opened %d times", opened)
	}
	if !slices.Equal(s.Report().Withheld, before.Report().Withheld) || len(s.Report().Withheld) != 1 {
		t.Errorf("withheld is %+v, and was %+v", s.Report().Withheld, before.Report().Withheld)
	}
	for _, offer := range s.Report().Offered {
		if !strings.HasPrefix(offer.Signature, "publisher") {
			t.Errorf("%s is signed by %q", offer.Version, offer.Signature)
		}
	}
	if len(s.Report().Offered) != 2 {
		t.Errorf("offered is %+v", s.Report().Offered)
	}
	second.Close()

	t.Run("but those that were replaced", func(t *testing.T) {
		files.Keys("acme", indextest.NewPublisher(t))
		later := time.Now().Add(-time.Minute) // not the time that the file had
		if err := files.Fs.Chtimes("keys/acme.asc", later, later); err != nil {
			t.Fatal(err)
		}
		third := newIndex(t, o)
		if s := rescan(t, third); len(s.Report().Offered) != 0 || s.Report().Withheld[0].Reason != tree.UnknownKey && s.Report().Withheld[1].Reason != tree.UnknownKey {
			t.Errorf("offered is %+v, withheld %+v", s.Report().Offered, s.Report().Withheld)
		}
	})
}

func TestAMemoThatCannotBeUsed(t *testing.T) {
	files := indextest.New(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64")
	for _, test := range []struct {
		rule  string
		store *memoryStore
		log   string
	}{
		{"junk is dropped with one line", &memoryStore{memo: indextest.Memo{Content: []byte("junk")}}, "the memo of digests cannot be used"},
		{"one that cannot be saved is no failure", &memoryStore{fails: &fs.PathError{Op: "write", Path: "/secret/path", Err: os.ErrPermission}}, "the memo of digests cannot be kept"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			o := options(t, files.Open)
			o.Store = test.store
			r := run(t, o)
			if s := r.scan(t); !offers("acme/demo", "1.0.0")(s) {
				t.Error("it is not offered")
			}
			if log := r.log.String(); strings.Count(log, test.log) != 1 || strings.Contains(log, "/secret/path") {
				t.Errorf("the log says:\n%s", log)
			}
		})
	}
}

func TestWatching(t *testing.T) {
	t.Parallel()
	dir, files, o := onDisk(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64")
	o.Watch = true // and no periodic scan
	r := run(t, o)
	r.until(t, offers("acme/demo", "1.0.0"))

	files.Provider("acme/demo", "1.1.0", "linux_amd64")
	r.until(t, offers("acme/demo", "1.1.0"))

	files.Provider("acme/another", "1.0.0", "linux_amd64")
	r.until(t, offers("acme/another", "1.0.0"))

	files.Write("modules/acme/vpc/aws/1.0.0/modules/subnet/main.tf", "# the first module\n")
	r.until(t, offers("acme/vpc/aws", "1.0.0"))

	files.Remove("providers/acme/another")
	r.until(t, not(offers("acme/another", "1.0.0")))

	away := dir + ".away"
	if err := os.Rename(dir, away); err != nil {
		t.Fatal(err)
	}
	if !offers("acme/demo", "1.1.0")(r.Snapshot()) {
		t.Error("what was offered is not while the root is away")
	}
	indextest.OnDisk(t, away).Provider("acme/late", "1.0.0", "linux_amd64")
	if err := os.Rename(away, dir); err != nil {
		t.Fatal(err)
	}
	r.until(t, offers("acme/late", "1.0.0"))
	files.Provider("acme/later", "1.0.0", "linux_amd64")
	r.until(t, offers("acme/later", "1.0.0"))
}

// A folder that is renamed is watched under its new name, with all its subfolders.
func TestARenamedFolderIsWatched(t *testing.T) {
	dir, files, o := onDisk(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64")
	o.Watch = true   // and no periodic scan
	o.Now = inAnHour // nothing is read again because it is young
	r := run(t, o)
	r.until(t, offers("acme/demo", "1.0.0"))

	if err := os.Rename(filepath.Join(dir, "providers/acme"), filepath.Join(dir, "providers/emca")); err != nil {
		t.Fatal(err)
	}
	r.until(t, offers("emca/demo", "1.0.0"))
	files.Provider("emca/demo", "1.1.0", "linux_amd64")
	r.until(t, offers("emca/demo", "1.1.0"))

	files.Provider("acme/demo", "2.0.0", "linux_amd64") // and a new one has the old name
	r.until(t, offers("acme/demo", "2.0.0"))
	files.Provider("acme/demo", "2.1.0", "linux_amd64")
	r.until(t, offers("acme/demo", "2.1.0"))
	files.Provider("emca/demo", "1.2.0", "linux_amd64")
	r.until(t, offers("emca/demo", "1.2.0"))
}

func TestACopyOfManyFilesIsFewSnapshots(t *testing.T) {
	_, files, o := onDisk(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64")
	o.Watch = true
	r := run(t, o)
	r.scan(t)
	var platforms []string
	for i := range 500 {
		platforms = append(platforms, "linux_arch"+strings.Repeat("x", i%10)+string(rune('a'+i/10%26))+string(rune('a'+i/260)))
	}
	files.Provider("acme/demo", "2.0.0", platforms...)
	scans := 1
	r.until(t, func(s *index.Snapshot) bool {
		scans++
		return offers("acme/demo", "2.0.0")(s)
	})
	if scans > 12 {
		t.Errorf("%d scans", scans)
	}
}

func TestPollingWhereNothingIsWatched(t *testing.T) {
	files := indextest.New(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64")
	o := options(t, files.Open)
	o.Watch, o.Rescan = true, time.Millisecond
	r := run(t, o)
	r.scan(t)
	files.Provider("acme/demo", "1.1.0", "linux_amd64")
	r.until(t, offers("acme/demo", "1.1.0"))
	if n := strings.Count(r.log.String(), "changes are not noticed at once"); n != 1 {
		t.Errorf("%d warnings", n)
	}
}

func TestAColdStartServesAtOnce(t *testing.T) {
	files := indextest.New(t)
	files.Provider("acme/known", "1.0.0", "linux_amd64")
	store := new(memoryStore)
	o := options(t, files.Open)
	o.Store = store
	first := run(t, o)
	first.scan(t)
	first.Close()

	files.Provider("acme/new", "1.0.0", "linux_amd64")
	g := indextest.Gate{Fs: files.Fs, Opened: make(chan struct{})}
	o.Open = indextest.On(t, g).Open
	r := run(t, o)
	<-r.Ready()
	s := r.Snapshot()
	if !offers("acme/known", "1.0.0")(s) || offers("acme/new", "1.0.0")(s) {
		t.Errorf("offered at once is %+v", s.Report().Offered)
	}
	if s.Report().Pending != 1 || !s.Pending(index.PlaceOf(address.Address{Namespace: "acme", Name: "new"}), "") {
		t.Error("what is still to be read is not told")
	}
	close(g.Opened)
	if s := r.scan(t); !offers("acme/new", "1.0.0")(s) || s.Report().Pending != 0 {
		t.Errorf("offered in the end is %+v", s.Report().Offered)
	}
}

// A publisher waits for a snapshot that sees its change; an earlier snapshot does not.
func TestSnapshotsSeeChanges(t *testing.T) {
	x := newIndex(t, index.Options{Open: indextest.New(t).Open})
	rescan := func() *index.Snapshot {
		s, err := x.Rescan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	before := rescan()
	first, second := x.Changed("providers/acme/demo"), x.Changed("keys")
	if before.Sees(first) || before.Sees(second) {
		t.Error("a snapshot sees changes that came after it")
	}
	if after := rescan(); !after.Sees(first) || !after.Sees(second) {
		t.Error("a snapshot does not see the changes before it")
	}
}
