package index_test

import (
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/index/keys"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
)

var errStorage = errors.New("the storage is down")

// A keyedTree is a tree on the disk with a signed release of one namespace, whose keys may
// fail to open.
type keyedTree struct {
	*indextest.Tree
	t                 *testing.T
	root              string
	under             string // the HOSTNAME and a slash, or empty
	publisher, forger *indextest.Publisher
	copies            *indextest.KeyCopies
	options           index.Options
	fails             string // the name in keys whose opening fails
	errno             syscall.Errno
}

func newKeyedTree(t *testing.T, under string) *keyedTree {
	k := &keyedTree{t: t, root: t.TempDir(), under: under, copies: new(indextest.KeyCopies)}
	k.publisher, k.forger = indextest.NewPublisher(t), indextest.NewPublisher(t)
	k.Tree = indextest.OnDisk(t, k.root)
	k.Keys(under+"acme", k.publisher)
	k.release("1.0.0", k.publisher)
	k.options = options(t, func() (tree.Tree, error) {
		files, err := source.Directories{Root: k.root}.Open()
		if k.errno != 0 {
			treetest.Wrap(&files.Keys, func(fsys afero.Fs) afero.Fs { return failing{fsys, k} })
		}
		return files, err
	})
	k.options.KeyCopies = k.copies
	k.options.Now = inAnHour
	return k
}

// release writes a release, which may have no signature.
func (k *keyedTree) release(version string, by *indextest.Publisher) {
	r := k.Provider(k.under+"acme/demo", version, "linux_amd64")
	if by != nil {
		r.Signed(by)
	}
}

func (k *keyedTree) address() address.Address {
	return addressAt(strings.TrimSuffix(k.under, "/"), "acme/demo")
}

// start returns an index without a memo, as after a restart without one.
func (k *keyedTree) start() func() *index.Snapshot {
	x := index.New(k.options)
	k.t.Cleanup(func() { x.Close() })
	return func() *index.Snapshot { return rescan(k.t, x) }
}

// States of a release.
const (
	byPublisher = "publisher"
	byRegistry  = "registry"
	isPending   = "pending"
)

// stateOf returns who signs a release, or why it is not offered.
func (k *keyedTree) stateOf(s *index.Snapshot, version string) string {
	if r := s.Provider(index.PlaceOf(k.address())).Release(version); r != nil {
		by, _, _ := strings.Cut(r.Signature.String(), " ")
		return by
	}
	if s.Pending(index.PlaceOf(k.address()), version) {
		return isPending
	}
	for _, p := range s.Report().Withheld {
		if p.Version == version {
			return string(p.Reason)
		}
	}
	return "nothing"
}

func (k *keyedTree) wants(s *index.Snapshot, want map[string]string) {
	k.t.Helper()
	for _, version := range slices.Sorted(maps.Keys(want)) {
		if got := k.stateOf(s, version); got != want[version] {
			k.t.Errorf("%s: %s, want %s; withheld: %+v", version, got, want[version], s.Report().Withheld)
		}
	}
}

// failing fails to open one name, as long as the tree says so.
type failing struct {
	afero.Fs
	tree *keyedTree
}

func (f failing) Open(name string) (afero.File, error) {
	if f.tree.errno != 0 && filepath.ToSlash(name) == f.tree.fails {
		return nil, &fs.PathError{Op: "open", Path: "/secret/" + name, Err: f.tree.errno}
	}
	return f.Fs.Open(name)
}

