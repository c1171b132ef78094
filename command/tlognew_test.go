package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The folder of a log is lost, and another log is begun. The server goes on with it.
func TestTlogNew(t *testing.T) {
	server := newLoggedServer(t, "renewed.example.com")
	if says := server.says("new"); !strings.Contains(says, "there is no log to continue: ") {
		t.Errorf("before the first start it says %q", says)
	}
	server.start("renewed.example.com/v1/tlog has 1 entry, and all files agree.\n")
	stop(t)
	if says := server.says("new"); !strings.Contains(says, "the folder has a log: move its files to another place, and keep them") {
		t.Errorf("while the folder has the log, it says %q", says)
	}
	names, err := filepath.Glob(server.roots + "/free/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := os.RemoveAll(name); err != nil {
			t.Fatal(err)
		}
	}
	says := server.says("new")
	if !strings.Contains(strings.Join(strings.Fields(says), " "), "Begun: renewed.example.com/v1/tlog-2, which continues renewed.example.com/v1/tlog after 1 entry. Its key, for those who verify it: renewed.example.com/v1/tlog-2+") || !strings.HasSuffix(says, "\nRestart the server.\n") {
		t.Errorf("it says %q", says)
	}
	server.start("renewed.example.com/v1/tlog-2 has 2 entries, and all files agree.\n")
}
