package watch

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// fsnotify holds its lock while it reports an error, as it does when a folder is renamed again
// before its watch has been dropped. Adding and dropping watches must not wait for that.
func TestFoldersThatAreRenamedAgainAndAgain(t *testing.T) {
	root, files, w := watching(t, "modules/acme/vpc/aws")
	deep := filepath.Join(root, "modules/acme/vpc/aws")
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
