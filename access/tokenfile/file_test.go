package tokenfile

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A watchedFile is a file with a clock that the test moves, and its log.
type watchedFile struct {
	*File
	t    *testing.T
	path string
	time atomic.Pointer[time.Time]
	log  bytes.Buffer
}

func watch(t *testing.T, content string) *watchedFile {
	t.Helper()
	w := &watchedFile{t: t, path: filepath.Join(t.TempDir(), "tokens")}
	w.time.Store(&testTime)
	w.write(content)
	file, err := Open(w.path, slog.New(slog.NewTextHandler(&w.log, nil)), func() time.Time { return *w.time.Load() })
	if err != nil {
		t.Fatal(err)
	}
	w.File = file
	return w
}

// write replaces the file by a file that was modified long ago.
func (w *watchedFile) write(content string) {
	w.t.Helper()
	temporary := w.path + ".tmp"
	if err := os.WriteFile(temporary, []byte(content), 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.touch(temporary, testTime.Add(-time.Hour))
	if err := os.Rename(temporary, w.path); err != nil {
		w.t.Fatal(err)
	}
}

func (w *watchedFile) touch(path string, modified time.Time) {
	w.t.Helper()
	if err := os.Chtimes(path, modified, modified); err != nil {
		w.t.Fatal(err)
	}
}

func (w *watchedFile) pass(d time.Duration) {
	now := w.time.Load().Add(d)
	w.time.Store(&now)
}

func (w *watchedFile) finds(secret, want string) {
	w.t.Helper()
	if s, err := w.Find(secret); s.ID != want || (err == nil) != (want != "") {
		w.t.Errorf("%s: got %+v and error %v, want %q", secret, s, err, want)
	}
}

// logged checks what was logged since the last call.
func (w *watchedFile) logged(lines int, part string) {
	w.t.Helper()
	text := w.log.String()
	w.log.Reset()
	if strings.Count(text, "\n") != lines || !strings.Contains(text, part) {
		w.t.Errorf("got the log\n%swant %d lines, and %q", text, lines, part)
	}
	if strings.Contains(text, "sha256:") {
		w.t.Errorf("the log has a hash in it:\n%s", text)
	}
}

func TestFileChanges(t *testing.T) {
	w := watch(t, lineOf("a", "a"))
	w.finds("a", "a")

	w.write(lineOf("b", "b"))
	w.pass(checkInterval - 1)
	w.finds("a", "a") // not checked yet
	w.pass(1)
	w.finds("a", "")
	w.finds("b", "b")
	w.logged(1, "tokens=1")

	w.pass(time.Hour)
	w.finds("b", "b")
	w.logged(0, "")
}

func TestFileDetectsChanges(t *testing.T) {
	tests := []struct {
		rule   string
		change func(w *watchedFile)
	}{
		{"another file of the same size and time", func(w *watchedFile) { w.write(lineOf("b", "b")) }},
		{"another size", func(w *watchedFile) {
			if err := os.WriteFile(w.path, []byte(lineOf("b", "b")+"\n"), 0o600); err != nil {
				w.t.Fatal(err)
			}
			w.touch(w.path, testTime.Add(-time.Hour))
		}},
		{"another time", func(w *watchedFile) {
			if err := os.WriteFile(w.path, []byte(lineOf("b", "b")), 0o600); err != nil {
				w.t.Fatal(err)
			}
			w.touch(w.path, testTime.Add(-time.Minute))
		}},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			w := watch(t, lineOf("a", "a"))
			test.change(w)
			w.pass(checkInterval)
			w.finds("a", "")
			w.finds("b", "b")
		})
	}
}

