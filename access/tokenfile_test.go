package access

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

// A watchedTokens is a tokens file with a clock that only moves when told, and
// what it logs.
type watchedTokens struct {
	*TokenFile
	t    *testing.T
	path string
	time atomic.Pointer[time.Time]
	log  bytes.Buffer
}

func watchTokens(t *testing.T, content string) *watchedTokens {
	t.Helper()
	w := &watchedTokens{t: t, path: filepath.Join(t.TempDir(), "tokens")}
	w.time.Store(&tokenTime)
	w.write(content)
	file, err := OpenTokenFile(w.path, slog.New(slog.NewTextHandler(&w.log, nil)), func() time.Time { return *w.time.Load() })
	if err != nil {
		t.Fatal(err)
	}
	w.TokenFile = file
	return w
}

// write replaces the file by one that has rested for long.
func (w *watchedTokens) write(content string) {
	w.t.Helper()
	temporary := w.path + ".tmp"
	if err := os.WriteFile(temporary, []byte(content), 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.touch(temporary, tokenTime.Add(-time.Hour))
	if err := os.Rename(temporary, w.path); err != nil {
		w.t.Fatal(err)
	}
}

func (w *watchedTokens) touch(path string, modified time.Time) {
	w.t.Helper()
	if err := os.Chtimes(path, modified, modified); err != nil {
		w.t.Fatal(err)
	}
}

func (w *watchedTokens) pass(d time.Duration) {
	now := w.time.Load().Add(d)
	w.time.Store(&now)
}

func (w *watchedTokens) finds(secret, want string) {
	w.t.Helper()
	if s, err := w.Find(secret); s.ID != want || (err == nil) != (want != "") {
		w.t.Errorf("%s: got %+v and error %v, want %q", secret, s, err, want)
	}
}

// logged takes what was logged since the last time.
func (w *watchedTokens) logged(lines int, part string) {
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

func TestTokenFileChanges(t *testing.T) {
	w := watchTokens(t, tokenLineOf("a", "a"))
	w.finds("a", "a")

	w.write(tokenLineOf("b", "b"))
	w.pass(tokenFileLook - 1)
	w.finds("a", "a") // not looked at yet
	w.pass(1)
	w.finds("a", "")
	w.finds("b", "b")
	w.logged(1, "tokens=1")

	w.pass(time.Hour)
	w.finds("b", "b")
	w.logged(0, "")
}

func TestTokenFileNoticesChanges(t *testing.T) {
	tests := []struct {
		rule   string
		change func(w *watchedTokens)
	}{
		{"another file of the same size and time", func(w *watchedTokens) { w.write(tokenLineOf("b", "b")) }},
		{"another size", func(w *watchedTokens) {
			if err := os.WriteFile(w.path, []byte(tokenLineOf("b", "b")+"\n"), 0o600); err != nil {
				w.t.Fatal(err)
			}
			w.touch(w.path, tokenTime.Add(-time.Hour))
		}},
		{"another time", func(w *watchedTokens) {
			if err := os.WriteFile(w.path, []byte(tokenLineOf("b", "b")), 0o600); err != nil {
				w.t.Fatal(err)
			}
			w.touch(w.path, tokenTime.Add(-time.Minute))
		}},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			w := watchTokens(t, tokenLineOf("a", "a"))
			test.change(w)
			w.pass(tokenFileLook)
			w.finds("a", "")
			w.finds("b", "b")
		})
	}
}