// Keys that exist and cannot be read never count as absent: releases that they verified
// stay, and new releases wait or are withheld.
func TestUnreadableKeysFailClosed(t *testing.T) {
	link := func(target func(k *keyedTree) string) func(k *keyedTree, name string) {
		return func(k *keyedTree, name string) {
			name = filepath.Join(k.root, filepath.FromSlash(name))
			moved := filepath.Join(k.t.TempDir(), "moved")
			if err := os.Rename(name, moved); err != nil {
				k.t.Fatal(err)
			}
			if err := os.Symlink(target(k), name); err != nil {
				k.t.Skip("no symlinks here: ", err)
			}
		}
	}
	failWith := func(errno syscall.Errno) func(k *keyedTree, name string) {
		return func(k *keyedTree, name string) {
			k.fails, k.errno = name, errno
			if strings.HasSuffix(name, ".asc") { // otherwise the known content is not read again
				k.Write(name, "changed\n"+k.Read(name))
			}
		}
	}
	faults := map[string]func(k *keyedTree, name string){
		"an I/O error":              failWith(syscall.EIO),
		"a stale handle":            failWith(syscall.ESTALE),
		"too many open files":       failWith(syscall.EMFILE),
		"no permission":             failWith(syscall.EACCES),
		"a symlink to nothing":      link(func(*keyedTree) string { return "nothing.example" }),
		"a symlink out of the root": link(func(k *keyedTree) string { return k.t.TempDir() }),
	}
	if testing.Short() { // they take the same way as an I/O error
		delete(faults, "a stale handle")
		delete(faults, "too many open files")
	}
	for _, where := range []struct{ what, under, name string }{
		{"the folder", "", "keys"},
		{"the file", "", "keys/acme.asc"},
		{"the folder, for a mirrored namespace", "a.example/", "keys"},
		{"the folder of a hostname", "a.example/", "keys/a.example"},
		{"the file of a mirrored namespace", "a.example/", "keys/a.example/acme.asc"},
	} {
		for fault, apply := range faults {
			for _, test := range []struct {
				rule  string
				setup func(k *keyedTree)
				known bool
				want  map[string]string
			}{
				{
					"known before: as it was", func(*keyedTree) {}, true,
					map[string]string{"1.0.0": byPublisher, "1.1.0": "unknown_key", "1.2.0": byPublisher},
				},
				{
					"a start with a copy: what it lists", func(k *keyedTree) { k.start()() }, false,
					map[string]string{"1.0.0": byPublisher, "1.1.0": "keys_missing", "1.2.0": "keys_missing"},
				},
				{
					"a start without a copy: nothing for now", func(*keyedTree) {}, false,
					map[string]string{"1.0.0": isPending, "1.1.0": isPending, "1.2.0": isPending},
				},
				{
					"a start without any copies: nothing for now", func(k *keyedTree) { k.options.KeyCopies = nil }, false,
					map[string]string{"1.0.0": isPending, "1.1.0": isPending, "1.2.0": isPending},
				},
				{
					"a start when the copy cannot be read: nothing for now", func(k *keyedTree) {
						k.start()()
						k.copies.Fail(errStorage)
					}, false,
					map[string]string{"1.0.0": isPending, "1.1.0": isPending, "1.2.0": isPending},
				},
			} {
				t.Run(where.what+"/"+fault+"/"+test.rule, func(t *testing.T) {
					k := newKeyedTree(t, where.under)
					test.setup(k)
					scan := k.start()
					if test.known {
						scan()
					}
					apply(k, where.name)
					k.release("1.1.0", k.forger)
					k.release("1.2.0", k.publisher)
					for range 2 { // the second scan reuses the results of the first
						s := scan()
						k.wants(s, test.want)
						p := problemOf(s.Report().Withheld, where.name)
						if p.Reason != tree.Unreadable || strings.Contains(p.Detail, "secret") {
							t.Errorf("of %s is said %+v", where.name, p)
						}
					}
				})
			}
		}
	}
}

// A namespace without keys stays so when the folder cannot be listed for a while.
func TestUnlistedKeysChangeNothing(t *testing.T) {
	k := newKeyedTree(t, "")
	k.Remove("keys/acme.asc").Keys("other", k.publisher)
	scan := k.start()
	k.wants(scan(), map[string]string{"1.0.0": byRegistry})
	k.fails, k.errno = "keys", syscall.ESTALE
	k.wants(scan(), map[string]string{"1.0.0": byRegistry})
	k.errno = 0
	s := scan()
	k.wants(s, map[string]string{"1.0.0": byRegistry})
	nothingWithheld(t, s)
}

