package e2e_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// A processState has the numbers that grow in a Caddy with leaks.
type processState struct{ goroutines, descriptors, heap int }

// state returns the state of a Caddy after a garbage collection.
func (r *Registry) state(t *testing.T) processState {
	t.Helper()
	number := func(path, pattern string) int {
		t.Helper()
		answer := r.Admin(t, http.MethodGet, path)
		match := regexp.MustCompile(pattern).FindStringSubmatch(answer.Body)
		if match == nil {
			t.Fatalf("%s: %d has no %s", path, answer.Status, pattern)
		}
		n, err := strconv.Atoi(match[1])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	// Twice: objects with a finalizer are freed by the next collection but one.
	number("/debug/pprof/heap?gc=1&debug=1", `# HeapAlloc = (\d+)`)
	return processState{
		heap:        number("/debug/pprof/heap?gc=1&debug=1", `# HeapAlloc = (\d+)`),
		goroutines:  number("/debug/pprof/goroutine?debug=1", `goroutine profile: total (\d+)`),
		descriptors: len(r.descriptors(t)),
	}
}

// watched counts the folders that the process watches for changes.
func (r *Registry) watched(t *testing.T) (watchers, folders int) {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fdinfo", r.cmd.Process.Pid)
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		info, err := os.Open(filepath.Join(dir, f.Name()))
		if err != nil {
			continue // closed in the meantime
		}
		n := 0
		for lines := bufio.NewScanner(info); lines.Scan(); {
			if strings.HasPrefix(lines.Text(), "inotify ") {
				n++
			}
		}
		info.Close()
		if n > 0 {
			watchers++
			folders += n
		}
	}
	return watchers, folders
}

// Two hundred reloads leave nothing behind and read no archive again.
func TestReloadsLeakNothing(t *testing.T) {
	t.Parallel()
	files := newTree(t).
		Provider("acme/demo", "1.0.0", platforms("plan9_386", "linux_mips")).
		Module("acme/vpc/aws", "1.0.0", asTarGz).
		Module("acme/vpc/aws", "1.1.0", asFolder)
	s := site("registry.example.com", files)
	registry := startRegistry(t, s)
	registry.Settle(t)
	reload := func() {
		registry.Load(t, s)
		// The old server may accept one more connection and close it
		// unanswered; Caddy does that without a registry, too.
		eventually(t, "it serves", func() bool {
			answer, err := registry.ask(versionsOfDemo)
			if err == nil && answer.Status != 200 {
				t.Fatalf("after a reload: %d %s", answer.Status, answer.Body)
			}
			return err == nil
		})
	}
	// Goroutines and connections may take a moment to end.
	calm := func(want func(processState) bool) (now processState) {
		t.Helper()
		eventually(t, "the configuration replaced by the last reload has been released", func() bool {
			now = registry.state(t)
			return want(now)
		})
		return now
	}
	for range 20 {
		reload()
	}
	early := calm(func(s processState) bool { return s.descriptors < 100 })
	read := registry.archivesRead(t)
	_, folders := registry.watched(t)
	for range 180 {
		reload()
	}
	// A leak of one each would show as 180.
	late := calm(func(s processState) bool {
		return s.goroutines <= early.goroutines+40 && s.descriptors <= early.descriptors+20
	})
	t.Logf("after 20 reloads: %+v, after 200: %+v", early, late)
	if late.heap > early.heap+early.heap/2+4<<20 {
		t.Errorf("the heap has grown from %d to %d bytes", early.heap, late.heap)
	}
	if now := registry.archivesRead(t); now != read || read == 0 {
		t.Errorf("%v archives were read before, %v after", read, now)
	}
	if _, now := registry.watched(t); now != folders || folders == 0 {
		t.Errorf("%d folders were watched before, %d after", folders, now)
	}
	if n := registry.Metrics(t)[`caddy_terraform_registry_offered{kind="provider",root="`+files.Dir+`"}`]; n != 1 {
		t.Errorf("the metrics are lost: %v providers", n)
	}
}

