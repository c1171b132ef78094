package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/command/commandtest"
)

func TestTlogRestore(t *testing.T) {
	server := newLoggedServer(t, "restored.example.com")
	run, roots := server.run, server.roots
	const whole = "restored.example.com/v1/tlog has 1 entry, and all files agree.\n"
	server.start(whole)
	backup := filepath.Join(t.TempDir(), "log")
	if err := os.CopyFS(backup, os.DirFS(roots+"/free")); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		rule   string
		do     func() error
		from   string
		status int
		says   string // or its error
	}{
		{"nothing is missing", nil, backup, 0, "Copied 0 files.\n" + whole},
		{"all files are gone", func() error {
			return os.RemoveAll(roots + "/free/batch")
		}, backup, 0, "Copied 1 file.\n" + whole},
		{"the key is gone", func() error { return os.Remove(roots + "/free/key") }, backup, 0, "Copied 1 file.\n" + whole},
		{"the folder of the log", nil, roots + "/free", 2, "it is the folder of the log itself: name a copy"},
		{"a folder that is not there", nil, filepath.Join(backup, "nothing"), 2, "there is no folder " + filepath.Join(backup, "nothing")},
		{"a file", nil, filepath.Join(backup, "key"), 2, filepath.Join(backup, "key") + " is not a folder"},
		{"a folder without a log", nil, t.TempDir(), 1, "it is no copy of a log, since it has no file key"},
		{"a file that differs", func() error { return os.WriteFile(roots+"/free/batch/0", []byte("other"), 0o600) }, backup, 1,
			"fault: batch/0 differs from the copy: if it is damaged, move it away\nNothing was copied.\n"},
		{"which was moved away", func() error { return os.Remove(roots + "/free/batch/0") }, backup, 0, "Copied 1 file.\n" + whole},
		{"a copy of another key", func() error {
			key, err := os.ReadFile(backup + "/key")
			if err != nil {
				return err
			}
			other, _, _ := strings.Cut(string(key), "\n")
			return os.WriteFile(backup+"/key", []byte(other+"\nid "+strings.Repeat("0", 32)+"\n"), 0o600)
		}, backup, 1, "it is no copy of the folder of the log, but another folder with the same key"},
	} {
		if step.do != nil {
			if err := step.do(); err != nil {
				t.Fatal(err)
			}
		}
		out, err := run("restore", step.from)
		says := out
		if err != nil {
			says += err.Error()
		}
		if commandtest.Status(err) != step.status || !strings.Contains(says, step.says) {
			t.Errorf("%s: it says %q, and ends with %d", step.rule, says, commandtest.Status(err))
		}
		commandtest.Fits(t, out)
	}
}
