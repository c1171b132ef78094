package watch

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// fsnotify holds its lock while it reports an error, as it does when a folder is renamed again
// before its watch has been dropped. Adding and dropping watches must not wait for that.
func TestFoldersThatAreRenamedAgainAndAgain(t *testing.T) {
	root := t.TempDir()
	deep := filepath.Join(root, "modules/acme/vpc/aws")
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	files, err := tree.Directories{Root: root}.Open()
	if err != nil {
		t.Fatal(err)
	}
	w, err := New(t.Context(), func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	var writers sync.WaitGroup
	for n := range 4 {
		writers.Go(func() {
			for i := range 300 {
				name, other := filepath.Join(deep, fmt.Sprintf("%d.0.0", n)), filepath.Join(deep, fmt.Sprintf("%d.%d.1", n, i))
				_ = os.MkdirAll(filepath.Join(name, "modules/a/b"), 0o755)
				for _, dir := range []string{"", "/modules", "/modules/a", "/modules/a/b"} {
					w.Add(files.Modules, fmt.Sprintf("acme/vpc/aws/%d.0.0%s", n, dir), "modules/acme/vpc/aws")
				}
				_ = os.Rename(name, other)
				_ = os.RemoveAll(other)
			}
		})
	}
	writers.Wait()
	w.Finish()
	w.Finish()
}