// A namespace that had keys goes on requiring them when their file is gone.
func TestLostKeysFile(t *testing.T) {
	for _, test := range []struct {
		rule string
		lose func(k *keyedTree)
		want map[string]string
	}{
		{
			"the file is gone: the copy verifies what it did", func(k *keyedTree) { k.Remove("keys/acme.asc") },
			map[string]string{"1.0.0": byPublisher, "1.1.0": "keys_missing", "1.2.0": "keys_missing", "1.3.0": "keys_missing"},
		},
		{
			"all keys are gone, as with a volume that is not mounted", func(k *keyedTree) { k.Remove("keys") },
			map[string]string{"1.0.0": byPublisher, "1.1.0": "keys_missing", "1.2.0": "keys_missing", "1.3.0": "keys_missing"},
		},
		{
			"its signature is not that of the release it verified", func(k *keyedTree) {
				k.Remove("keys/acme.asc")
				k.release("1.0.0", k.forger)
			},
			map[string]string{"1.0.0": "keys_missing"},
		},
		{
			"it says that the namespace is not signed", func(k *keyedTree) { k.Write("keys/acme.asc", "\n unsigned\r\n") },
			map[string]string{"1.0.0": byRegistry, "1.1.0": byRegistry, "1.2.0": byRegistry, "1.3.0": byRegistry},
		},
		{
			"it says so after a byte order mark", func(k *keyedTree) { k.Write("keys/acme.asc", "\ufeffunsigned\r\n") },
			map[string]string{"1.0.0": byRegistry, "1.1.0": byRegistry, "1.2.0": byRegistry, "1.3.0": byRegistry},
		},
		{
			"it says so as PowerShell writes it", func(k *keyedTree) {
				k.Write("keys/acme.asc", "\xff\xfe"+strings.Join(strings.Split("unsigned\r\n", ""), "\x00")+"\x00")
			},
			map[string]string{"1.0.0": byRegistry, "1.1.0": byRegistry, "1.2.0": byRegistry, "1.3.0": byRegistry},
		},
		{
			"that word in another case is no keys file", func(k *keyedTree) { k.Write("keys/acme.asc", "Unsigned\n") },
			map[string]string{"1.0.0": "unknown_key", "1.1.0": "unknown_key", "1.2.0": "unknown_key", "1.3.0": byRegistry},
		},
		{
			"it is empty", func(k *keyedTree) { k.Write("keys/acme.asc", "") },
			map[string]string{"1.0.0": "unknown_key", "1.1.0": "unknown_key", "1.2.0": "unknown_key", "1.3.0": byRegistry},
		},
		{
			"it has other keys", func(k *keyedTree) { k.Keys("acme", k.forger) },
			map[string]string{"1.0.0": "unknown_key", "1.1.0": byPublisher, "1.2.0": "unknown_key", "1.3.0": byRegistry},
		},
	} {
		for _, restarted := range []bool{false, true} {
			rule := test.rule
			if restarted {
				rule += ", at a restart"
			}
			t.Run(rule, func(t *testing.T) {
				k := newKeyedTree(t, "")
				scan := k.start()
				scan()
				if restarted {
					scan = k.start()
				}
				k.release("1.1.0", k.forger)
				k.release("1.2.0", k.publisher)
				k.release("1.3.0", nil)
				test.lose(k)
				for range 2 {
					k.wants(scan(), test.want)
				}
			})
		}
	}
}

func TestKeysFileThatComesBack(t *testing.T) {
	k := newKeyedTree(t, "")
	k.start()()
	k.Remove("keys/acme.asc")
	scan := k.start()
	s := scan()
	if p := problemOf(s.Report().Withheld, "keys/acme.asc"); p.Reason != tree.KeysMissing || !strings.Contains(p.Detail, "keys forget acme") {
		t.Errorf("of the file is said %+v", p)
	}
	k.release("1.1.0", k.publisher)
	k.wants(scan(), map[string]string{"1.0.0": byPublisher, "1.1.0": "keys_missing"})
	k.Keys("acme", k.publisher)
	s = scan()
	k.wants(s, map[string]string{"1.0.0": byPublisher, "1.1.0": byPublisher})
	nothingWithheld(t, s)
}

