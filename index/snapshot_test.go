package index_test

import (
	"slices"
	"strings"
	"testing"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

func withHostname(hostname svchost.Hostname, a address.Address) address.Address {
	a.Hostname = hostname
	return a
}

// An address found with a hostname and without is a single address for a registry that
// answers as that hostname, and two addresses for every other registry.
func TestAnAddressWithAndWithoutHostname(t *testing.T) {
	files := indextest.New(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64", "linux_arm64")
	files.Provider("acme/demo", "1.1.0", "linux_amd64")
	files.Provider("acme/alone", "1.0.0", "linux_amd64")
	files.Provider("registry.example.com/acme/demo", "1.0.0", "linux_amd64")
	files.Provider("registry.example.com/acme/demo", "2.0.0", "linux_amd64")
	files.Provider("registry.example.com/acme/named", "1.0.0", "linux_amd64")
	s := scan(t, files)
	nothingWithheld(t, s)

	demo, alone, named := ownDemo, address.Address{Namespace: "acme", Name: "alone"}, address.Address{Namespace: "acme", Name: "named"}
	for _, test := range []struct {
		rule    string
		merged  bool
		address address.Address
		want    []string
	}{
		{"under the hostname, the registry offers both", true, withHostname("registry.example.com", demo), []string{"2.0.0", "1.1.0", "1.0.0"}},
		{"under another hostname, what lies under none", true, withHostname("other.example.com", demo), []string{"1.1.0", "1.0.0"}},
		{"under none, what lies under none", true, demo, []string{"1.1.0", "1.0.0"}},
		{"what lies under no hostname is hosted under each", true, withHostname("registry.example.com", alone), []string{"1.0.0"}},
		{"what lies under one is hosted under that", true, withHostname("registry.example.com", named), []string{"1.0.0"}},
		{"and under no other", true, withHostname("other.example.com", named), nil},
		{"a mirror offers what lies under the hostname", false, withHostname("registry.example.com", demo), []string{"2.0.0", "1.0.0"}},
		{"and nothing under any other", false, withHostname("other.example.com", demo), nil},
		{"nor one that does not exist", true, withHostname("registry.example.com", address.Address{Namespace: "acme", Name: "x"}), nil},
	} {
		t.Run(test.rule, func(t *testing.T) {
			if got := releasesOf(s.Provider(index.Place{Address: test.address, Merged: test.merged})); !slices.Equal(got, test.want) {
				t.Errorf("it is %q", got)
			}
		})
	}

	joined := s.Provider(index.Place{Address: withHostname("registry.example.com", demo), Merged: true})
	if n := len(joined.Release("1.0.0").Packages); n != 1 {
		t.Errorf("of the version that is there twice the one without hostname is offered: it has %d packages", n)
	}
	if n := len(decoded(t, joined.Versions())["versions"].([]any)); n != 3 {
		t.Errorf("the list has %d versions", n)
	}
	for _, name := range []string{"terraform-provider-demo_1.1.0_linux_amd64.zip", "terraform-provider-demo_2.0.0_SHA256SUMS.sig"} {
		if served(t, s, joined.File(name)) == "" {
			t.Errorf("%s is empty", name)
		}
	}
	if notes := offerOf(s, "acme/demo", "1.0.0").Notes; len(notes) != 1 || !strings.Contains(notes[0], "found under registry.example.com too") {
		t.Errorf("of the clash is noted %q", notes)
	}
	for _, o := range s.Report().Offered {
		if len(o.Notes) > 0 && (o.Address != "acme/demo" || o.Version != "1.0.0") {
			t.Errorf("of %s %s is noted %q", o.Address, o.Version, o.Notes)
		}
	}
}

func TestAModuleWithAndWithoutHostname(t *testing.T) {
	files := indextest.New(t)
	files.Write("modules/acme/vpc/aws/1.0.0/main.tf", "# without\n")
	files.Write("modules/acme/vpc/aws/1.1.0/main.tf", "# without\n")
	files.Write("modules/registry.example.com/acme/vpc/aws/1.0.0.zip", indextest.Zip("main.tf", "# with\n"))
	s := scan(t, files)
	nothingWithheld(t, s)
	own := ownVPC
	named := own
	named.Hostname = "registry.example.com"

	joined := s.Module(index.Place{Address: named, Merged: true})
	if len(joined.Versions) != 2 || joined.Version("1.0.0").Archive.Name != "archive.zip" || joined.Version("1.1.0").Archive.Name != "archive.tar.gz" {
		t.Errorf("joined is %+v", joined.Versions)
	}
	if len(s.Module(index.PlaceOf(named)).Versions) != 1 || len(s.Module(index.PlaceOf(own)).Versions) != 2 || s.Module(index.Place{Address: own, Merged: true}) != s.Module(index.PlaceOf(own)) {
		t.Error("they are not separately there")
	}
	other := own
	other.Hostname = "other.example.com"
	if s.Module(index.PlaceOf(other)) != nil || s.Module(index.Place{Address: other, Merged: true}) != s.Module(index.PlaceOf(own)) {
		t.Error("another name of the registry is not answered with what has no hostname")
	}
	if notes := offerOf(s, "acme/vpc/aws", "1.0.0").Notes; len(notes) != 1 {
		t.Errorf("of the clash is noted %q", notes)
	}
}

// Later snapshots do not change a snapshot that is in use.
func TestSnapshotsAreImmutable(t *testing.T) {
	files := indextest.New(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64")
	files.Provider("a.example/acme/demo", "1.0.0", "linux_amd64")
	x := newIndex(t, options(t, files.Open))
	first, err := x.Rescan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	before := offerOf(first, "acme/demo", "1.0.0").Notes
	files.Provider("b.example/acme/demo", "1.0.0", "linux_amd64")
	files.Remove("providers/a.example")
	second, err := x.Rescan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if notes := offerOf(second, "acme/demo", "1.0.0").Notes; len(notes) != 1 || !strings.Contains(notes[0], "b.example") {
		t.Errorf("now is noted %q", notes)
	}
	if notes := offerOf(first, "acme/demo", "1.0.0").Notes; !slices.Equal(notes, before) || !strings.Contains(notes[0], "a.example") {
		t.Errorf("before was noted %q", notes)
	}
	if first.Provider(index.Place{Address: withHostname("a.example", ownDemo), Merged: true}) == nil || second.Provider(index.PlaceOf(withHostname("a.example", ownDemo))) != nil {
		t.Error("what was removed is gone from the first, or not from the second")
	}
}
