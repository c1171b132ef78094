package watch

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// symlink has a name lead to a target, in one step as deployments do.
func symlink(t *testing.T, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name+"_new"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(name+"_new", name); err != nil {
		t.Fatal(err)
	}
}

func mkdir(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := os.MkdirAll(name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// scan has a Watcher watch folders, by their names among the providers, as a scan of everything does.
// Those that are called link are symlinks.
func scan(w *Watcher, part tree.Part, names ...string) {
	w.Add(part, ".", "providers")
	for _, name := range names {
		if name == "link" {
			w.AddLink(part, name, true)
		}
		w.Add(part, name, "providers/"+name)
	}
	w.Finish()
}

// until waits until something has changed in a folder, by its path in the report.
func until(t *testing.T, w *Watcher, report string) {
	t.Helper()
	timeout := time.After(30 * time.Second)
	for !w.Take()[report] {
		select {
		case <-w.Changes():
		case <-timeout:
			t.Fatalf("no change of %q is noticed", report)
		}
	}
}

// watchedByKernel returns the directories that an inotify instance of this process watches.
func watchedByKernel(t *testing.T, dirs ...string) (watched []string) {
	t.Helper()
	instances, err := filepath.Glob("/proc/self/fdinfo/*")
	if err != nil {
		t.Fatal(err)
	}
	var watches []string
	for _, name := range instances {
		content, _ := os.ReadFile(name) // the file may have been closed meanwhile
		for line := range strings.Lines(string(content)) {
			if _, of, ok := strings.Cut(line, " ino:"); ok && strings.HasPrefix(line, "inotify wd:") {
				inode, _, _ := strings.Cut(of, " ")
				watches = append(watches, inode)
			}
		}
	}
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(watches, fmt.Sprintf("%x", info.Sys().(*syscall.Stat_t).Ino)) {
			watched = append(watched, filepath.Base(dir))
		}
	}
	return watched
}

// Deployments point a symlink elsewhere, again and again. What they leave behind is not watched.
func TestADirectoryIsWatchedUntilAnotherHasItsName(t *testing.T) {
	root, files, w := watching(t, "providers")
	var releases []string
	for n := range 3 {
		releases = append(releases, fmt.Sprint(root, "/releases/", n))
		mkdir(t, releases[n])
		symlink(t, releases[n], root+"/providers/link")
		scan(w, files.Providers, "link")
		if got, want := watchedByKernel(t, releases...), []string{fmt.Sprint(n)}; !slices.Equal(got, want) {
			t.Errorf("watched are %q, want %q", got, want)
		}
	}
}

// A symlink that led to one of two watched folders leads to the other one, and then there is only the
// other one.
func TestASymlinkMayLeadFromOneWatchedFolderToAnother(t *testing.T) {
	root, files, w := watching(t, "providers/v1")
	mkdir(t, root+"/providers/v2")
	symlink(t, "v1", root+"/providers/link")
	scan(w, files.Providers, "link", "v1", "v2")
	symlink(t, "v2", root+"/providers/link")
	scan(w, files.Providers, "link", "v1", "v2")
	scan(w, files.Providers, "v2")
	if got := watchedByKernel(t, root+"/providers/v1", root+"/providers/v2"); !slices.Equal(got, []string{"v2"}) {
		t.Errorf("watched are %q", got)
	}
}

// A folder that has two names stays watched when one of them is given to another folder.
func TestAFolderKeepsItsOtherName(t *testing.T) {
	root, files, w := watching(t, "providers/a")
	mkdir(t, root+"/providers/z")
	symlink(t, "a", root+"/providers/link")
	scan(w, files.Providers, "link", "a", "z") // the folder is watched as link
	symlink(t, "z", root+"/providers/link")
	scan(w, files.Providers, "a", "link", "z")
	if got := watchedByKernel(t, root+"/providers/a", root+"/providers/z"); !slices.Equal(got, []string{"a", "z"}) {
		t.Errorf("watched are %q", got)
	}
	if changed := w.Take(); !changed[""] {
		t.Error("what has changed in between is missed")
	}
	mkdir(t, root+"/providers/a/demo")
	until(t, w, "providers/a/demo")
}

// If a name is given to another folder between the look at it and its watch, fsnotify has a name
// without a watch. Ending that watch, and adding the name again, works all the same.
func TestANameWithoutAWatch(t *testing.T) {
	root, _, w := watching(t, "a")
	mkdir(t, root+"/b", root+"/c")
	link, d := root+"/link", w.directories
	point := func(target string) {
		symlink(t, target, link)
		if err := d.notify.Add(link); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.notify.Add(root + "/b"); err != nil {
		t.Fatal(err)
	}
	point("a")
	point("b")
	if d.remove(link) {
		t.Error("a watch has ended")
	}
	point("c")
	if got := watchedByKernel(t, root+"/b", root+"/c"); !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("watched are %q", got)
	}
}

// The target of a symlink comes back, in whichever of its folders. Until then the symlink is no reason
// to take any event for one of everything.
func TestTheTargetOfASymlinkComesBack(t *testing.T) {
	root, files, w := watching(t, "providers/acme")
	mkdir(t, root+"/store")
	symlink(t, "../store/current/acme", root+"/providers/link")
	w.Add(files.Providers, "acme", "providers/acme")
	w.AddLink(files.Providers, "link", false)
	w.Finish()
	if reports, ok := w.concerns(root + "/providers/acme/demo"); !ok || slices.Contains(reports, "") {
		t.Errorf("a file in another folder is reported as %q", reports)
	}
	mkdir(t, root+"/store/new/acme")
	if err := os.Rename(root+"/store/new", root+"/store/current"); err != nil {
		t.Fatal(err)
	}
	until(t, w, "")
}