// A key that was removed from its file does not count again once the file is lost.
func TestARemovedKeyLeavesTheCopy(t *testing.T) {
	replace := func(k *keyedTree) { k.Keys("acme", k.forger) }
	scanned := func(_ *keyedTree, scan func() *index.Snapshot) *index.Snapshot { return scan() }
	for _, test := range []struct {
		rule   string
		remove func(k *keyedTree)
		see    func(k *keyedTree, scan func() *index.Snapshot) *index.Snapshot
		copied string // the state by the copy of what the removed key has signed
	}{
		{"another key takes its place", replace, scanned, "unknown_key"},
		{"another key takes its place before a start", replace, func(k *keyedTree, _ func() *index.Snapshot) *index.Snapshot {
			return k.start()()
		}, "unknown_key"},
		{"another key takes its place while the storage is down", replace, func(k *keyedTree, scan func() *index.Snapshot) *index.Snapshot {
			k.copies.Fail(errStorage)
			scan()
			k.copies.Fail(nil)
			return scan()
		}, "unknown_key"},
		{"another key takes its place while the storage is down at a start", replace, func(k *keyedTree, _ func() *index.Snapshot) *index.Snapshot {
			var c stoppedClock
			c.set(inAnHour())
			k.options.Now = c.now
			k.copies.Fail(errStorage)
			scan := k.start()
			scan()
			k.copies.Fail(nil)
			c.advance(time.Minute)
			return scan()
		}, "unknown_key"},
		{"an empty file may be half-written", func(k *keyedTree) { k.Write("keys/acme.asc", "") }, scanned, byPublisher},
		{"a file with a part of a key may be half-written", func(k *keyedTree) {
			k.Write("keys/acme.asc", k.forger.PublicKey()[:200])
		}, scanned, byPublisher},
	} {
		for lost, lose := range map[string]func(k *keyedTree){
			"gone":       func(k *keyedTree) { k.Remove("keys/acme.asc") },
			"unreadable": func(k *keyedTree) { k.fails, k.errno = "keys/acme.asc", syscall.EIO },
		} {
			t.Run(test.rule+", then the file is "+lost, func(t *testing.T) {
				k := newKeyedTree(t, "")
				scan := k.start()
				scan()
				test.remove(k)
				k.wants(test.see(k, scan), map[string]string{"1.0.0": "unknown_key"})
				lose(k)
				k.wants(k.start()(), map[string]string{"1.0.0": test.copied})
				k.errno = 0
				k.Keys("acme", k.publisher)
				k.wants(k.start()(), map[string]string{"1.0.0": byPublisher})
			})
		}
	}
}

// A keys file without a key is not the same as none: signatures of the namespace count no longer.
func TestAnEmptyKeysFileAppears(t *testing.T) {
	k := newKeyedTree(t, "")
	k.Remove("keys/acme.asc")
	scan := k.start()
	scan()
	k.wants(scan(), map[string]string{"1.0.0": byRegistry})
	k.Write("keys/acme.asc", "")
	k.wants(scan(), map[string]string{"1.0.0": "unknown_key"})
}

// The line in the file drops the copy: afterwards nothing is required without the file.
func TestUnsignedNamespaceHasNoCopy(t *testing.T) {
	k := newKeyedTree(t, "")
	k.start()()
	if !slices.Equal(k.copies.Namespaces(), []string{"acme"}) {
		t.Fatalf("the copies are %v", k.copies.Namespaces())
	}
	k.Write("keys/acme.asc", "unsigned\n")
	s := k.start()()
	nothingWithheld(t, s)
	if len(k.copies.Namespaces()) > 0 {
		t.Errorf("the copies are %v", k.copies.Namespaces())
	}
	k.Remove("keys/acme.asc")
	k.wants(k.start()(), map[string]string{"1.0.0": byRegistry})
}

