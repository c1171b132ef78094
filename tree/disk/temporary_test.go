package disk

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// A slowDisk is a file system that counts syncs.
type slowDisk struct {
	afero.Fs
	syncs atomic.Int32
	fails int32 // the sync that fails
}

// newSlowDisk returns the file system of a new folder.
func newSlowDisk(t *testing.T, fails int32) *slowDisk {
	return &slowDisk{Fs: afero.NewBasePathFs(afero.NewOsFs(), t.TempDir()), fails: fails}
}

func (d *slowDisk) OpenFile(name string, flag int, perm fs.FileMode) (afero.File, error) {
	f, err := d.Fs.OpenFile(name, flag, perm)
	return slowFile{f, d}, err
}

type slowFile struct {
	afero.File
	disk *slowDisk
}

// Write writes the last byte, and leaves a hole before it: there are many bytes.
func (f slowFile) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if _, err := f.Seek(int64(len(p)-1), io.SeekCurrent); err != nil {
		return 0, err
	}
	if _, err := f.File.Write(p[len(p)-1:]); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (f slowFile) Sync() error {
	if f.disk.syncs.Add(1) == f.disk.fails {
		return &fs.PathError{Op: "sync", Path: "x", Err: syscall.ENOSPC}
	}
	return nil
}

// Files are synced while they arrive. A failure then counts, even if the next sync succeeds.
func TestFilesAreSyncedAhead(t *testing.T) {
	for _, fails := range []int32{0, 1} {
		disk := newSlowDisk(t, fails)
		p, err := tree.Part{Storage: Folder{Fs: disk, Dir: "providers"}}.NewTemporary(t.Context(), "a/b/c.zip")
		if err != nil {
			t.Fatal(err)
		}
		chunk := make([]byte, syncEvery/4)
		for range 12 {
			if _, err := p.Write(chunk); err != nil {
				t.Fatal(err)
			}
		}
		info, err := p.Rename(t.Context(), "a/b/c.zip")
		if fails != 0 {
			left, _ := afero.ReadDir(disk, "providers/a/b")
			if !errors.Is(err, tree.ErrDiskFull) || len(left) != 0 {
				t.Errorf("got %v, and there are %v", err, left)
			}
			continue
		}
		if err != nil || info.Size() != 3*syncEvery || disk.syncs.Load() < 2 {
			t.Errorf("got %v, synced %d times", err, disk.syncs.Load())
		}
	}
}

// Bytes that were synced ahead are not synced again, and bytes written afterwards are.
func TestFilesAreNotSyncedTwice(t *testing.T) {
	for _, test := range []struct {
		rule  string
		after int // bytes that are written after the sync
		fails int32
		syncs int32
	}{
		{"nothing is written afterwards", 0, 0, 1},
		{"something is", 1, 0, 2},
		{"it fails", 0, 1, 1},
	} {
		t.Run(test.rule, func(t *testing.T) {
			disk := newSlowDisk(t, test.fails)
			p, err := tree.Part{Storage: Folder{Fs: disk, Dir: "providers"}}.NewTemporary(t.Context(), "a.zip")
			if err != nil {
				t.Fatal(err)
			}
			p.Write([]byte("content"))
			p.SyncAhead()
			p.Write(make([]byte, test.after))
			if _, err := p.Rename(t.Context(), "a.zip"); errors.Is(err, tree.ErrDiskFull) != (test.fails > 0) || disk.syncs.Load() != test.syncs {
				t.Errorf("got %v, synced %d times", err, disk.syncs.Load())
			}
		})
	}
}

// onDisk returns the part for the providers of a new tree on the local disk, and the path
// where it begins.
func onDisk(t *testing.T) (p tree.Part, dir string) {
	t.Helper()
	root := t.TempDir()
	p, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	return p.Sub("providers"), filepath.Join(root, "providers")
}

// changed returns the part with another folder.
func changed(p tree.Part, change func(d *Folder)) tree.Part {
	d := p.Storage.(Folder)
	change(&d)
	return tree.Part{Storage: d}
}

