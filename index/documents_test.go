package index_test

import (
	"slices"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// What a mirror can get beyond what it holds is in the SHA256SUMS that the
// publisher signed.
func TestMissingPackages(t *testing.T) {
	publisher := indextest.NewPublisher(t)
	null := address.Address{Hostname: "registry.terraform.io", Namespace: "hashicorp", Name: "null"}
	tree := indextest.New(t).Keys("registry.terraform.io/hashicorp", publisher)
	tree.Provider("registry.terraform.io/hashicorp/null", "3.2.0", "darwin_arm64", "linux_amd64", "windows_amd64").Signed(publisher)
	tree.Remove("providers/registry.terraform.io/hashicorp/null/terraform-provider-null_3.2.0_darwin_arm64.zip")
	tree.Remove("providers/registry.terraform.io/hashicorp/null/terraform-provider-null_3.2.0_windows_amd64.zip")
	tree.Provider("registry.terraform.io/hashicorp/null", "3.1.0", "linux_amd64").Checksums()

	p := scan(t, tree).Provider(null)
	missing := p.Missing(p.Release("3.2.0"))
	var platforms []string
	for _, m := range missing {
		platforms = append(platforms, m.Platform.String())
	}
	if want := []string{"darwin_arm64", "windows_amd64"}; !slices.Equal(platforms, want) {
		t.Fatalf("missing are %v, want %v", platforms, want)
	}
	if got := missing[0].URL; got != "terraform-provider-null_3.2.0_darwin_arm64.zip" {
		t.Errorf("its name is %s", got)
	}
	if got := p.Missing(p.Release("3.1.0")); got != nil {
		t.Errorf("missing of what its publisher did not sign: %v, want none", got)
	}

	held := string(p.Release("3.2.0").Archives().Head)
	all := string(index.MirrorArchives(p.Release("3.2.0"), missing, false).Head)
	want := held[:len(held)-2] +
		`,"darwin_arm64":{"hashes":["` + missing[0].Hashes[0] + `"],"url":"` + missing[0].URL + `"}` +
		`,"windows_amd64":{"hashes":["` + missing[1].Hashes[0] + `"],"url":"` + missing[1].URL + `"}}}`
	if all != want {
		t.Errorf("got %s\nwant %s", all, want)
	}
	if again := string(index.MirrorArchives(p.Release("3.2.0"), nil, false).Head); again != held {
		t.Errorf("with nothing missing: got %s, want %s", again, held)
	}
	h1 := []wire.Archive{{Platform: address.Platform{OS: "linux", Arch: "amd64"}, URL: "x.zip", Hashes: []string{"h1:abc="}}}
	if got := string(index.MirrorArchives(nil, h1, false).Head); got != `{"archives":{"linux_amd64":{"hashes":["h1:abc="],"url":"x.zip"}}}` {
		t.Errorf("with h1: alone: got %s", got)
	}
	if got, want := string(index.MirrorArchives(p.Release("3.2.0"), missing[:1], true).Head), held[:len(held)-2]+`,"darwin_arm64":{"url":"`+missing[0].URL+`"}}}`; got != want {
		t.Errorf("for who knows h1: only: got %s\nwant %s", got, want)
	}
	if got, want := index.MirrorArchives(nil, h1, true), index.MirrorArchives(nil, h1, false); string(got.Head) != string(want.Head) || got.Tag != want.Tag {
		t.Errorf("with h1:, for who knows no other: got %s", got.Head)
	}
	if got := string(index.MirrorArchives(nil, nil, false).Head); got != `{"archives":{}}` {
		t.Errorf("with nothing at all: got %s", got)
	}
}

func TestMirrorIndexMergesVersions(t *testing.T) {
	tree := indextest.New(t)
	tree.Provider("registry.terraform.io/hashicorp/null", "3.1.0", "linux_amd64")
	held := scan(t, tree).Provider(address.Address{Hostname: "registry.terraform.io", Namespace: "hashicorp", Name: "null"})
	tests := []struct {
		rule    string
		held    []*index.Release
		further []string
		want    string
	}{
		{"newest first, each once", held.Releases, []string{"3.0.0", "3.1.0", "3.10.0"}, `{"versions":{"3.10.0":{},"3.1.0":{},"3.0.0":{}}}`},
		{"what is held alone", held.Releases, nil, string(held.Index().Head)},
		{"what is not held alone", nil, []string{"1.0.0"}, `{"versions":{"1.0.0":{}}}`},
		{"what is not a version is left out", nil, []string{"1.0.0", "v1.1.0", "latest"}, `{"versions":{"1.0.0":{}}}`},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			if got := string(index.MirrorIndex(test.held, test.further).Head); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestListedArchivesAreOfTheRelease(t *testing.T) {
	sum := wire.SHA256{1}
	sums := wire.Checksums{
		"terraform-provider-null_3.2.0_linux_amd64.zip":   sum,
		"terraform-provider-null_3.2.0_darwin_arm64.zip":  sum,
		"terraform-provider-null_3.2.1_linux_amd64.zip":   sum, // another version
		"terraform-provider-other_3.2.0_linux_amd64.zip":  sum, // another provider
		"terraform-provider-null_3.2.0_manifest.json":     sum,
		"terraform-provider-null_3.2.0_LINUX_amd64.zip":   sum, // no platform
		"../terraform-provider-null_3.2.0_linux_386.zip":  sum,
		"terraform-provider-null_3.2.0_linux_386.zip.zip": sum,
	}
	var names []string
	for _, o := range index.ListedArchives("null", "3.2.0", sums) {
		names = append(names, o.URL)
	}
	want := []string{"terraform-provider-null_3.2.0_darwin_arm64.zip", "terraform-provider-null_3.2.0_linux_amd64.zip"}
	if !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
}
