package e2e_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// For a minute, clients request everything while a file changes every tenth of
// a second and the configuration is reloaded every second. The rules:
//
//   - files that do not change are always answered with 200;
//   - files that are added and removed may also be 404, or 503 with Retry-After;
//   - only a new connection during a reload may fail, and not twice in a row:
//     Caddy may close it unanswered, with or without a registry;
//   - every archive has the advertised digest, whatever has happened to its file
//     in the meantime.
func TestLoad(t *testing.T) {
	t.Parallel()
	files := newTree(t).
		Provider("acme/stable", "1.0.0").
		Provider("registry.terraform.io/example/hello", "1.0.0", zipsOnly).
		Provider("acme/demo", "1.0.0", platforms("plan9_386"), zipsOnly).
		Provider("acme/replaced", "1.0.0", platforms("plan9_386"), zipsOnly).
		Module("acme/vpc/aws", "1.0.0", asTarGz).
		Module("acme/net/aws", "1.0.0", asFolder)
	s := site("registry.example.com", files)
	registry := startRegistry(t, s)

	length := 20 * time.Second
	if testing.Short() {
		length = 10 * time.Second
	}
	end := make(chan struct{})
	time.AfterFunc(length, func() { close(end) })
	l := &load{registry: registry, answers: map[string]int{}, tree: files}
	var busy sync.WaitGroup
	for range 6 {
		busy.Go(func() {
			c := l.newClient(t)
			for ; !ended(end) && !t.Failed(); c.round++ {
				c.run()
			}
		})
	}
	busy.Go(func() {
		changes := l.changes(t)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-end:
				return
			case <-tick.C:
				changes[i%len(changes)]()
			}
		}
	})
	reloads := 0
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for !ended(end) {
		select {
		case <-end:
		case <-tick.C:
			registry.Load(t, s)
			reloads++
		}
	}
	busy.Wait()
	t.Logf("%d reloads, %d scans", reloads, len(registry.Log.Find(0, Entry.scan)))
	for _, kind := range slices.Sorted(maps.Keys(l.answers)) {
		t.Logf("%s: %d", kind, l.answers[kind])
	}
	for _, rule := range []string{"archive comes and goes 200", "archive 200", "h1 compared"} {
		if l.answers[rule] == 0 {
			t.Errorf("the test has not covered: %s", rule)
		}
	}
	// None of this is logged as an error.
	for _, e := range registry.Log.Entries() {
		if e.Level == "error" && !e.access() {
			t.Errorf("the log has: %s", e.Line)
		}
	}
}

func ended(end <-chan struct{}) bool {
	select {
	case <-end:
		return true
	default:
		return false
	}
}

// load is the state that the clients of TestLoad share.
type load struct {
	registry *Registry
	tree     *Tree
	mutex    sync.Mutex
	answers  map[string]int // by kind and status
}

func (l *load) count(kind string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.answers[kind]++
}

// changes returns the changes to the tree, which are made in turn. All files
// are renamed into place and have distinct times.
func (l *load) changes(t *testing.T) []func() {
	from := staged(t).
		Provider("acme/demo", "2.0.0", platforms("plan9_386", "linux_mips"), zipsOnly).
		Provider("acme/demo", "1.0.0", platforms("freebsd_386"), zipsOnly).
		Module("acme/net/aws", "1.1.0", asFolder).
		Module("acme/vpc/aws", "1.1.0", asTarGz)
	try := func(err error) {
		if err != nil {
			t.Error(err)
		}
	}
	enter := func(name string) func() {
		return func() {
			temporary := l.tree.Path(filepath.Join(filepath.Dir(name), ".coming"))
			content, err := os.ReadFile(from.Path(name))
			try(err)
			try(os.WriteFile(temporary, content, 0o644))
			try(os.Rename(temporary, l.tree.Path(name)))
		}
	}
	leave := func(name string) func() { return func() { try(os.Remove(l.tree.Path(name))) } }
	inAndOut := func(name string) func() {
		in := false
		return func() {
			a, b := from.Path(name), l.tree.Path(name)
			if in {
				a, b = b, a
			}
			try(os.Rename(a, b))
			in = !in
		}
	}

	// A rebuilt package of the same size and time: only its inode is
	// another one.
	replaced := l.tree.Path("providers/acme/replaced/terraform-provider-replaced_1.0.0_plan9_386.zip")
	born := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	builds := 0
	replace := func() {
		builds++
		temporary := filepath.Join(filepath.Dir(replaced), ".coming")
		try(writeZip(temporary, "terraform-provider-replaced_v1.0.0", strings.NewReader(fmt.Sprintf("build %06d", builds))))
		try(os.Chtimes(temporary, born, born))
		try(os.Rename(temporary, replaced))
	}

	newer, other, platform := demoPackage("2.0.0", "plan9_386"), demoPackage("2.0.0", "linux_mips"), demoPackage("1.0.0", "freebsd_386")
	folder := inAndOut("modules/acme/net/aws/1.1.0")
	return []func(){
		enter(newer), replace, enter(platform), enter(other), folder,
		enter(platform), leave(newer), replace, enter(newer), enter("modules/acme/vpc/aws/1.1.0.tar.gz"),
		leave(platform), folder, leave(other), leave(newer), leave("modules/acme/vpc/aws/1.1.0.tar.gz"),
	}
}
