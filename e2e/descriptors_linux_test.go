package e2e_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// descriptors returns the targets of the process's open file descriptors.
func (r *Registry) descriptors(t *testing.T) (open []string) {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", r.cmd.Process.Pid)
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if target, err := os.Readlink(filepath.Join(dir, f.Name())); err == nil { // it may have been closed since
			open = append(open, target)
		}
	}
	return open
}

// A process with too few file descriptors for its requests answers 503, serves
// no wrong bytes, keeps offering everything, and recovers.
func TestTooFewDescriptors(t *testing.T) {
	t.Parallel()
	files := newTree(t).Provider("acme/other", "1.0.0", platforms("plan9_386"))
	name := demoPackage("1.0.0", "plan9_386")
	// Larger than the buffers of sockets and TLS, so that it stays open while
	// it is sent.
	if err := writeZip(files.Path(name), "terraform-provider-demo_v1.0.0", incompressible(4<<20)); err != nil {
		t.Fatal(err)
	}
	sum := sha256Of(t, files.Path(name))
	few := func(cmd *exec.Cmd) {
		cmd.Args = append([]string{"sh", "-c", `ulimit -n 300 && exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
		cmd.Path = "/bin/sh"
	}
	registry := startRegistryAs(t, few, site("registry.example.com", files, "rescan off"))
	registry.Settle(t)
	url := "https://registry.example.com/v1/mirror/registry.example.com/acme/demo/terraform-provider-demo_1.0.0_plan9_386.zip"
	registry.Get(t, url)
	idle := registry.state(t).descriptors
	t.Logf("when idle, %d are open", idle)

	for range 2 {
		const downloads = 200
		var ended sync.WaitGroup
		hurry := make(chan struct{})
		var mutex sync.Mutex
		statuses := map[int]int{}
		for range downloads {
			ended.Go(func() {
				client, err := registry.client()
				if err != nil {
					t.Error(err)
					return
				}
				defer client.CloseIdleConnections()
				answer, err := client.Get(url)
				if err != nil {
					t.Error(err)
					return
				}
				defer answer.Body.Close()
				<-hurry // until then, an answer that has begun stays open
				h := sha256.New()
				if _, err := io.Copy(h, answer.Body); err != nil {
					t.Error(err)
				}
				switch got := hex.EncodeToString(h.Sum(nil)); {
				case answer.StatusCode == 200 && got != sum:
					t.Errorf("a download has sha256 %s, want %s", got, sum)
				case answer.StatusCode == 503 && answer.Header.Get("Retry-After") == "":
					t.Error("503 without Retry-After")
				}
				mutex.Lock()
				statuses[answer.StatusCode]++
				mutex.Unlock()
			})
		}
		// Some may have no answer by then, or may not even be connected.
		eventually(t, "no descriptors are left", func() bool { return len(registry.descriptors(t)) >= 299 })

		// A scan cannot open files now. It must not conclude that the tree is
		// empty or unreadable.
		point := len(registry.Log.Entries())
		now := time.Now()
		if err := os.Chtimes(filepath.Dir(files.Path(name)), now, now); err != nil {
			t.Fatal(err)
		}
		registry.Log.WaitAfter(t, point, 1, "it has tried to scan", func(e Entry) bool {
			return e.scan() || strings.HasPrefix(e.Message, "scan failed")
		})
		close(hurry)
		ended.Wait()
		t.Logf("answers by status: %v", statuses)
		if statuses[200]+statuses[503] != downloads || statuses[200] == 0 {
			t.Errorf("answers by status: %v, want 200 and 503", statuses)
		}
		if withheld := registry.Log.Find(point, func(e Entry) bool { return e.Message == "withheld" }); len(withheld) > 0 {
			t.Errorf("the scan withholds: %s", withheld[0].Line)
		}

		// Folders that a scan has opened are closed by the garbage collector.
		eventually(t, "the descriptors have been released", func() bool { return registry.state(t).descriptors <= idle })
		if answer := registry.Get(t, url); answer.Status != 200 {
			t.Errorf("afterwards: %d %s", answer.Status, answer.Body)
		}
		registry.Rescan(t)
		if states := registry.Indexes(t)[files.Dir]; states.Offered["provider"] != 2 || len(states.Withheld) > 0 {
			t.Errorf("afterwards: %+v", states)
		}
	}
	for _, open := range registry.descriptors(t) {
		if strings.HasSuffix(open, ".zip") {
			t.Errorf("%s is still open", open)
		}
	}
}
