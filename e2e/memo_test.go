package e2e_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"
)

// With the memo of digests, a restart reads no archive again. The memo is only an
// optimisation: if it is damaged or missing, the right content is still served.

func (r *Registry) memo(names ...string) string {
	return r.path(append([]string{"data", "caddy", "terraform_registry", "memo"}, names...)...)
}

// memos lists all files in the folder of memos: one for each tree, unless
// something was left behind.
func (r *Registry) memos(t *testing.T) (names []string) {
	t.Helper()
	files, err := os.ReadDir(r.memo())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for _, f := range files {
		names = append(names, f.Name())
	}
	return names
}

func aboutTheMemo(e Entry) bool { return strings.HasPrefix(e.Message, "the memo of digests") }

// warm starts a registry with two archives and a folder, and waits until they have been
// read and remembered. It shares no digests with other instances, which would return
// them after a loss.
func warm(t *testing.T) (*Registry, Site, *Tree) {
	t.Helper()
	files := newTree(t).
		Provider("acme/demo", "1.0.0", platforms("plan9_386")).
		Module("acme/vpc/aws", "1.0.0", asTarGz).
		Module("acme/vpc/aws", "1.1.0", asFolder)
	s := site("registry.example.com", files, "poll off")
	registry := startRegistry(t, s)
	registry.Settle(t)
	return registry, s, files
}

const warmArchives = 3

func TestRestartReadsNothing(t *testing.T) {
	t.Parallel()
	registry, s, files := warm(t)
	for range 2 {
		registry.Restart(t, s)
		if scan := registry.firstScan(t); scan.number("read") != 0 || scan.Offered != warmArchives {
			t.Errorf("after the restart: %s", scan.Line)
		}
	}
	// Files that a crash has left next to the memo are removed after some time.
	registry.Stop(t)
	left := registry.memo("." + registry.memos(t)[0] + "-123")
	writeFile(t, left, "half a memo")
	if err := os.Chtimes(left, time.Time{}, time.Now().Add(-2*time.Hour)); err != nil {
		t.Fatal(err)
	}
	registry.start(t, []Site{s})
	if names := registry.memos(t); len(names) != 1 {
		t.Errorf("there are files next to the memo: %v", names)
	}

	// Only files that have changed in the meantime are read.
	registry.Stop(t)
	files.Module("acme/vpc/aws", "1.2.0", asTarGz)
	registry.start(t, []Site{s})
	if scan := registry.firstScan(t); scan.number("read") != 1 || scan.Offered != warmArchives+1 {
		t.Errorf("with a new module: %s", scan.Line)
	}
}

// With the memo, check knows which files have other bytes than when they were first
// offered.
func TestCheckNotesChangedBytes(t *testing.T) {
	t.Parallel()
	registry, _, files := warm(t)
	registry.Stop(t)
	writeFile(t, files.Path("modules/acme/vpc/aws/1.1.0/main.tf"), "# another module\n")
	for _, test := range []struct {
		rule, data string
		want       int
	}{
		{"of the user that the registry runs as", registry.path("data"), 1},
		{"of another one, who sees the folder as it is", t.TempDir(), 0},
	} {
		report, _ := check(t, files, "XDG_DATA_HOME="+test.data)
		notes := 0
		for _, offer := range report.Offered {
			for _, note := range offer.Notes {
				if offer.Version == "1.1.0" && strings.Contains(note, "first offered") {
					notes++
				}
			}
		}
		if notes != test.want {
			t.Errorf("%d notes in the report %s, want %d: %v", notes, test.rule, test.want, report.Offered)
		}
	}
}

