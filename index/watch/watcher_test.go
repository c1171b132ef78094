package watch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
)

// watching returns a Watcher of nothing yet, and a tree with a folder.
func watching(t *testing.T, folder string) (root string, files tree.Tree, w *Watcher) {
	t.Helper()
	root = t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, folder), 0o755); err != nil {
		t.Fatal(err)
	}
	files, err := source.Directories{Root: root}.Open()
	if err != nil {
		t.Fatal(err)
	}
	if w, err = New(t.Context(), func(error) {}); err != nil {
		t.Fatal(err)
	}
	return root, files, w
}

// An event names the folder or file that has changed, as a report does.
func TestWhatChanges(t *testing.T) {
	root, files, w := watching(t, "modules/acme/vpc/aws/1.0.0")
	w.Add(files.Providers, ".", "providers")
	w.Add(files.Providers, "acme", "providers/acme")
	w.Add(files.Modules, "acme/vpc/aws", "modules/acme/vpc/aws")
	w.AddModule(files.Modules, "acme/vpc/aws/1.0.0", "modules/acme/vpc/aws")
	for _, test := range []struct {
		rule, name string
		reports    []string
	}{
		{"a name in a folder", "providers/acme/demo", []string{"providers/acme/demo"}},
		{"a folder itself, from the folder above and from its own", "providers/acme", []string{"providers/acme", "providers/acme"}},
		{"a file of a module", "modules/acme/vpc/aws/1.0.0/main.tf", []string{"modules/acme/vpc/aws/main.tf"}},
		{"a file of a module that is hidden and counts", "modules/acme/vpc/aws/1.0.0/.terraformignore", []string{"modules/acme/vpc/aws/.terraformignore"}},
		{"a part of the tree: everything", "modules", []string{""}},
		{"the content of a volume of Kubernetes: everything", "providers/acme/..data", []string{""}},
		{"a temporary file: nothing", "providers/acme/demo.zip.tmp", nil},
		{"the staging folder, which every published file passes: nothing", "providers/" + tree.StagingName, nil},
		{"what is in it: nothing", "providers/" + tree.StagingName + "/acme@demo@1.0.0", nil},
		{"a name elsewhere: nothing", "notes.d/x", nil},
	} {
		reports, ok := w.concerns(filepath.Join(root, test.name))
		if ok != (test.reports != nil) || ok && !slices.Equal(reports, test.reports) {
			t.Errorf("%s: %q, %v", test.rule, reports, ok)
		}
	}

	t.Run("where a symlink leads to a folder, any event is of everything", func(t *testing.T) {
		w.AddLink(files.Providers, "link", true)
		if reports, ok := w.concerns(filepath.Join(root, "providers/acme/demo")); !ok || !slices.Contains(reports, "") {
			t.Errorf("%q", reports)
		}
	})
}

// A limit may be exceeded for a while, and another file system may be mounted. The registry warns once
// each time.
func TestATreeIsPolledUntilAllOfItCanBeWatched(t *testing.T) {
	_, files, w := watching(t, "providers/acme")
	warnings := 0
	w.warn = func(error) { warnings++ }
	elsewhere := treetest.On(afero.NewMemMapFs(), ".")
	for _, step := range []struct {
		rule     string
		part     tree.Part
		blind    bool
		warnings int
	}{
		{"all is watched", files.Providers, false, 0},
		{"something cannot be watched", elsewhere, true, 1},
		{"nor in the next scan", elsewhere, true, 1},
		{"all is watched again", files.Providers, false, 1},
		{"something cannot be watched again", elsewhere, true, 2},
	} {
		w.Add(step.part, ".", "providers")
		w.Add(step.part, "acme", "providers/acme")
		if step.blind && !w.IsBlind() {
			t.Errorf("%s: it is not polled before the end of the scan", step.rule)
		}
		w.Finish()
		if blind := w.IsBlind(); blind != step.blind || warnings != step.warnings {
			t.Errorf("%s: it is polled: %t, after %d warnings", step.rule, blind, warnings)
		}
	}
}

// When an index is closed, its Watcher ends at once, and its scan a moment later.
func TestAWatcherThatHasEndedWarnsOfNothing(t *testing.T) {
	_, files, w := watching(t, "providers/acme")
	w.warn = func(err error) { t.Errorf("it warns: %v", err) }
	w.Add(files.Providers, ".", "providers")
	if err := w.directories.notify.Close(); err != nil {
		t.Fatal(err)
	}
	w.Add(files.Providers, "acme", "providers/acme")
}

// The system reports a limit that can be raised as "no space left on device".
func TestInotifyLimitsSayWhatToDo(t *testing.T) {
	for err, says := range map[error]string{
		syscall.ENOSPC: "raise fs.inotify.max_user_watches",
		syscall.EMFILE: "raise fs.inotify.max_user_instances",
		&fs.PathError{Op: "inotify_add_watch", Path: "/srv/providers", Err: syscall.ENOSPC}: "raise fs.inotify.max_user_watches",
		fmt.Errorf("watching: %w", syscall.ENOSPC):                                          "raise fs.inotify.max_user_watches",
		&fs.PathError{Op: "stat", Path: "/srv/providers", Err: errors.New("it failed")}:     "it failed",
	} {
		if got := systemError(err).Error(); !strings.Contains(got, says) || strings.Contains(got, "/srv") || strings.Contains(got, "no space") {
			t.Errorf("of %q it says %q", err, got)
		}
	}
}