// Two writes within one step of the file system's clock look like one.
func TestFileReadsARecentlyModifiedFileAgain(t *testing.T) {
	w := watch(t, lineOf("a", "a"))
	fresh := func(content string) {
		if err := os.WriteFile(w.path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		w.touch(w.path, testTime)
	}
	fresh(lineOf("b", "b"))
	w.pass(checkInterval)
	w.finds("b", "b")
	fresh(lineOf("c", "c"))
	w.pass(checkInterval)
	w.finds("c", "c")
	w.logged(2, "")

	// Once it has settled, it is not read again.
	w.pass(settleTime)
	w.finds("c", "c")
	if w.info == nil {
		t.Error("the file would be read at every check")
	}
	w.logged(0, "")
}

func TestFileWithAnInvalidLine(t *testing.T) {
	w := watch(t, lineOf("a", "a")+lineOf("b", "b"))
	w.write(lineOf("a", "a", "expires=soon") + lineOf("b", "b"))
	for range 3 {
		w.pass(checkInterval)
		w.finds("a", "")
		w.finds("b", "b")
	}
	w.logged(2, "line 1: a: expires=")

	w.write(lineOf("a", "a") + lineOf("b", "b"))
	w.pass(checkInterval)
	w.finds("a", "a")
	w.logged(1, "tokens=2")
}

func TestFileIsGone(t *testing.T) {
	w := watch(t, lineOf("a", "a"))
	if err := os.Remove(w.path); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		w.pass(checkInterval)
		w.finds("a", "")
	}
	w.logged(1, "is gone")

	w.write(lineOf("a", "a"))
	w.pass(checkInterval)
	w.finds("a", "a")
	w.logged(1, "tokens=1")
}

func TestFileCannotBeRead(t *testing.T) {
	w := watch(t, lineOf("a", "a"))
	if err := os.Remove(w.path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(w.path, 0o700); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		w.pass(checkInterval)
		w.finds("a", "a")
	}
	w.logged(1, "still accepted")

	if err := os.Remove(w.path); err != nil {
		t.Fatal(err)
	}
	w.write(lineOf("a", "a"))
	w.pass(checkInterval)
	w.finds("a", "a")
	w.logged(1, "can be read again")
}

func TestFileThatIsTooLarge(t *testing.T) {
	w := watch(t, lineOf("a", "a"))
	w.write(lineOf("a", "a") + strings.Repeat("#", maxFile))
	w.pass(checkInterval)
	w.finds("a", "")
	w.logged(2, "larger than")
}

func TestFileExpiry(t *testing.T) {
	w := watch(t, lineOf("a", "a", "expires="+testTime.Add(time.Millisecond).Format(time.RFC3339Nano)))
	w.finds("a", "a")
	w.pass(time.Millisecond) // no check of the file is due
	if _, err := w.Find("a"); !errors.Is(err, errExpired) {
		t.Errorf("got error %v", err)
	}
}

// A clock that is set back must not prevent checks of the file.
func TestFileWhenTheClockIsSetBack(t *testing.T) {
	w := watch(t, lineOf("a", "a"))
	w.pass(-time.Hour)
	w.finds("a", "a")
	w.write(lineOf("b", "b"))
	w.pass(checkInterval)
	w.finds("a", "")
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	invalid := filepath.Join(dir, "bad")
	if err := os.WriteFile(invalid, []byte("a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		rule, path, want string
	}{
		{"a missing file", filepath.Join(dir, "missing"), fs.ErrNotExist.Error()},
		{"a directory", dir, "is not a file"},
		{"an invalid line", invalid, "line 1: "},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			_, err := Open(test.path, slog.New(slog.DiscardHandler), time.Now)
			if err == nil || !strings.Contains(err.Error(), test.path) {
				t.Fatalf("got error %v, want one that names the file", err)
			}
			if test.rule == "a missing file" {
				if !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("got error %v", err)
				}
			} else if !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one with %q", err, test.want)
			}
		})
	}
}

// While a file is replaced continuously, a token that is in every version of it is
// always found.
func TestFileConcurrently(t *testing.T) {
	w := watch(t, lineOf("a", "a"))
	var done sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		done.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				w.finds("a", "a")
				w.finds("b", "")
			}
		})
	}
	for i := range 50 {
		w.write(lineOf("a", "a") + strings.Repeat("#", i) + "\n")
		w.pass(checkInterval)
		w.finds("a", "a")
	}
	close(stop)
	done.Wait()
}
