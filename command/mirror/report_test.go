package mirror

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/command/commandtest"
)

// The bar shows the expected size and duration as far as they are known. It leaves the last
// column of a terminal free.
func TestMirrorProgress(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	m := &mirrorProgress{began: began, total: 3}
	at := func(seconds int, done int64, want string) {
		t.Helper()
		if got := m.text(began.Add(time.Duration(seconds)*time.Second), done); got != want {
			t.Errorf("it is %q, want %q", got, want)
		}
	}
	one, two, three := &downloadProgress{of: m}, &downloadProgress{of: m}, &downloadProgress{of: m}
	at(1, 0, "[..............................] 0 of 3, 0 B, 0 B/s")
	one.note(0, 30_000_000)
	one.note(10_000_000, 30_000_000)
	at(1, 0, "[..............................] 0 of 3, 10 MB of about 90 MB, 10 MB/s, 8s left")
	two.end() // it was in the tree
	at(2, 1, "[#########....................] 1 of 3, 10 MB of about 45 MB, 5.0 MB/s, 7s left")
	three.note(0, 50_000_000)
	one.note(30_000_000, 30_000_000)
	one.end()
	at(3, 2, "[####################..........] 2 of 3, 30 MB of 80 MB, 10 MB/s, 5s left")
	three.note(50_000_000, 50_000_000)
	three.end()
	at(8, 3, "[##############################] 3 of 3, 80 MB of 80 MB, 10 MB/s, 0s left")
}

func TestMirrorJSON(t *testing.T) {
	o := newAcme(t)
	root, dir := t.TempDir(), t.TempDir()
	if _, _, err := o.mirror(t, root, originHost+"/acme/other"); err != nil {
		t.Fatal(err)
	}
	commandtest.Write(t, dir, "main.tf", "terraform {\n required_providers {\n  none = { source = \"registry.example.com/acme/none\" }\n }\n}\n")
	commandtest.Write(t, dir, ".terraform.lock.hcl", lock(originHost+"/acme/demo", "1.0.0"))
	args := []string{dir, originHost + "/acme/other", originHost + "/acme/nothing", "--json"}
	for _, dry := range []bool{true, false} {
		run := args
		if dry {
			run = append([]string{"--dry-run"}, args...)
		}
		out, errs, err := o.mirror(t, root, run...)
		var d mirrorDocument
		if failed := json.Unmarshal([]byte(out), &d); failed != nil || !errors.Is(err, cli.ErrProblem) || errs != "" {
			t.Fatalf("got error %v, %v and\n%s%s", err, failed, out, errs)
		}
		switch {
		case d.DryRun != dry, d.Complete, d.Interrupted, d.Into != filepath.Join(root, "providers"):
			t.Errorf("got %+v", d)
		case len(d.Added) != 1 || d.Added[0].Provider != originHost+"/acme/demo" || d.Added[0].Version != "1.0.0" || d.Added[0].Platform != "linux_amd64" || (d.Added[0].Size == 0) != dry:
			t.Errorf("added %+v", d.Added)
		case len(d.Present) != 1 || d.Present[0].Provider != originHost+"/acme/other" || d.Present[0].Size == 0:
			t.Errorf("present %+v", d.Present)
		case len(d.Failed) != 1 || d.Failed[0].Provider != originHost+"/acme/nothing" || d.Failed[0].Error == "":
			t.Errorf("failed %+v", d.Failed)
		case len(d.NotLocked) != 1 || d.NotLocked[0].Provider != originHost+"/acme/none" || len(d.NotLocked[0].From) != 1:
			t.Errorf("not locked %+v", d.NotLocked)
		case strings.Contains(out, "null"):
			t.Errorf("a list is null:\n%s", out)
		}
	}
}
