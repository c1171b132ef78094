package command

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/command/commandtest"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

func TestUsage(t *testing.T) {
	server := commandtest.Admin(t, "/terraform_registry/usage", map[string]*wire.TreeUsage{
		"/srv/a": {Counted: []string{"2026-11-25", "2026-11-26"}, Addresses: []wire.Usage{
			{Address: "acme/vpc/aws", Downloads: 12, Versions: []wire.VersionUsage{
				{Version: "1.1.0", Downloads: 2, Recent: 2, LastUsed: "2026-11-26"}, {Version: "1.0.0", Downloads: 10, Recent: 0, LastUsed: "2026-01-02"},
			}},
			{Address: "registry.terraform.io/hashicorp/null", Downloads: 1, Versions: []wire.VersionUsage{{Version: "3.2.4", Downloads: 1, Recent: 1, LastUsed: "2026-11-25"}}},
		}},
		"/srv/b": {Counted: []string{}, Addresses: []wire.Usage{}},
	})
	run := func(args ...string) (string, error) {
		out, _, err := commandtest.Run(t.Context(), usageCommand(), append([]string{"--address", server}, args...)...)
		return out, err
	}
	const (
		heading = "ADDRESS                               VERSION  DOWNLOADS  30 DAYS  LAST USED\n"
		vpc     = "acme/vpc/aws                          1.1.0    2          2        2026-11-26\n" + "acme/vpc/aws                          1.0.0    10         0        2026-01-02\n"
		null    = "registry.terraform.io/hashicorp/null  3.2.4    1          1        2026-11-25\n"
		a       = "\nCounted on 2 days since 2026-11-25, in /srv/a.\n"
		b       = "Nothing has been counted yet, in /srv/b.\n"
	)
	for _, test := range []struct {
		rule   string
		args   []string
		want   string
		status int
	}{
		{"all of all trees", nil, heading + vpc + null + a + b, 0},
		{"of one tree", []string{"--root", "/srv/b"}, b, 0},
		{"of one address", []string{"--root", "/srv/a", "registry.terraform.io/hashicorp/null"}, heading + null + a, 0},
		{"of a tree that is not counted", []string{"--root", "/srv/c"}, "", 2},
		{"of what is no address", []string{"acme"}, "", 2},
	} {
		if out, err := run(test.args...); out != test.want || commandtest.Status(err) != test.status {
			t.Errorf("%s: status %d, %v, got\n%s\nwant\n%s", test.rule, commandtest.Status(err), err, out, test.want)
		}
	}
	var all map[string]*wire.TreeUsage
	if out, err := run("--json", "acme/vpc/aws"); err != nil || json.Unmarshal([]byte(out), &all) != nil || len(all) != 2 || len(all["/srv/a"].Addresses) != 1 {
		t.Errorf("as JSON, got error %v and %s", err, out)
	}
	_, _, err := commandtest.Run(t.Context(), usageCommand(), "--address", "unix/"+t.TempDir()+"/none")
	if commandtest.Status(err) != 2 || !strings.Contains(err.Error(), "start Caddy with the option usage") {
		t.Errorf("without a server: %v", err)
	}
}
