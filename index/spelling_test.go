package index_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// A scan of one folder finds the namespace in another spelling that has come meanwhile, though it
// reads the names of all namespaces only if the time of their folder has changed.
func TestAScanOfOneFolderFindsAnotherSpellingOfItsNamespace(t *testing.T) {
	root, files, o := onDisk(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64")
	o.Now = inAnHour
	x := newIndex(t, o)
	rescan(t, x)
	info, err := os.Stat(filepath.Join(root, "providers"))
	if err != nil {
		t.Fatal(err)
	}
	for time.Since(info.ModTime()) < 50*time.Millisecond { // file systems keep times with some milliseconds
		runtime.Gosched()
	}
	files.Provider("acme/new", "1.0.0", "linux_amd64")
	files.Provider("ACME/other", "1.0.0", "linux_amd64")
	before := x.Snapshot()
	x.Refresh("providers/acme/new")
	x.Start()
	s := x.Next(t.Context(), before)
	known := make(map[string]bool)
	for a := range s.Folders() {
		known[a.String()] = true
	}
	for _, name := range []string{"acme/demo", "acme/new", "acme/other"} {
		if !known[addressAt("", name).String()] {
			t.Errorf("%s is not known: %v are", name, known)
		}
	}
}
