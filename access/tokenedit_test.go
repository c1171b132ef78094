package access

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

func tokensPath(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func wantTokens(t *testing.T, path, want string) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(content) != want {
		t.Errorf("the file has\n%q\nwant\n%q", content, want)
	}
}

func TestAddToken(t *testing.T) {
	expires := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	line := tokenLineOf("ci", "secret", "groups=dev,ops expires=2027-01-01T00:00:00Z")
	tests := []struct {
		rule, before, want string
	}{
		{"an empty file", "", line},
		{"comments and order stay", "# of us\n" + tokenLineOf("a", "a") + "\n\n# more\n", "# of us\n" + tokenLineOf("a", "a") + "\n\n# more\n" + line},
		{"the last line is ended", "# x", "# x\n" + line},
		{"lines end as the others do", "# x\r\n", "# x\r\n" + strings.TrimSuffix(line, "\n") + "\r\n"},
		{"a comment is no token", "# ci sha256:00\n", "# ci sha256:00\n" + line},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			path := tokensPath(t, test.before)
			entry := TokenEntry{Name: "ci", Groups: []string{"dev", "ops"}, Expires: expires.In(time.FixedZone("", 3600))}
			if err := AddToken(path, entry, "secret"); err != nil {
				t.Fatal(err)
			}
			wantTokens(t, path, test.want)
		})
	}
}

func TestAddTokenMakesTheFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "tokens")
	if err := AddToken(path, TokenEntry{Name: "ci"}, "secret"); err != nil {
		t.Fatal(err)
	}
	wantTokens(t, path, tokenLineOf("ci", "secret"))
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

func TestAddTokenRefuses(t *testing.T) {
	good := tokenLineOf("ci", "a")
	tests := []struct {
		rule, before string
		entry        TokenEntry
		secret, want string
	}{
		{"a name that is there", good, TokenEntry{Name: "ci"}, "b", "revoke it first"},
		{"the name of a bad line", "ci sha256:00\n", TokenEntry{Name: "ci"}, "b", "revoke it first"},
		{"a token that is there", good, TokenEntry{Name: "b"}, "a", "has the token of line 1"},
		{"a file with a bad line", "x\n", TokenEntry{Name: "ci"}, "b", "line 1: "},
		{"a file that is full", strings.Repeat("#", maxTokensFile-10), TokenEntry{Name: "ci"}, "b", "larger than"},
		{"a bad name", good, TokenEntry{Name: "c i"}, "b", "a space"},
		{"a bad group", good, TokenEntry{Name: "b", Groups: []string{"*"}}, "b", "a *"},
		{"an empty token", good, TokenEntry{Name: "b"}, "", "is empty"},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			path := tokensPath(t, test.before)
			err := AddToken(path, test.entry, test.secret)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one with %q", err, test.want)
			}
			wantTokens(t, path, test.before)
		})
	}
}

func TestRevokeToken(t *testing.T) {
	a, b := tokenLineOf("a", "a"), tokenLineOf("b", "b")
	tests := []struct {
		rule, before, want string
	}{
		{"comments and order stay", "# x\n" + a + "# y\n\n" + b, "# x\n# y\n\n" + b},
		{"the last line", b + strings.TrimSuffix(a, "\n"), b},
		{"the only one", a, ""},
		{"lines end in CRLF", "# x\r\na sha256:" + tokenHex + "\r\n# y\r\n", "# x\r\n# y\r\n"},
		{"its line is bad", "a sha256:0 x\n" + b, b},
		{"another line is bad", "x\n" + a, "x\n"},
		{"all lines of the name", a + b + "a sha256:00\n", b},
		{"a name that only begins alike", tokenLineOf("ab", "ab") + a, tokenLineOf("ab", "ab")},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			path := tokensPath(t, test.before)
			if err := RevokeToken(path, "a"); err != nil {
				t.Fatal(err)
			}
			wantTokens(t, path, test.want)
		})
	}
}

func TestRevokeTokenRefuses(t *testing.T) {
	content := "# secret sha256:00\n" + tokenLineOf("ci", "a")
	path := tokensPath(t, content)
	tests := []struct {
		rule, path, name, want string
	}{
		{"a name nobody has", path, "secret", "no token in the file has this name"},
		{"a name in other letters", path, "CI", "no token in the file has this name"},
		{"a token instead of its name", path, "tfr_secret", "there is a token or a hash in its place"},
		{"a missing file", path + "2", "ci", ""},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			err := RevokeToken(test.path, test.name)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got error %v, want one with %q", err, test.want)
			}
			if test.want == "" && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("got error %v", err)
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("the error has a secret in it: %v", err)
			}
			wantTokens(t, path, content)
		})
	}
}

func TestListTokens(t *testing.T) {
	want := []TokenEntry{{Name: "a"}, {Name: "b", Groups: []string{"dev"}}}
	path := tokensPath(t, tokenLineOf("a", "a")+tokenLineOf("b", "b", "groups=dev"))
	if got, err := ListTokens(path); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v and error %v", got, err)
	}
	path = tokensPath(t, tokenLineOf("a", "a")+"x\n"+tokenLineOf("b", "b", "groups=dev"))
	if got, err := ListTokens(path); err == nil || !strings.Contains(err.Error(), "line 2: ") || !reflect.DeepEqual(got, want) {
		t.Errorf("with a bad line: got %+v and error %v", got, err)
	}
	if _, err := ListTokens(path + "2"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: got error %v", err)
	}
}

func TestEditTokensKeepsTheMode(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no such mode there")
	}
	path := tokensPath(t, "")
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := AddToken(path, TokenEntry{Name: "ci"}, "a"); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("it has the mode %v, error %v", info.Mode(), err)
	}
}

func TestEditTokensFollowsALink(t *testing.T) {
	path := tokensPath(t, "")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(path, link); err != nil {
		t.Skip("there are no symbolic links here")
	}
	if err := AddToken(link, TokenEntry{Name: "ci"}, "a"); err != nil {
		t.Fatal(err)
	}
	wantTokens(t, path, tokenLineOf("ci", "a"))
	if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link was replaced, error %v", err)
	}
}

// Edits take their turns, and a reader never sees half a file.
func TestEditTokensConcurrently(t *testing.T) {
	const edits = 10
	path := tokensPath(t, "# ours\n"+tokenLineOf("gone", "gone"))
	var done sync.WaitGroup
	for i := range edits {
		done.Go(func() {
			if err := AddToken(path, TokenEntry{Name: fmt.Sprintf("ci-%d", i)}, NewToken()); err != nil {
				t.Error(err)
			}
		})
		done.Go(func() {
			if _, err := ListTokens(path); err != nil {
				t.Error(err)
			}
		})
	}
	done.Go(func() {
		if err := RevokeToken(path, "gone"); err != nil {
			t.Error(err)
		}
	})
	done.Wait()
	if got, err := ListTokens(path); err != nil || len(got) != edits {
		t.Errorf("got %d tokens and error %v, want %d", len(got), err, edits)
	}
}
