package offer_test

import (
	"slices"
	"testing"
	"time"

	version "github.com/hashicorp/go-version"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/index/memo"
	"github.com/caddy-terraform/caddy-terraform-registry/index/offer"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

func release(number string) *offer.Release {
	name := address.PackageName("demo", number, address.Platform{OS: "linux", Arch: "amd64"})
	f := offer.NewFile(name, offer.InProviders, tree.Location{Dir: "acme/demo", Name: name}, memo.Record{Digest: archive.Digest{SHA256: wire.SHA256{1}, Size: 3}, Stamp: tree.Stamp{Size: 3}}, nil)
	f.Version, f.Platform = number, "linux_amd64"
	return offer.NewRelease(offer.ReleaseParts{
		Address: address.Address{Namespace: "acme", Name: "demo"}, Version: version.Must(version.NewVersion(number)), Protocols: wire.DefaultProtocols(),
		Packages: []offer.Package{{Platform: address.Platform{OS: "linux", Arch: "amd64"}, File: &f, FileHashes: "h1:x"}},
		Notes:    []string{"a note"}, State: wire.SHA256{2}, Verified: time.Unix(100, 0),
	})
}

// A release is whole when it is made: nothing is set afterwards, and copies have other
// documentation only.
func TestAReleaseIsWhole(t *testing.T) {
	r := release("1.0.0")
	if o := r.Reported(address.Address{Namespace: "acme", Name: "demo"}); o.Address != "acme/demo" || o.Version != "1.0.0" || !slices.Equal(o.Platforms, []string{"linux_amd64"}) || !slices.Equal(o.Notes, []string{"a note", "it is not signed: only the mirror offers it"}) {
		t.Errorf("reported is %+v", o)
	}
	if !r.IsVerified(wire.SHA256{2}, time.Unix(160, 0), time.Hour) || r.IsVerified(wire.SHA256{3}, time.Unix(160, 0), time.Hour) {
		t.Error("it is not known when it was verified, or what")
	}
	with := r.WithDocs("acme/demo/1.0.0/docs")
	if r.Docs() != "" || with.Docs() == "" || with.Packages[0] != r.Packages[0] || with.WithDocs(with.Docs()) != with {
		t.Errorf("%+v has the documentation %q, and %+v", r, r.Docs(), with)
	}
}

// A provider with the lists of an origin is whole: what is in the tree is found in it.
func TestAProviderWithFurtherVersions(t *testing.T) {
	a := address.Address{Namespace: "acme", Name: "demo"}
	present := offer.NewProvider(a, []*offer.Release{release("1.0.0")}, offer.Metadata{})
	p := offer.MergedProvider(a, present, []wire.ProviderVersion{{Version: "2.0.0"}, {Version: "1.0.0"}}, nil, time.Minute)
	if len(p.Releases) != 2 || p.Latest().Version != "2.0.0" || p.Age != time.Minute {
		t.Errorf("the releases are %+v", p.Releases)
	}
	if r := p.Release("1.0.0"); r == nil || p.File(r.Packages[0].File.Name) != r.Packages[0].File {
		t.Errorf("what is in the tree is not found: %+v", r)
	}
	if r := p.Release("2.0.0"); r == nil || len(r.Packages) != 0 {
		t.Errorf("what can be fetched is %+v", r)
	}
}
