package pull_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

// many returns a site with one release for n platforms, and the names of its packages.
func many(t testing.TB, n int) (s *site, names []string) {
	t.Helper()
	folders, publisher := indextest.New(t), indextest.NewPublisher(t)
	var platforms []string
	for i := range n {
		platforms = append(platforms, fmt.Sprintf("linux_cpu%d", i))
		names = append(names, "terraform-provider-demo_1.0.0_"+platforms[i]+".zip")
	}
	folders.Provider("acme/demo", "1.0.0", platforms...).Signed(publisher)
	folders.Keys("acme", publisher)
	return newSite(t, folders), names
}

// descriptors counts the descriptors of this process for files in a directory.
func descriptors(t testing.TB, dir string) (n int) {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range open {
		if to, err := os.Readlink(filepath.Join("/proc/self/fd", fd.Name())); err == nil && to == dir {
			n++
		}
	}
	return n
}

// Remembered files keep no descriptors open: their tree is opened again.
func TestFilledFilesKeepNothingOpen(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells what descriptors are of")
	}
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s, names := many(t, 20)
	var m *mirroring
	s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
		m = over(t, c, pull.Policy{}, treeRoot{dir: root})
		for _, name := range names {
			m.fill(t, name)
			time.Sleep(time.Second) // until the open tree is no longer used
		}
		m.Close()
	})
	// The garbage collector closes what is unreachable, some time later.
	deadline := time.Now().Add(20 * time.Second)
	const most = 2 // the test's own tree, and the last opened one
	for descriptors(t, root) > most && time.Now().Before(deadline) {
		runtime.GC()
	}
	if n := descriptors(t, root); n > most {
		t.Errorf("%d descriptors are open", n)
	}
	runtime.KeepAlive(m)
}

// However often remembered files are checked, the tree is opened once a second. The
// Filler then follows a root that was replaced.
func TestTheTreeIsOpenedOnceInASecond(t *testing.T) {
	s := newAcme(t)
	s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
		folders, replaced, opened := indextest.New(t), false, 0
		m := (&mirroring{Tree: folders}).start(t, c, pull.Options{Sources: sourceOf(c, pull.Policy{}), Open: func() (tree.Tree, error) {
			if opened++; replaced {
				return indextest.New(t).Open()
			}
			return folders.Open()
		}})
		defer m.Close()
		f := m.fill(t, linuxZip)
		for range 100 {
			if !m.remembers(linuxZip) {
				t.Fatal("it is not there")
			}
			m.content(t, f)
		}
		synctest.Wait()
		if opened != 1 {
			t.Errorf("it is opened %d times", opened)
		}
		replaced = true
		time.Sleep(time.Second)
		if m.remembers(linuxZip) {
			t.Error("it is still remembered")
		}
	})
}
