package e2e_test

import (
	"archive/zip"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// bigPackages writes packages that take long to read, for a provider's versions
// from 1.0.0. They are small on disk, and all are different.
func bigPackages(t *testing.T, files *Tree, count int, size int64) (versions []string) {
	t.Helper()
	model := filepath.Join(t.TempDir(), "model.zip")
	if err := writeZip(model, "terraform-provider-demo", io.LimitReader(zeros{}, size)); err != nil {
		t.Fatal(err)
	}
	packed, err := zip.OpenReader(model)
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	for i := range count {
		version := fmt.Sprintf("1.%d.0", i)
		create(t, files.Path(demoPackage(version, "plan9_386")), func(w io.Writer) error {
			zipped := zip.NewWriter(w)
			for _, f := range packed.File {
				if err := zipped.Copy(f); err != nil {
					return err
				}
			}
			if err := zipped.SetComment(version); err != nil {
				return err
			}
			return zipped.Close()
		})
		versions = append(versions, version)
	}
	return versions
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// A Caddy that is killed while it reads a tree for the first time continues
// after a restart: files are not read twice, no wrong content is served, and
// nothing is left behind.
func TestKilledWhileReading(t *testing.T) {
	t.Parallel()
	empty, files := newTree(t), newTree(t)
	const count = 24
	versions := bigPackages(t, files, count, 240<<20)
	slow := func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, "GOMAXPROCS=1") }
	registry := startRegistryAs(t, slow, site("registry.example.com", empty))

	// Start and Reload would wait until everything has been read.
	s := site("registry.example.com", files)
	registry.Load(t, s)
	eventually(t, "some of the packages are remembered", func() bool {
		names := registry.memos(t)
		return len(names) > 0 && !strings.HasPrefix(names[0], ".") // a name with a dot is a memo being written
	})
	state := registry.Indexes(t)[files.Dir]
	if state.Progress == nil || state.Progress.Done == 0 || state.Progress.Done >= count || state.Pending == 0 {
		t.Fatalf("it is not reading any more: %+v", state)
	}
	t.Logf("killed after reading %d of %d", state.Progress.Done, count)
	oldest := "https://registry.example.com/v1/mirror/registry.example.com/acme/demo/1.0.0.json"
	if answer := registry.Get(t, oldest); answer.Status != 200 || !strings.Contains(answer.Body, "zh:") {
		t.Errorf("the oldest version, which is read last unless it is requested: %d %s", answer.Status, answer.Body)
	}
	if err := registry.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-registry.ended

	// It may have been writing the memo. The unfinished file is removed once no process
	// can be writing it any more, which is an hour later.
	earlier := time.Now().Add(-2 * time.Hour)
	for _, name := range registry.memos(t) {
		if err := os.Chtimes(filepath.Join(registry.memo(), name), earlier, earlier); err != nil {
			t.Fatal(err)
		}
	}
	registry.run = nil
	registry.start(t, []Site{s})
	if scan := registry.firstScan(t); scan.number("read") >= count || scan.Offered != count {
		t.Errorf("after it was killed: %s", scan.Line)
	}
	if lines := registry.Log.Find(0, aboutTheMemo); len(lines) > 0 {
		t.Errorf("the memo could not be used: %v", lines)
	}
	for _, version := range versions {
		answer := registry.Get(t, "https://registry.example.com/v1/mirror/registry.example.com/acme/demo/"+version+".json")
		if zh := "zh:" + sha256Of(t, files.Path(demoPackage(version, "plan9_386"))); !strings.Contains(answer.Body, zh) {
			t.Errorf("%s has not %s: %s", version, zh, answer.Body)
		}
	}
	if names := registry.memos(t); len(names) != 1 {
		t.Errorf("there are files next to the memo: %v", names)
	}
}
