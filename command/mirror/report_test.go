package mirror

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/command/commandtest"
)

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