// A release that a keys file verifies for the first time is offered once the copy lists it.
func TestNothingIsOfferedBeforeItIsCopied(t *testing.T) {
	k := newKeyedTree(t, "")
	k.release("0.9.0", nil)
	k.copies.Fail(errStorage)
	x := newIndex(t, k.options)
	log := new(syncBuffer)
	x.Observe(&index.Observer{Logger: slog.New(slog.NewTextHandler(log, nil))})
	scan := func() *index.Snapshot { return rescan(t, x) }
	k.wants(scan(), map[string]string{"0.9.0": byRegistry, "1.0.0": isPending})
	scan()
	if n := strings.Count(log.String(), "the copies of keys cannot be read or written"); n != 1 {
		t.Errorf("it is logged %d times:\n%s", n, log)
	}
	k.copies.Fail(nil)
	k.wants(scan(), map[string]string{"1.0.0": byPublisher})
	k.copies.Fail(errStorage)
	k.release("1.1.0", k.publisher)
	k.wants(scan(), map[string]string{"1.0.0": byPublisher, "1.1.0": isPending})
	k.Keys("acme", k.publisher, k.forger)
	k.wants(scan(), map[string]string{"1.0.0": byPublisher, "1.1.0": isPending})
	k.copies.Fail(nil)
	k.wants(scan(), map[string]string{"1.0.0": byPublisher, "1.1.0": byPublisher})
	k.Remove("keys/acme.asc")
	k.copies.Fail(errStorage) // the copy is known
	k.wants(scan(), map[string]string{"1.0.0": byPublisher, "1.1.0": byPublisher})
}

func TestCopiesAreWrittenOnceForAScan(t *testing.T) {
	k := newKeyedTree(t, "")
	for _, version := range []string{"1.1.0", "1.2.0", "2.0.0"} {
		k.release(version, k.publisher)
	}
	k.Provider("acme/other", "1.0.0", "linux_amd64").Signed(k.publisher)
	scan := k.start()
	scan()
	scan()
	if k.copies.Stored() != 1 {
		t.Errorf("it was stored %d times", k.copies.Stored())
	}
	k.release("2.1.0", k.publisher)
	k.Keys("acme", k.publisher, k.forger)
	scan()
	if k.copies.Stored() != 2 {
		t.Errorf("with another release and key it was stored %d times", k.copies.Stored())
	}
	k.Keys("acme", k.publisher)
	scan()
	if k.copies.Stored() != 3 {
		t.Errorf("with another key and no other release it was stored %d times", k.copies.Stored())
	}
	k.start()()
	if k.copies.Stored() != 3 {
		t.Errorf("after a restart it was stored %d times", k.copies.Stored())
	}
}

// Of two spellings of an address, only the offered folder is copied, in each scan: the copy has one
// release of a version.
func TestTheCopyHasTheReleaseOfTheOfferedSpelling(t *testing.T) {
	k := newKeyedTree(t, "")
	k.Provider("ACME/demo", "1.0.0", "linux_amd64", "linux_arm64").Signed(k.publisher)
	scan := k.start()
	for range 4 {
		k.wants(scan(), map[string]string{"1.0.0": byPublisher})
	}
	if k.copies.Stored() != 1 {
		t.Errorf("it was stored %d times", k.copies.Stored())
	}
}

// Another instance may have copied releases that this one has not seen: they are kept.
func TestInstancesShareCopies(t *testing.T) {
	k := newKeyedTree(t, "")
	k.start()()
	other := newKeyedTree(t, "")
	other.publisher, other.options.KeyCopies, other.copies = k.publisher, k.copies, k.copies
	other.Remove("providers").Keys("acme", k.publisher)
	other.release("2.0.0", k.publisher)
	other.start()()
	for _, file := range []string{"_linux_amd64.zip", "_SHA256SUMS", "_SHA256SUMS.sig"} {
		name := "providers/acme/demo/terraform-provider-demo_2.0.0" + file
		k.Write(name, other.Read(name))
	}
	k.Remove("keys/acme.asc")
	k.wants(k.start()(), map[string]string{"1.0.0": byPublisher, "2.0.0": byPublisher})
}

// A damaged copy is replaced from its file. Without the file the keys are unknown.
func TestDamagedCopy(t *testing.T) {
	k := newKeyedTree(t, "")
	k.copies.Store(t.Context(), "acme", []byte("{"))
	k.Write("kept/acme.asc", k.Read("keys/acme.asc")).Remove("keys/acme.asc")
	k.wants(k.start()(), map[string]string{"1.0.0": isPending})
	k.Keys("acme", k.publisher)
	k.wants(k.start()(), map[string]string{"1.0.0": byPublisher})
	k.Remove("keys/acme.asc")
	k.wants(k.start()(), map[string]string{"1.0.0": byPublisher})
}

