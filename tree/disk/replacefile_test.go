package disk

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
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
