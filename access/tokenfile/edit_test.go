package tokenfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

func tempFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func wantContent(t *testing.T, path, want string) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(content) != want {
		t.Errorf("the file has\n%q\nwant\n%q", content, want)
	}
}

func TestAdd(t *testing.T) {
	expires := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	line := lineOf("ci", "secret", "groups=dev,ops expires=2027-01-01T00:00:00Z")
	tests := []struct {
		rule, before, want string
	}{
		{"an empty file", "", line},
		{"comments and order stay", "# ours\n" + lineOf("a", "a") + "\n\n# more\n", "# ours\n" + lineOf("a", "a") + "\n\n# more\n" + line},
		{"the last line gets a line end", "# x", "# x\n" + line},
		{"the line end is that of the others", "# x\r\n", "# x\r\n" + strings.TrimSuffix(line, "\n") + "\r\n"},
		{"a token in a comment does not count", "# ci sha256:00\n", "# ci sha256:00\n" + line},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			path := tempFile(t, test.before)
			entry := Entry{Name: "ci", Groups: []string{"dev", "ops"}, Expires: expires.In(time.FixedZone("", 3600))}
			if err := Add(path, entry, "secret"); err != nil {
				t.Fatal(err)
			}
			wantContent(t, path, test.want)
		})
	}
}

func TestAddCreatesTheFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "tokens")
	if err := Add(path, Entry{Name: "ci"}, "secret"); err != nil {
		t.Fatal(err)
	}
	wantContent(t, path, lineOf("ci", "secret"))
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("it has the mode %v", info.Mode())
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != "tokens" && e.Name() != ".tokens.lock" {
			t.Errorf("%s was left behind", e.Name())
		}
	}
}

func TestAddRefuses(t *testing.T) {
	good := lineOf("ci", "a")
	tests := []struct {
		rule, before string
		entry        Entry
		secret, want string
	}{
		{"a name in use", good, Entry{Name: "ci"}, "b", "revoke it first"},
		{"the name of an invalid line", "ci sha256:00\n", Entry{Name: "ci"}, "b", "revoke it first"},
		{"a token in use", good, Entry{Name: "b"}, "a", "has the token of line 1"},
		{"a file with an invalid line", "x\n", Entry{Name: "ci"}, "b", "line 1: "},
		{"a file that is full", strings.Repeat("#", maxFile-10), Entry{Name: "ci"}, "b", "larger than"},
		{"an invalid name", good, Entry{Name: "c i"}, "b", "a space"},
		{"an invalid group", good, Entry{Name: "b", Groups: []string{"*"}}, "b", "a *"},
		{"an empty token", good, Entry{Name: "b"}, "", "is empty"},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			path := tempFile(t, test.before)
			err := Add(path, test.entry, test.secret)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one with %q", err, test.want)
			}
			wantContent(t, path, test.before)
		})
	}
}

func TestRevoke(t *testing.T) {
	a, b := lineOf("a", "a"), lineOf("b", "b")
	tests := []struct {
		rule, before, want string
	}{
		{"comments and order stay", "# x\n" + a + "# y\n\n" + b, "# x\n# y\n\n" + b},
		{"the last line", b + strings.TrimSuffix(a, "\n"), b},
		{"the only one", a, ""},
		{"lines end in CRLF", "# x\r\na sha256:" + someHash + "\r\n# y\r\n", "# x\r\n# y\r\n"},
		{"its line is invalid", "a sha256:0 x\n" + b, b},
		{"another line is invalid", "x\n" + a, "x\n"},
		{"all lines of the name", a + b + "a sha256:00\n", b},
		{"a name with the same beginning", lineOf("ab", "ab") + a, lineOf("ab", "ab")},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			path := tempFile(t, test.before)
			if err := Revoke(path, "a"); err != nil {
				t.Fatal(err)
			}
			wantContent(t, path, test.want)
		})
	}
}

func TestRevokeRefuses(t *testing.T) {
	content := "# secret sha256:00\n" + lineOf("ci", "a")
	path := tempFile(t, content)
	tests := []struct {
		rule, path, name, want string
	}{
		{"an unknown name", path, "secret", "no token in the file has this name"},
		{"a name in another case", path, "CI", "no token in the file has this name"},
		{"a token instead of its name", path, "tfr_secret", "there is a token or a hash in its place"},
		{"a missing file", path + "2", "ci", ""},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			err := Revoke(test.path, test.name)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got error %v, want one with %q", err, test.want)
			}
			if test.want == "" && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("got error %v", err)
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("the error has a secret in it: %v", err)
			}
			wantContent(t, path, content)
		})
	}
}

func TestList(t *testing.T) {
	want := []Entry{{Name: "a"}, {Name: "b", Groups: []string{"dev"}}}
	path := tempFile(t, lineOf("a", "a")+lineOf("b", "b", "groups=dev"))
	if got, err := List(path); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v and error %v", got, err)
	}
	path = tempFile(t, lineOf("a", "a")+"x\n"+lineOf("b", "b", "groups=dev"))
	if got, err := List(path); err == nil || !strings.Contains(err.Error(), "line 2: ") || !reflect.DeepEqual(got, want) {
		t.Errorf("with an invalid line: got %+v and error %v", got, err)
	}
	if _, err := List(path + "2"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: got error %v", err)
	}
}

func TestEditKeepsTheMode(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no such mode on Windows")
	}
	path := tempFile(t, "")
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := Add(path, Entry{Name: "ci"}, "a"); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("it has the mode %v, error %v", info.Mode(), err)
	}
}

func TestEditFollowsALink(t *testing.T) {
	path := tempFile(t, "")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(path, link); err != nil {
		t.Skipf("symbolic links are not available: %v", err)
	}
	if err := Add(link, Entry{Name: "ci"}, "a"); err != nil {
		t.Fatal(err)
	}
	wantContent(t, path, lineOf("ci", "a"))
	if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link was replaced, error %v", err)
	}
}

// The volume with the target may not be mounted. A file in the place of the link would have the new
// token alone.
func TestEditKeepsALinkToNothing(t *testing.T) {
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(filepath.Join(t.TempDir(), "volume", "tokens"), link); err != nil {
		t.Skipf("symbolic links are not available: %v", err)
	}
	err := Add(link, Entry{Name: "ci"}, "a")
	if err == nil || errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "a symlink to nothing") {
		t.Errorf("got %v", err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link was replaced, error %v", err)
	}
}

// Edits exclude each other, and a reader never sees half a file.
func TestEditConcurrently(t *testing.T) {
	const edits = 10
	path := tempFile(t, "# ours\n"+lineOf("gone", "gone"))
	var done sync.WaitGroup
	for i := range edits {
		done.Go(func() {
			if err := Add(path, Entry{Name: fmt.Sprintf("ci-%d", i)}, Generate()); err != nil {
				t.Error(err)
			}
		})
		done.Go(func() {
			if _, err := List(path); err != nil {
				t.Error(err)
			}
		})
	}
	done.Go(func() {
		if err := Revoke(path, "gone"); err != nil {
			t.Error(err)
		}
	})
	done.Wait()
	if got, err := List(path); err != nil || len(got) != edits {
		t.Errorf("got %d tokens and error %v, want %d", len(got), err, edits)
	}
}