func TestForgetKeys(t *testing.T) {
	k := newKeyedTree(t, "a.example/")
	x := newIndex(t, k.options)
	rescan(t, x)
	forget := func(namespace string) error {
		return x.ForgetKeys(t.Context(), keys.Namespace{Hostname: "a.example", Name: namespace})
	}
	if err := forget("acme"); !errors.Is(err, keys.ErrNotGone) {
		t.Errorf("while the file is there: %v", err)
	}
	k.fails, k.errno = "keys/a.example", syscall.EIO
	if err := forget("acme"); !errors.Is(err, keys.ErrNotGone) {
		t.Errorf("while the file may be there: %v", err)
	}
	k.errno = 0
	k.Remove("keys/a.example/acme.asc")
	k.release("1.1.0", k.publisher)
	k.wants(rescan(t, x), map[string]string{"1.1.0": "keys_missing"})
	if err := forget("other"); !errors.Is(err, keys.ErrNoCopy) {
		t.Errorf("of a namespace without keys: %v", err)
	}
	k.copies.Fail(errStorage)
	if err := forget("acme"); !errors.Is(err, errStorage) {
		t.Errorf("while the storage is down: %v", err)
	}
	k.copies.Fail(nil)
	if err := forget("acme"); err != nil {
		t.Fatal(err)
	}
	s := x.Snapshot()
	k.wants(s, map[string]string{"1.0.0": byRegistry, "1.1.0": byRegistry})
	nothingWithheld(t, s)
	if len(k.copies.Namespaces()) > 0 {
		t.Errorf("the copies are %v", k.copies.Namespaces())
	}
}

// A keys file decides who signs for a namespace: each change of one is reported.
func TestKeysChangesAreReported(t *testing.T) {
	k := newKeyedTree(t, "")
	x := newIndex(t, k.options)
	log := new(syncBuffer)
	var changes []keys.Change
	x.Observe(&index.Observer{
		Logger:      slog.New(slog.NewTextHandler(log, nil)),
		KeysChanged: func(c keys.Change) { changes = append(changes, c) },
	})
	rescan(t, x)
	for _, test := range []struct {
		rule   string
		change func()
		text   string // of the line; empty: there is none
		keys   []string
	}{
		{"nothing changes", func() {}, "", nil},
		{"a further key", func() { k.Keys("acme", k.publisher, k.forger) }, "keys/acme.asc has other keys now", []string{k.publisher.ID(), k.forger.ID()}},
		{"a comment", func() { k.Write("keys/acme.asc", "of Acme\n"+k.Read("keys/acme.asc")) }, "", nil},
		{"a folder that cannot be listed", func() { k.fails, k.errno = "keys", syscall.EIO }, "", nil},
		{"and can again", func() { k.errno = 0 }, "", nil},
		{"the file is gone", func() { k.Remove("keys/acme.asc") }, "keys/acme.asc is gone", nil},
		{"and stays away", func() {}, "", nil},
		{"it is put back", func() { k.Keys("acme", k.publisher) }, "keys/acme.asc has appeared", []string{k.publisher.ID()}},
		{"the namespace is not signed any more", func() { k.Write("keys/acme.asc", "unsigned") }, "keys/acme.asc has other keys now", nil},
		{"a file of another namespace", func() { k.Keys("a.example/other", k.forger) }, "keys/a.example/other.asc has appeared", []string{k.forger.ID()}},
	} {
		changes = nil
		before := len(log.String())
		test.change()
		rescan(t, x)
		line := log.String()[before:]
		if test.text == "" {
			if len(changes) > 0 || strings.Contains(line, ".asc has") || strings.Contains(line, ".asc is gone") {
				t.Errorf("%s: reported is %+v", test.rule, changes)
			}
			continue
		}
		if !strings.Contains(line, test.text) || len(changes) != 1 || !slices.Equal(changes[0].Now, test.keys) {
			t.Errorf("%s: reported is %+v\n%s", test.rule, changes, line)
		}
	}
}