// A download that is running when the configuration is replaced is completed:
// both a file on disk, and a module that is packed while it is sent.
func TestDownloadsFinishAcrossAReload(t *testing.T) {
	t.Parallel()
	files, other := newTree(t), newTree(t)
	if err := writeZip(files.Path(demoPackage("1.0.0", "plan9_386")), "terraform-provider-demo_v1.0.0", incompressible(8<<20)); err != nil {
		t.Fatal(err)
	}
	files.Module("acme/vpc/aws", "1.0.0", asFolder)
	create(t, files.Path("modules/acme/vpc/aws/1.0.0/large.bin"), func(w io.Writer) error {
		_, err := io.Copy(w, incompressible(8<<20))
		return err
	})
	registry := startRegistry(t, site("registry.example.com", files))
	urls := []string{
		"https://registry.example.com/v1/mirror/registry.example.com/acme/demo/terraform-provider-demo_1.0.0_plan9_386.zip",
		"https://registry.example.com/v1/modules/acme/vpc/aws/1.0.0/archive.tar.gz",
	}
	whole, begun := map[string]Response{}, map[string]*http.Response{}
	client, err := registry.client()
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	for _, url := range urls {
		whole[url] = registry.Get(t, url)
		if begun[url], err = client.Get(url); err != nil { // only the start of the body is read
			t.Fatal(err)
		}
		defer begun[url].Body.Close()
	}

	registry.Load(t, site("registry.example.com", files)) // the same tree
	registry.Load(t, site("registry.example.com", other))
	eventually(t, "the new configuration serves", func() bool {
		answer, err := registry.ask(versionsOfDemo)
		return err == nil && answer.Status == 404
	})
	eventually(t, "the tree is no longer watched", func() bool { _, served := registry.Indexes(t)[files.Dir]; return !served })
	for _, url := range urls {
		body, err := io.ReadAll(begun[url].Body)
		if err != nil {
			t.Errorf("%s: %v after %d bytes", url, err, len(body))
		}
		if string(body) != whole[url].Body {
			t.Errorf("%s: %d bytes that differ from the %d bytes before", url, len(body), len(whole[url].Body))
		}
	}
}

// Sites with the same root share one index and one watcher, which end with the
// last of them.
func TestSitesShareAnIndex(t *testing.T) {
	t.Parallel()
	files := newTree(t).Provider("acme/demo", "1.0.0", platforms("plan9_386"))
	one, two := site("one.example.com", files), site("two.example.com", files)
	registry := startRegistry(t, one, Site{Address: "none.example.com"})
	registry.Settle(t)
	_, folders := registry.watched(t)
	read := registry.archivesRead(t)

	watches := func(want int) {
		t.Helper()
		// A new index begins to watch each folder when it scans it.
		eventually(t, fmt.Sprintf("there are %d watchers of %d folders each", want, folders), func() bool {
			watchers, now := registry.watched(t)
			return watchers == want && now == want*folders
		})
	}
	watches(1)
	registry.Load(t, one, two)
	eventually(t, "the second site serves", func() bool {
		answer, err := registry.ask("https://two.example.com/v1/providers/acme/demo/versions")
		return err == nil && answer.Status == 200
	})
	watches(1)
	if got := registry.archivesRead(t); got != read {
		t.Errorf("archives were read again for the second site: %v, %v before", got, read)
	}
	if got := registry.Indexes(t); len(got) != 1 {
		t.Errorf("the indexes are %v", got)
	}

	another := newTree(t).Provider("acme/demo", "1.0.0", platforms("plan9_386"))
	registry.Load(t, one, two, site("three.example.com", another))
	watches(2)
	registry.Load(t, two)
	watches(1)
	registry.Load(t, Site{Address: "none.example.com"})
	watches(0)
	if got := registry.Admin(t, http.MethodGet, "/terraform_registry/indexes"); got.Status != 200 || strings.TrimSpace(got.Body) != "{}" {
		t.Errorf("without a registry, the indexes are %d %s", got.Status, got.Body)
	}
}