// filesIn lists the files and folders in a folder and below it. Files with a random name are
// listed as "temporary".
func filesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		switch relative, _ := filepath.Rel(dir, name); {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil || relative == ".":
			return err
		case tree.IsTemporary(d.Name()):
			names = append(names, "temporary")
		default:
			names = append(names, filepath.ToSlash(relative))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestTemporariesHaveTheirNameAtTheEnd(t *testing.T) {
	p, dir := onDisk(t)
	one, err := p.NewTemporary(t.Context(), "acme/demo/1.0.0/a.zip")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := one.Write([]byte("content")); err != nil {
		t.Fatal(err)
	}
	if names := filesIn(t, dir); !slices.Equal(names, []string{"acme", "acme/demo", "acme/demo/1.0.0", "temporary"}) {
		t.Errorf("before it has its name there are %v", names)
	}
	info, err := one.Rename(t.Context(), "acme/demo/2.0.0/a.zip")
	if err != nil || info.Size() != int64(len("content")) || info.Name() != "a.zip" {
		t.Fatalf("it is %v (%v)", info, err)
	}
	one.Discard()
	if names := filesIn(t, dir); !slices.Equal(names, []string{"acme", "acme/demo", "acme/demo/1.0.0", "acme/demo/2.0.0", "acme/demo/2.0.0/a.zip"}) {
		t.Errorf("there are %v", names)
	}
}

func TestDiscardLeavesNothingBehind(t *testing.T) {
	for _, test := range []struct {
		rule   string
		before string
		left   []string
	}{
		{"folders that were made for it go", "acme/other/a", []string{"acme", "acme/other", "acme/other/a"}},
		{"folders that others use stay", "acme/demo/1.0.0/b", []string{"acme", "acme/demo", "acme/demo/1.0.0", "acme/demo/1.0.0/b"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			p, dir := onDisk(t)
			if err := p.WriteFile("acme/x", []byte("x")); err != nil {
				t.Fatal(err)
			}
			one, err := p.NewTemporary(t.Context(), "acme/demo/1.0.0/a.zip")
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(p.WriteFile(test.before, nil), os.Remove(filepath.Join(dir, "acme", "x"))); err != nil {
				t.Fatal(err)
			}
			one.Discard()
			one.Discard()
			if names := filesIn(t, dir); !slices.Equal(names, test.left) {
				t.Errorf("there are %v", names)
			}
		})
	}
}

// A sharedDisk has another process make a folder just before this one does.
type sharedDisk struct {
	afero.Fs
	makes string
}

func (d sharedDisk) Mkdir(name string, perm fs.FileMode) error {
	return errors.Join(d.Fs.MkdirAll(d.makes, perm), d.Fs.Mkdir(name, perm))
}

func (d sharedDisk) MkdirAll(name string, perm fs.FileMode) error {
	return errors.Join(d.Fs.MkdirAll(d.makes, perm), d.Fs.MkdirAll(name, perm))
}

// A folder that another process has made meanwhile stays, for whatever it was made.
func TestDiscardLeavesTheFoldersOfOthers(t *testing.T) {
	p, dir := onDisk(t)
	p = changed(p, func(d *Folder) { d.Fs = sharedDisk{d.Fs, "providers/acme"} })
	one, err := p.NewTemporary(t.Context(), "acme/demo/1.0.0/a.zip")
	if err != nil {
		t.Fatal(err)
	}
	one.Discard()
	if names := filesIn(t, dir); !slices.Equal(names, []string{"acme"}) {
		t.Errorf("there are %v", names)
	}
}

// A part elsewhere that is gone is not made again: files written to another place would be
// lost.
func TestTemporariesNeedTheTree(t *testing.T) {
	elsewhere := t.TempDir()
	providers, err := Open(elsewhere)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(elsewhere); err != nil {
		t.Fatal(err)
	}
	if _, err := providers.NewTemporary(t.Context(), "acme/demo/a.zip"); !errors.Is(err, tree.ErrReplaced) || !errors.Is(err, tree.ErrNotWritable) {
		t.Errorf("got %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	keys, _ := onDisk(t)
	if _, err := keys.NewTemporary(ended, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestSmallFilesAreReplacedAsAWhole(t *testing.T) {
	p, dir := onDisk(t)
	if err := p.WriteFile("a/b", []byte("first")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "a", "b")
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.WriteFile("a/b", []byte("second")); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(file)
	if err != nil || string(content) != "second" {
		t.Errorf("it has %q (%v)", content, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("it is %v (%v)", info.Mode(), err)
	}
	if err := os.Mkdir(filepath.Join(dir, "a", "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := p.WriteFile("a/folder", []byte("third")); !errors.Is(err, tree.ErrNotWritable) || strings.Contains(err.Error(), dir) {
		t.Errorf("got %v", err)
	}
	if names := filesIn(t, dir); !slices.Equal(names, []string{"a", "a/b", "a/folder"}) {
		t.Errorf("there are %v", names)
	}
}

// A file that another instance writes stays: a locked file whatever its age, and a file that
// was written to recently, locked or not.
func TestRemoveTemporaries(t *testing.T) {
	p, dir := onDisk(t)
	write := func(name string, old bool) {
		t.Helper()
		at := time.Now()
		if old {
			at = at.Add(-2 * abandonedAfter)
		}
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, nil, 0o644), os.Chtimes(file, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	const alive = "s/.a.ALIVEALIVE.part"
	write(alive, true)
	write("s/.a.LEFTLEFT22.part", true)
	write("s/.a.YOUNGYOUNG.part", false) // of a machine whose locks this one does not see
	write("s/.b.LEFTLEFT22.tmp", true)
	write("s/.b.YOUNGYOUNG.tmp", false)
	write("s/1/.c.LEFTLEFT22.part", true)
	write("s/1/2/.c.LEFTLEFT22.part", true) // deeper than asked for
	write("s/.folder.LEFTLEFT22.tmp/x", true)
	write("s/.mine.part", true)
	old := time.Now().Add(-2 * abandonedAfter)
	if err := os.Chtimes(filepath.Join(dir, "s", ".folder.LEFTLEFT22.tmp"), old, old); err != nil {
		t.Fatal(err)
	}
	lock := flock.New(filepath.Join(dir, filepath.FromSlash(alive)))
	if locked, err := lock.TryLock(); !locked || err != nil {
		t.Fatal(err)
	}
	defer lock.Close()

	if n := p.RemoveTemporaries(t.Context(), "s", 1); n != 4 {
		t.Errorf("removed %d", n)
	}
	stays := []string{"s", "temporary", "temporary", "temporary", "s/.mine.part", "s/1", "s/1/2", "temporary"}
	if names := filesIn(t, dir); !slices.Equal(names, stays) {
		t.Errorf("there are %v", names)
	}
}

// A file that cannot be locked does not arrive: it could be taken for a leftover. Only where
// there are no locks it does.
func TestTemporariesThatCannotBeLocked(t *testing.T) {
	p, dir := onDisk(t)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	aFile := filepath.Join(dir, "a")
	if err := os.WriteFile(aFile, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	p = changed(p, func(d *Folder) { d.Disk = aFile }) // there is nothing to open below it
	if _, err := p.NewTemporary(t.Context(), "b.zip"); !errors.Is(err, tree.ErrNotWritable) && runtime.GOOS != "windows" {
		t.Errorf("got %v", err)
	}
	if names := filesIn(t, dir); !slices.Equal(names, []string{"a"}) {
		t.Errorf("there are %v", names)
	}
}

// A name is absent only if the disk says so.
func TestNamesThatCannotBeLookedAt(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there a file has no names below it")
	}
	p, dir := onDisk(t)
	if err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(dir, "a"), []byte("x"), 0o644)); err != nil {
		t.Fatal(err)
	}
	if exists, err := p.Exists("b"); exists || err != nil {
		t.Errorf("what is not there: %t, %v", exists, err)
	}
	p = changed(p, func(d *Folder) { d.Disk = filepath.Join(dir, "a") }) // whatever is below it
	if exists, err := p.Exists("b"); !errors.Is(err, tree.ErrNotWritable) {
		t.Errorf("what cannot be looked at: %t, %v", exists, err)
	}
}

// A file stays whose lock cannot be tried, for example for lack of open files. Where there are
// no locks, its age alone counts.
func TestRemoveTemporariesWhoseLocksFail(t *testing.T) {
	p, dir := onDisk(t)
	const name = ".a.LEFTLEFT22.part"
	file, old := filepath.Join(dir, name), time.Now().Add(-2*abandonedAfter)
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(file, nil, 0o644), os.Chtimes(file, old, old)); err != nil {
		t.Fatal(err)
	}
	failing := changed(p, func(d *Folder) { d.Disk = file }) // there is nothing to open below it
	if n := failing.RemoveTemporaries(t.Context(), ".", 0); n > 0 && runtime.GOOS != "windows" {
		t.Errorf("removed %d", n)
	}
	for err, want := range map[error]bool{
		syscall.ENOSYS: true, syscall.EOPNOTSUPP: true, syscall.ENOLCK: true, errors.ErrUnsupported: true,
		syscall.EMFILE: false, syscall.EACCES: false, syscall.EIO: false, syscall.ESTALE: false,
	} {
		if got := hasNoLocks(&fs.PathError{Op: "flock", Path: "x", Err: err}); got != want {
			t.Errorf("%v means that there are no locks: %t", err, got)
		}
	}
}

// Where machines do not see each other's locks, an instance that starts keeps the file that
// another instance is receiving as long as pieces of it arrive.
func TestUploadsWhoseLocksAreNotSeen(t *testing.T) {
	p, dir := onDisk(t)
	begun, err := p.NewTemporary(t.Context(), ".staging/a.zip")
	if err != nil {
		t.Fatal(err)
	}
	upload := begun.(*temporaryFile)
	upload.unlock()
	upload.lock = nil
	began := time.Now().Add(-2 * abandonedAfter) // a slow client
	if err := os.Chtimes(filepath.Join(dir, filepath.FromSlash(upload.name)), began, began); err != nil {
		t.Fatal(err)
	}
	if _, err := upload.Write([]byte("content")); err != nil {
		t.Fatal(err)
	}
	if n := p.RemoveTemporaries(t.Context(), ".staging", 0); n > 0 {
		t.Errorf("removed %d", n)
	}
	if _, err := upload.Create(t.Context(), "a.zip"); err != nil {
		t.Error(err)
	}
}