// A file that could not be read at first has not appeared when it becomes readable.
func TestKeysThatCanBeReadLaterHaveNotChanged(t *testing.T) {
	for _, name := range []string{"keys", "keys/acme.asc"} {
		k := newKeyedTree(t, "")
		x := newIndex(t, k.options)
		x.Observe(&index.Observer{KeysChanged: func(c keys.Change) { t.Errorf("%s: reported is %+v", name, c) }})
		k.fails, k.errno = name, syscall.EIO
		k.wants(rescan(t, x), map[string]string{"1.0.0": isPending})
		k.errno = 0
		k.wants(rescan(t, x), map[string]string{"1.0.0": byPublisher})
	}
}

// What a release waits for is known once its keys file can be read, or is gone: it waits no longer.
func TestNoReleaseWaitsForKeysThatAreKnown(t *testing.T) {
	for _, test := range []struct {
		rule           string
		before         func(k *keyedTree)
		after          func(k *keyedTree)
		waiting, known map[string]string
	}{
		{
			"a file that is empty", func(k *keyedTree) { k.Write("keys/acme.asc", "") }, func(*keyedTree) {},
			map[string]string{"1.0.0": isPending}, map[string]string{"1.0.0": "unknown_key"},
		},
		{
			"a file that is gone, and has a copy", func(k *keyedTree) {
				k.start()()
				k.release("1.1.0", nil)
			}, func(k *keyedTree) { k.Remove("keys/acme.asc") },
			map[string]string{"1.0.0": byPublisher, "1.1.0": isPending}, map[string]string{"1.0.0": byPublisher, "1.1.0": "keys_missing"},
		},
		{
			"a file that can be read again, for a signature without SHA256SUMS", func(k *keyedTree) {
				k.start()() // with a copy
				k.release("1.1.0", k.publisher)
				k.Remove("providers/acme/demo/terraform-provider-demo_1.1.0_SHA256SUMS")
			}, func(*keyedTree) {},
			map[string]string{"1.0.0": byPublisher, "1.1.0": isPending}, map[string]string{"1.0.0": byPublisher, "1.1.0": byRegistry},
		},
	} {
		t.Run(test.rule, func(t *testing.T) {
			real := time.Now()
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Until(real)) // a bubble begins before the keys were made
				k := newKeyedTree(t, "")
				test.before(k)
				k.fails, k.errno = "keys/acme.asc", syscall.EIO
				x := newIndex(t, k.options)
				x.Start()
				synctest.Wait()
				k.wants(x.Snapshot(), test.waiting)
				k.errno = 0
				test.after(k)
				x.Refresh("keys")
				synctest.Wait()
				k.wants(x.Snapshot(), test.known)
			})
		})
	}
}

// A keys file that may have changed unnoticed after it was read is read again.
func TestKeysThatWereReadYoungAreReadAgain(t *testing.T) {
	files, first, second := indextest.New(t), indextest.NewPublisher(t), indextest.NewPublisher(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64").Signed(second)
	written := time.Now().Truncate(time.Second)
	write := func(by *indextest.Publisher) {
		key := by.PublicKey()
		files.Write("keys/acme.asc", key+strings.Repeat("\n", 2000-len(key)))
		if err := files.Fs.Chtimes("keys/acme.asc", written, written); err != nil {
			t.Fatal(err)
		}
	}
	var c stoppedClock
	c.set(written.Add(time.Second / 2))
	o := options(t, files.Open)
	o.Now = c.now
	x := newIndex(t, o)
	write(first)
	if s := rescan(t, x); offers("acme/demo", "1.0.0")(s) {
		t.Fatal("it is offered with the wrong key")
	}
	write(second)
	c.set(written.Add(3 * time.Second))
	if s := rescan(t, x); !offers("acme/demo", "1.0.0")(s) {
		t.Errorf("it is withheld: %+v", s.Report().Withheld)
	}
}

// A keys file that has just changed may be half-written: the copy loses no key by it.
func TestACopyIsRenewedFromASettledFile(t *testing.T) {
	files, copies, first, second := indextest.New(t), new(indextest.KeyCopies), indextest.NewPublisher(t), indextest.NewPublisher(t)
	files.Keys("acme", first).Provider("acme/demo", "1.0.0", "linux_amd64").Signed(first)
	var c stoppedClock
	c.set(inAnHour())
	o := options(t, files.Open)
	o.KeyCopies, o.Now = copies, c.now
	x := newIndex(t, o)
	rescan(t, x)
	files.Keys("acme", second)
	if err := files.Fs.Chtimes("keys/acme.asc", c.now(), c.now()); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		after  time.Duration
		stored int
	}{{0, 1}, {3 * time.Second, 2}, {time.Hour, 2}} {
		c.advance(test.after)
		if s := rescan(t, x); offers("acme/demo", "1.0.0")(s) || copies.Stored() != test.stored {
			t.Errorf("%v later it is withheld as %v, and the copy was stored %d times", test.after, s.Report().Withheld, copies.Stored())
		}
	}
}

