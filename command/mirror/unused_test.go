package mirror

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/command/commandtest"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// countedDays returns that many days that end with today.
func countedDays(n int) (days []string) {
	for back := range n {
		days = append(days, dayBefore(n-1-back))
	}
	return days
}

func dayBefore(n int) string { return time.Now().UTC().AddDate(0, 0, -n).Format(time.DateOnly) }

// TestUnusedFor has the rules by which something is known to be unused.
func TestUnusedFor(t *testing.T) {
	now := time.Date(2026, 6, 3, 0, 30, 0, 0, time.UTC)
	for _, test := range []struct {
		rule    string
		counted []string
		days    int
		since   string // empty: nothing is known
	}{
		{"the days that were counted", []string{"2026-05-30", "2026-05-31", "2026-06-01", "2026-06-02"}, 2, "2026-06-01"},
		{"days that were not counted do not help", []string{"2026-01-01", "2026-03-01", "2026-06-01", "2026-06-02"}, 3, "2026-03-01"},
		{"as many days as that are too few: something may have been used before them", []string{"2026-06-01", "2026-06-02"}, 2, ""},
		{"nothing has been counted", nil, 1, ""},
		{"the last days are not known: something may have been used on them", []string{"2026-05-29", "2026-05-30", "2026-05-31", "2026-06-01"}, 2, ""},
	} {
		u, err := unusedFor(&wire.TreeUsage{Counted: test.counted}, test.days, now)
		if got := err == nil; got != (test.since != "") || got && u.since != test.since {
			t.Errorf("%s: got %+v, %v", test.rule, u, err)
		}
	}
	for text, want := range map[string]int{"90d": 90, "1y": 365, "2y": 730, "0d": 0, "1w": 0, "d": 0, "-1d": 0, "1.5y": 0, "99999999999d": 0} {
		if got, err := parsePeriod(text); got != want || (err == nil) != (want > 0) {
			t.Errorf("%s: got %d, %v", text, got, err)
		}
	}
}