// Two writes within one step of the file system's clock look like one.
func TestTokenFileReadsAFreshFileAgain(t *testing.T) {
	w := watchTokens(t, tokenLineOf("a", "a"))
	fresh := func(content string) {
		if err := os.WriteFile(w.path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		w.touch(w.path, tokenTime)
	}
	fresh(tokenLineOf("b", "b"))
	w.pass(tokenFileLook)
	w.finds("b", "b")
	fresh(tokenLineOf("c", "c"))
	w.pass(tokenFileLook)
	w.finds("c", "c")
	w.logged(2, "")

	// When it has rested, it is not read any more.
	w.pass(tokenFileRest)
	w.finds("c", "c")
	if w.info == nil {
		t.Error("the file would be read for ever")
	}
	w.logged(0, "")
}

func TestTokenFileWithABadLine(t *testing.T) {
	w := watchTokens(t, tokenLineOf("a", "a")+tokenLineOf("b", "b"))
	w.write(tokenLineOf("a", "a", "expires=soon") + tokenLineOf("b", "b"))
	for range 3 {
		w.pass(tokenFileLook)
		w.finds("a", "")
		w.finds("b", "b")
	}
	w.logged(2, "line 1: a: expires=")

	w.write(tokenLineOf("a", "a") + tokenLineOf("b", "b"))
	w.pass(tokenFileLook)
	w.finds("a", "a")
	w.logged(1, "tokens=2")
}

func TestTokenFileIsGone(t *testing.T) {
	w := watchTokens(t, tokenLineOf("a", "a"))
	if err := os.Remove(w.path); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		w.pass(tokenFileLook)
		w.finds("a", "")
	}
	w.logged(1, "is gone")

	w.write(tokenLineOf("a", "a"))
	w.pass(tokenFileLook)
	w.finds("a", "a")
	w.logged(1, "tokens=1")
}

func TestTokenFileCannotBeRead(t *testing.T) {
	w := watchTokens(t, tokenLineOf("a", "a"))
	if err := os.Remove(w.path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(w.path, 0o700); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		w.pass(tokenFileLook)
		w.finds("a", "a")
	}
	w.logged(1, "still accepted")

	if err := os.Remove(w.path); err != nil {
		t.Fatal(err)
	}
	w.write(tokenLineOf("a", "a"))
	w.pass(tokenFileLook)
	w.finds("a", "a")
	w.logged(1, "can be read again")
}

func TestTokenFileThatIsTooLarge(t *testing.T) {
	w := watchTokens(t, tokenLineOf("a", "a"))
	w.write(tokenLineOf("a", "a") + strings.Repeat("#", maxTokensFile))
	w.pass(tokenFileLook)
	w.finds("a", "")
	w.logged(2, "larger than")
}

func TestTokenFileExpiry(t *testing.T) {
	w := watchTokens(t, tokenLineOf("a", "a", "expires="+tokenTime.Add(time.Millisecond).Format(time.RFC3339Nano)))
	w.finds("a", "a")
	w.pass(time.Millisecond) // no look at the file is due
	if _, err := w.Find("a"); !errors.Is(err, ErrTokenExpired) {
		t.Errorf("got error %v", err)
	}
}

// A clock that is set back must not keep the file from being looked at.
func TestTokenFileWhenTheClockGoesBack(t *testing.T) {
	w := watchTokens(t, tokenLineOf("a", "a"))
	w.pass(-time.Hour)
	w.finds("a", "a")
	w.write(tokenLineOf("b", "b"))
	w.pass(tokenFileLook)
	w.finds("a", "")
}

func TestOpenTokenFileRefuses(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad")
	if err := os.WriteFile(bad, []byte("a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		rule, path, want string
	}{
		{"a missing file", filepath.Join(dir, "missing"), fs.ErrNotExist.Error()},
		{"a folder", dir, "is not a file"},
		{"a bad line", bad, "line 1: "},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			_, err := OpenTokenFile(test.path, slog.New(slog.DiscardHandler), time.Now)
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

// While a file is replaced all the time, whoever is in each version of it is
// always found.
func TestTokenFileConcurrently(t *testing.T) {
	w := watchTokens(t, tokenLineOf("a", "a"))
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
		w.write(tokenLineOf("a", "a") + strings.Repeat("#", i) + "\n")
		w.pass(tokenFileLook)
		w.finds("a", "a")
	}
	close(stop)
	done.Wait()
}
