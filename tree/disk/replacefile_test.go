package disk

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// A file has its old content or the new one, whatever fails, and nothing is left beside it.
func TestReplaceFile(t *testing.T) {
	broken := errors.New("it cannot be prepared")
	for _, test := range []struct {
		rule    string
		prepare func(*os.File) error
		want    string
	}{
		{"it is replaced", nil, "new"},
		{"the new one cannot be prepared", func(*os.File) error { return broken }, "old"},
		{"it cannot be closed", func(f *os.File) error { return f.Close() }, "old"},
	} {
		name := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(name, []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := ReplaceFile(name, []byte("new"), test.prepare); (err == nil) != (test.want == "new") {
			t.Errorf("%s: it says %v", test.rule, err)
		}
		files, err := os.ReadDir(filepath.Dir(name))
		if content, bad := os.ReadFile(name); err != nil || bad != nil || string(content) != test.want || len(files) != 1 {
			t.Errorf("%s: it has %q, %v, beside %v, %v", test.rule, content, bad, files, err)
		}
	}
}

// A crash leaves temporary files. Another process may still write to one that is not old.
func TestTemporariesOfAFile(t *testing.T) {
	dir := t.TempDir()
	for name, age := range map[string]time.Duration{
		"memo": 2 * time.Hour, ".memo-1": 2 * time.Hour, ".memo-2": 50 * time.Minute, ".other-1": 2 * time.Hour,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(filepath.Join(dir, name), time.Time{}, time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	RemoveTemporariesOf(filepath.Join(dir, "memo"))
	var left []string
	files, _ := os.ReadDir(dir)
	for _, f := range files {
		left = append(left, f.Name())
	}
	if want := []string{".memo-2", ".other-1", "memo"}; !slices.Equal(left, want) {
		t.Errorf("%q are left, want %q", left, want)
	}
}