// Used, new and hosted releases stay, and releases that lock files name.
func TestPruneUnused(t *testing.T) {
	root := t.TempDir()
	files := indextest.OnDisk(t, root)
	files.Provider("acme/own", "1.0.0", "linux_amd64")
	files.Provider("registry.example.com/acme/own", "2.0.0", "linux_amd64")
	for _, version := range []string{"1.0.0", "1.1.0", "1.2.0", "1.3.0"} {
		files.Provider("registry.terraform.io/acme/demo", version, "linux_amd64")
	}
	files.Provider("elsewhere.example.com/acme/elsewhere", "1.0.0", "linux_amd64")
	files.Write("modules/registry.terraform.io/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", ""))
	files.Write("modules/registry.terraform.io/acme/vpc/aws/1.1.0.tar.gz", indextest.TarGz("main.tf", ""))
	all := commandtest.Files(t, root)
	usage := func(address string, last map[string]string) wire.Usage {
		u := wire.Usage{Address: address}
		for version, day := range last {
			u.Versions = append(u.Versions, wire.VersionUsage{Version: version, Downloads: 1, LastUsed: day})
		}
		return u
	}
	serving := func(counted []string) string {
		return commandtest.Admin(t, "/terraform_registry/usage", map[string]*wire.TreeUsage{root: {
			Counted: counted,
			Addresses: []wire.Usage{
				usage("registry.terraform.io/acme/demo", map[string]string{"1.0.0": dayBefore(200), "1.1.0": dayBefore(10), "1.3.0": dayBefore(200)}),
				usage("registry.terraform.io/acme/vpc/aws", map[string]string{"1.1.0": dayBefore(89)}),
				usage("acme/own", map[string]string{"1.0.0": dayBefore(300)}),
			},
		}})
	}
	lock := t.TempDir()
	commandtest.Write(t, lock, ".terraform.lock.hcl", "provider \"registry.terraform.io/acme/demo\" {\n  version = \"1.3.0\"\n}\n")
	run := func(server string, args ...string) (out string, err error) {
		out, _, err = commandtest.Run(t.Context(), PruneCommand(), append([]string{"--root", root, "--own", "registry.example.com", "--address", server}, args...)...)
		return out, err
	}

	if _, err := run(serving(countedDays(90)), "--unused", "90d"); commandtest.Status(err) != 2 || !strings.Contains(err.Error(), "counted on 90 days") {
		t.Errorf("before it is known: %v", err)
	}
	if out, err := run(serving(countedDays(400)), "--unused", "90d", "--modules"); err != nil || !strings.Contains(out, ": 0 releases") {
		t.Errorf("what has just come is removed: %v, %s", err, out)
	}
	wantFiles(t, root, all...)

	// The system does not let the time be set when an inode was changed, so the days are set.
	later := time.Now().AddDate(2, 0, 0)
	age := func(days []string) (aged []string) {
		for _, day := range days {
			at, err := time.Parse(time.DateOnly, day)
			if err != nil {
				t.Fatal(err)
			}
			aged = append(aged, at.Add(time.Until(later)).Format(time.DateOnly))
		}
		return aged
	}
	server := commandtest.Admin(t, "/terraform_registry/usage", map[string]*wire.TreeUsage{root: {
		Counted: age(countedDays(400)),
		Addresses: []wire.Usage{
			usage("registry.terraform.io/acme/demo", map[string]string{"1.0.0": age([]string{dayBefore(200)})[0], "1.1.0": age([]string{dayBefore(10)})[0], "1.3.0": age([]string{dayBefore(200)})[0]}),
			usage("registry.terraform.io/acme/vpc/aws", map[string]string{"1.1.0": age([]string{dayBefore(80)})[0]}),
			usage("acme/elsewhere", map[string]string{"1.0.0": age([]string{dayBefore(80)})[0]}), // the server takes the hostname for its own
		},
	}})
	out, err := run(server, "--unused", "90d", "--modules", "--dry-run", "--json")
	var said struct {
		Since   string          `json:"unused_since"`
		Removed []prunedRelease `json:"removed"`
	}
	if json.Unmarshal([]byte(out), &said) != nil || err != nil {
		t.Fatalf("got error %v and %s", err, out)
	}
	var removed []string
	for _, r := range said.Removed {
		removed = append(removed, r.Provider+r.Module+" "+r.Version+": "+r.Why)
	}
	today, before := time.Now().UTC().Format(time.DateOnly), age([]string{dayBefore(200)})[0]
	want := []string{
		"registry.terraform.io/acme/demo 1.0.0: last used on " + before,
		"registry.terraform.io/acme/demo 1.2.0: not used in the time that is known, here since " + today,
		"registry.terraform.io/acme/demo 1.3.0: last used on " + before,
		"registry.terraform.io/acme/vpc/aws 1.0.0: not used in the time that is known, here since " + today,
	}
	if !slices.Equal(removed, want) {
		t.Errorf("got %q, want %q", removed, want)
	}
	wantFiles(t, root, all...)

	out, err = run(server, "--unused", "90d", lock)
	if err != nil || !strings.Contains(out, "registry.terraform.io/acme/demo 1.0.0: last used on ") || strings.Contains(out, "demo 1.3.0") || !strings.Contains(out, "by use since "+said.Since+" and 1 lock file.") {
		t.Errorf("with a lock file: %v, %s", err, out)
	}
	for version, stays := range map[string]bool{"1.0.0": false, "1.1.0": true, "1.2.0": false, "1.3.0": true} {
		_, err := os.Stat(filepath.Join(root, mirroredDir, "demo/terraform-provider-demo_"+version+"_linux_amd64.zip"))
		if (err == nil) != stays {
			t.Errorf("%s: %v", version, err)
		}
	}
	if _, err := os.Stat(filepath.Join(root, "modules/registry.terraform.io/acme/vpc/aws/1.0.0.tar.gz")); err != nil {
		t.Errorf("modules go without --modules: %v", err)
	}
}