// A copy that could not be renewed is renewed by the next scan, also of another folder, for which
// the keys are not read again.
func TestACopyThatFailedIsRenewedByTheScanOfAnotherFolder(t *testing.T) {
	k := newKeyedTree(t, "")
	x := newIndex(t, k.options)
	rescan(t, x)
	k.Keys("acme", k.forger)
	k.copies.Fail(errStorage)
	rescan(t, x)
	k.copies.Fail(nil)
	k.Provider("globex/other", "1.0.0", "linux_amd64")
	before := x.Snapshot()
	x.Refresh("providers/globex/other")
	x.Start()
	x.Next(t.Context(), before)
	k.Remove("keys/acme.asc")
	k.wants(k.start()(), map[string]string{"1.0.0": "unknown_key"})
}

// Releases stay on the lists during a write of the keys file, such as by a shell that empties it
// first. A content that has stayed for a moment counts.
func TestAKeysFileThatIsBeingWritten(t *testing.T) {
	for _, test := range []struct {
		rule    string
		content func(whole string) string
		later   string // the state of a release then
	}{
		{"it is empty", func(string) string { return "" }, "unknown_key"},
		{"it is cut off", func(whole string) string { return whole[:len(whole)/2] }, "unknown_key"},
		{"it is cut off after a key", func(whole string) string { return whole + whole[:len(whole)/2] }, byPublisher},
		{"it is whole", func(whole string) string { return whole }, byPublisher},
		{"it says that the namespace is not signed", func(string) string { return "unsigned" }, "registry"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			k := newKeyedTree(t, "")
			k.options.Now = nil // the file is young
			scan := k.start()
			scan()
			k.Write("keys/acme.asc", test.content(k.Read("keys/acme.asc")))
			want := byPublisher
			if test.later == "registry" {
				want = test.later
			}
			if got := k.stateOf(scan(), "1.0.0"); got != want {
				t.Errorf("at first 1.0.0 is %s, want %s", got, want)
			}
			k.options.Now = inAnHour
			if got := k.stateOf(k.start()(), "1.0.0"); got != test.later {
				t.Errorf("later 1.0.0 is %s, want %s", got, test.later)
			}
		})
	}
}

// Forgetting the keys of a namespace does not accept that a volume is not mounted.
func TestForgettingKeysWhileAVolumeIsNotMounted(t *testing.T) {
	for _, namespace := range []string{"acme", "typo"} {
		t.Run(namespace, func(t *testing.T) {
			k := newKeyedTree(t, "")
			k.options.Now = nil
			x := newIndex(t, k.options)
			rescan(t, x)
			k.Remove("providers")
			k.Remove("keys")
			if n := len(scannedAgain(t, x).Report().Offered); n != 1 {
				t.Fatalf("%d are offered while the volume is not mounted", n)
			}
			x.ForgetKeys(t.Context(), keys.Namespace{Name: namespace})
			if n := len(x.Snapshot().Report().Offered); n != 1 {
				t.Errorf("%d are offered afterwards", n)
			}
		})
	}
}
