package pages

import (
	"strings"
	"testing"

	"golang.org/x/net/html/atom"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

// Versions with the same note share a row, which leads to the newest version.
func TestNotesOfAReport(t *testing.T) {
	s := siteOf(t, snapshotOf(t, siteTree(t)))
	v := &visit{site: s}
	var offered []index.Offer
	for _, version := range strings.Fields("1.9.0 1.8.0 1.7.0 1.6.0 1.5.0 1.4.0 1.3.0 1.2.0 1.1.0 1.0.0") {
		offered = append(offered, index.Offer{Kind: index.KindModule, Address: "acme/vpc/aws", Version: version, Notes: []string{"it is deprecated"}})
	}
	offered[1].Notes = append(offered[1].Notes, "it has no README")
	offered = append(offered, index.Offer{Kind: index.KindProvider, Address: "registry.terraform.io/acme/demo", Version: "1.0.0", Notes: []string{"it is deprecated"}})
	want := []problem{
		{"acme/vpc/aws 1.9.0, 1.8.0, 1.7.0, 1.6.0, 1.5.0, 1.4.0, 1.3.0, 1.2.0 and 2 more", "module", "it is deprecated", "/modules/acme/vpc/aws/1.9.0"},
		{"acme/vpc/aws 1.8.0", "module", "it has no README", "/modules/acme/vpc/aws/1.8.0"},
		{"registry.terraform.io/acme/demo 1.0.0", "provider", "it is deprecated", "/registries/registry.terraform.io/providers/acme/demo/1.0.0"},
	}
	got := v.notes(offered)
	if len(got) != len(want) {
		t.Fatalf("got %+v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got %+v, want %+v", got[i], want[i])
		}
	}
	page := reportPage{page: page{Site: testIdentity(), Title: "Report"}, Notes: got}
	if a := elements(elements(rendered(t, "report", page), atom.Table)[0], atom.A); len(a) != 3 || attr(a[0], "href") != want[0].URL {
		t.Errorf("%d rows are links", len(a))
	}
}