func TestUnusableMemo(t *testing.T) {
	t.Parallel()
	registry, s, _ := warm(t)
	m := registry.memo(registry.memos(t)[0])
	whole, err := os.ReadFile(m)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ rule, content string }{
		{"it is cut off", string(whole[:len(whole)/2])},
		{"it is empty", ""},
		{"it is junk", strings.Repeat("junk\n", 1000)},
		{"a byte of it has changed", strings.Replace(string(whole), "demo", "emod", 1)},
	} {
		t.Run(test.rule, func(t *testing.T) {
			registry.Stop(t)
			writeFile(t, m, test.content)
			registry.start(t, []Site{s})
			if scan := registry.firstScan(t); scan.number("read") != warmArchives || scan.Offered != warmArchives {
				t.Errorf("at first: %s", scan.Line)
			}
			if lines := registry.Log.Find(0, aboutTheMemo); len(lines) != 1 {
				t.Errorf("the log has %d lines about it: %v", len(lines), lines)
			}
			registry.Restart(t, s)
			if scan := registry.firstScan(t); scan.number("read") != 0 {
				t.Errorf("it was not written again: %s", scan.Line)
			}
		})
	}
}

// If the memo cannot be written, the registry serves as usual, and logs this
// once, not with every scan.
func TestMemoThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	registry, s, files := warm(t)
	serves := func(t *testing.T) {
		t.Helper()
		point := len(registry.Log.Entries())
		for i := range 3 {
			files.Module("acme/more/aws", fmt.Sprintf("1.%d.%d", point, i), asTarGz)
			registry.Rescan(t)
		}
		if !registry.lists(t, "https://registry.example.com/v1/modules/acme/more/aws/versions", fmt.Sprintf("1.%d.2", point)) {
			t.Error("a new file is not served")
		}
	}
	told := func(t *testing.T, times int) {
		t.Helper()
		lines := registry.Log.Find(0, func(e Entry) bool { return strings.Contains(e.Message, "cannot be kept") })
		if len(lines) != times {
			t.Errorf("the log says %d times that it cannot be kept: %v", len(lines), lines)
		}
	}
	kept := func(t *testing.T) {
		t.Helper()
		registry.Settle(t)
		registry.Restart(t, s)
		if scan := registry.firstScan(t); scan.number("read") != 0 {
			t.Errorf("it was not written again: %s", scan.Line)
		}
		if names := registry.memos(t); len(names) != 1 {
			t.Errorf("there are files next to the memo: %v", names)
		}
	}

	t.Run("because its folder is a file", func(t *testing.T) {
		registry.Stop(t)
		if err := os.RemoveAll(registry.memo()); err != nil {
			t.Fatal(err)
		}
		writeFile(t, registry.memo(), "")
		registry.start(t, []Site{s})
		serves(t)
		told(t, 1)
		if err := os.Remove(registry.memo()); err != nil {
			t.Fatal(err)
		}
		serves(t)
		kept(t)
	})
	t.Run("because the disk is full", func(t *testing.T) {
		if runtime.GOOS != "linux" || os.Getuid() != 0 {
			t.Skip("not run, because only root on Linux can mount a small disk")
		}
		before, err := os.ReadFile(registry.memo(registry.memos(t)[0]))
		if err != nil {
			t.Fatal(err)
		}
		small := exec.Command("mount", "-t", "tmpfs", "-o", "size=4k,mode=700", "tmpfs", registry.memo())
		if out, err := small.CombinedOutput(); err != nil {
			t.Skipf("not run, because nothing can be mounted here: %v %s", err, out)
		}
		registry.Stop(t)
		t.Cleanup(func() {
			if out, err := exec.Command("umount", "--lazy", registry.memo()).CombinedOutput(); err != nil {
				t.Errorf("umount: %v %s", err, out)
			}
		})
		writeFile(t, registry.memo("other"), strings.Repeat("x", 4096))
		registry.start(t, []Site{s})
		serves(t)
		told(t, 1)
		if names := registry.memos(t); len(names) != 1 || names[0] != "other" {
			t.Errorf("temporary files were left behind: %v", names)
		}
		if err := os.Remove(registry.memo("other")); err != nil {
			t.Fatal(err)
		}
		grown := exec.Command("mount", "-o", "remount,size=1m", registry.memo())
		if out, err := grown.CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
		serves(t)
		kept(t)
		if len(before) == 0 {
			t.Error("there was no memo before")
		}
	})
}
