package index_test

import (
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/index/offer"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// served returns the bytes that a client downloads.
func served(t *testing.T, s *index.Snapshot, f *index.File) string {
	t.Helper()
	if f == nil {
		t.Fatal("there is no such file")
	}
	r, err := s.Open(f)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// decoded returns a document as a client reads it.
func decoded(t *testing.T, d *wire.Document) map[string]any {
	t.Helper()
	if d == nil {
		t.Fatal("there is no document")
	}
	var v map[string]any
	if err := json.Unmarshal(append(slices.Clone(d.Head), d.Tail...), &v); err != nil {
		t.Fatal(err)
	}
	for _, l := range d.Links {
		if l.Start >= l.End || d.Head[l.Start-1] != '"' || d.Head[l.End] != '"' {
			t.Errorf("%+v is no link", l)
		}
	}
	if (len(d.Head)+len(d.Tail)) != len(d.Head)+len(d.Tail) || d.Tag == "" {
		t.Error("it has no size or no tag")
	}
	return v
}

// Releases may lie in a provider's folder in any of these forms.
func TestLayoutsOfAProvider(t *testing.T) {
	for _, test := range []struct {
		rule    string
		build   func(files *indextest.Tree)
		address string
		ignored int
	}{
		{"in its folder", func(files *indextest.Tree) {
			files.Provider("acme/demo", "1.0.0", "linux_amd64", "darwin_arm64").Manifest("5.0").Checksums()
		}, "acme/demo", 0},
		{"in a folder of its version", func(files *indextest.Tree) {
			files.ProviderIn("providers/acme/demo/1.0.0", "demo", "1.0.0", "linux_amd64", "darwin_arm64").Manifest("5.0").Checksums()
		}, "acme/demo", 0},
		{"a platform here and one there", func(files *indextest.Tree) {
			files.ProviderIn("providers/acme/demo/1.0.0", "demo", "1.0.0", "linux_amd64")
			files.Provider("acme/demo", "1.0.0", "darwin_arm64")
		}, "acme/demo", 0},
		{"as goreleaser leaves it", func(files *indextest.Tree) {
			files.ProviderIn("providers/acme/demo/1.0.0", "demo", "1.0.0", "linux_amd64", "darwin_arm64").Manifest("5.0").Checksums()
			files.Write("providers/acme/demo/1.0.0/artifacts.json", "[]").Write("providers/acme/demo/1.0.0/metadata.json", "{}").
				Write("providers/acme/demo/1.0.0/config.yaml", "x").
				Write("providers/acme/demo/1.0.0/demo_linux_amd64_v1/terraform-provider-demo_v1.0.0", "x")
		}, "acme/demo", 0},
		{"as terraform providers mirror leaves it", func(files *indextest.Tree) {
			files.Provider("registry.example.com/acme/demo", "1.0.0", "linux_amd64", "darwin_arm64")
			files.Write("providers/registry.example.com/acme/demo/index.json", `{"versions":{"1.0.0":{}}}`).
				Write("providers/registry.example.com/acme/demo/1.0.0.json", `{"archives":{}}`)
		}, "registry.example.com/acme/demo", 0},
		{"under a hostname with a port", func(files *indextest.Tree) {
			files.Provider("localhost:8443/acme/demo", "1.0.0", "linux_amd64", "darwin_arm64")
		}, "localhost:8443/acme/demo", 0},
		{"under localhost", func(files *indextest.Tree) {
			files.Provider("localhost/acme/demo", "1.0.0", "linux_amd64", "darwin_arm64")
		}, "localhost/acme/demo", 0},
		{"under a hostname in punycode", func(files *indextest.Tree) {
			files.Provider("xn--bcher-kva.example/acme/demo", "1.0.0", "linux_amd64", "darwin_arm64")
		}, "bücher.example/acme/demo", 0},
		{"in folders in upper case", func(files *indextest.Tree) {
			files.ProviderIn("providers/Acme/Demo", "demo", "1.0.0", "linux_amd64", "darwin_arm64")
		}, "acme/demo", 0},
		{"beside files with temporary names", func(files *indextest.Tree) {
			files.Provider("acme/demo", "1.0.0", "linux_amd64", "darwin_arm64")
			files.Write("providers/acme/demo/.terraform-provider-demo_1.0.0_linux_arm64.zip.Xy12", "x").
				Write("providers/acme/demo/terraform-provider-demo_1.0.0_linux_arm.zip.part", "x").
				Write("providers/acme/.new/x", "x").Write("providers/.tmp/acme/x", "x")
		}, "acme/demo", 4},
		{"beside a release without a package", func(files *indextest.Tree) {
			files.Provider("acme/demo", "1.0.0", "linux_amd64", "darwin_arm64")
			files.Provider("acme/demo", "2.0.0").Manifest("6.0").Checksums()
		}, "acme/demo", 2},
	} {
		t.Run(test.rule, func(t *testing.T) {
			files := indextest.New(t)
			test.build(files)
			s := scan(t, files)
			nothingWithheld(t, s)
			if len(s.Report().Offered) != 1 {
				t.Errorf("offered is %+v", s.Report().Offered)
			}
			o := offerOf(s, test.address, "1.0.0")
			if !slices.Equal(o.Platforms, []string{"darwin_arm64", "linux_amd64"}) || !strings.HasPrefix(o.Signature, "registry ") {
				t.Errorf("the offer is %+v", o)
			}
			if s.Report().IgnoredTotal != test.ignored {
				t.Errorf("ignored is %+v", s.Report().Ignored)
			}
		})
	}
}

func TestWithoutAKeyOfItsOwnTheRegistryOnlyMirrors(t *testing.T) {
	files := indextest.New(t)
	p := indextest.NewPublisher(t)
	files.Keys("acme", p).Provider("acme/demo", "1.0.0", "linux_amd64").Signed(p)
	files.Provider("acme/demo", "1.1.0", "linux_amd64")
	files.Provider("acme/unsigned", "1.0.0", "linux_amd64")
	o := options(t, files.Open)
	o.Signer = nil
	s := scanWith(t, o)
	nothingWithheld(t, s)
	demo, unsigned := s.Provider(index.PlaceOf(ownDemo)), s.Provider(index.PlaceOf(address.Address{Namespace: "acme", Name: "unsigned"}))
	if n := len(decoded(t, demo.Versions())["versions"].([]any)); n != 1 {
		t.Errorf("the registry lists %d versions", n)
	}
	if n := len(decoded(t, demo.Index())["versions"].(map[string]any)); n != 2 {
		t.Errorf("the mirror lists %d versions", n)
	}
	if demo.Release("1.1.0").Packages[0].Download() != nil || demo.Release("1.1.0").Archives() == nil {
		t.Error("the release that is not signed is not the mirror's alone")
	}
	if unsigned.Versions() != nil || unsigned.Index() == nil || unsigned.File("terraform-provider-unsigned_1.0.0_SHA256SUMS.sig") != nil {
		t.Error("the provider that is not signed is not the mirror's alone")
	}
	if o := offerOf(s, "acme/demo", "1.1.0"); o.Signature != "none" || len(o.Notes) != 1 {
		t.Errorf("the offer is %+v", o)
	}
}

func TestTheAnswersOfAProvider(t *testing.T) {
	files := indextest.New(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64", "darwin_arm64").Manifest("5.0", "6.0")
	files.Provider("acme/demo", "1.1.0-rc.1+b.5", "linux_amd64")
	files.Provider("acme/demo", "0.9.0", "linux_amd64")
	// The same bytes for two platforms make OpenTofu panic if it is told so.
	files.Write("providers/acme/demo/terraform-provider-demo_0.9.0_linux_arm64.zip", files.Read("providers/acme/demo/terraform-provider-demo_0.9.0_linux_amd64.zip"))
	s := scan(t, files)
	nothingWithheld(t, s)
	demo := s.Provider(index.PlaceOf(ownDemo))

	var versions []string
	for _, v := range decoded(t, demo.Versions())["versions"].([]any) {
		v := v.(map[string]any)
		versions = append(versions, v["version"].(string))
		if len(v["protocols"].([]any)) == 0 || len(v["platforms"].([]any)) == 0 {
			t.Errorf("it lists %v", v)
		}
	}
	if !slices.Equal(versions, []string{"1.1.0-rc.1+b.5", "1.0.0", "0.9.0"}) {
		t.Errorf("the versions are %q", versions)
	}

	r := demo.Release("1.0.0")
	k := r.Package("linux", "amd64")
	d := decoded(t, k.Download())
	if d["os"] != "linux" || d["arch"] != "amd64" || d["filename"] != zipName || d["download_url"] != zipName || d["shasum"] != k.File.SHA256.String() ||
		d["shasums_url"] != "terraform-provider-demo_1.0.0_SHA256SUMS" || d["shasums_signature_url"] != "terraform-provider-demo_1.0.0_SHA256SUMS.sig" ||
		len(d["protocols"].([]any)) != 2 || len(k.Download().Links) != 3 {
		t.Errorf("the download is %v", d)
	}
	packages := d["packages"].(map[string]any)
	archives := decoded(t, r.Archives())["archives"].(map[string]any)
	if len(packages) != 2 || len(archives) != 2 {
		t.Errorf("the packages are %v, the archives %v", packages, archives)
	}
	for platform := range archives {
		system, arch, _ := strings.Cut(platform, "_")
		k := r.Package(system, arch)
		want := []any{k.FileHashes.H1(), "zh:" + k.File.SHA256.String()}
		p, a := packages[platform].(map[string]any), archives[platform].(map[string]any)
		if !slices.Equal(p["hashes"].([]any), want) || !slices.Equal(a["hashes"].([]any), want) || p["package_size"] != float64(k.File.Size) || a["url"] != k.File.Name {
			t.Errorf("of %s the package is %v, the archive %v", platform, p, a)
		}
	}
	for _, k := range demo.Release("0.9.0").Packages {
		if _, told := decoded(t, k.Download())["packages"]; told {
			t.Error("two platforms with the same bytes are told of")
		}
	}
	// A + in a link is a + : no client takes it for a space.
	if u := decoded(t, demo.Release("1.1.0-rc.1+b.5").Packages[0].Download())["download_url"]; u != "terraform-provider-demo_1.1.0-rc.1+b.5_linux_amd64.zip" {
		t.Errorf("the link is %s", u)
	}
	if demo.Release("2.0.0") != nil || r.Package("plan9", "amd64") != nil || demo.File("x") != nil {
		t.Error("a version that does not exist is found")
	}
}

// The publisher's signed SHA256SUMS lists the packages that a mirror can fetch besides its
// own.
// Documentation and a notice are added to a release once it is signed, and its packages stay.
func TestAReleaseWithDocumentationCanBeDownloaded(t *testing.T) {
	files := indextest.New(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64").Docs("index.md", "# Demo\n")
	files.Write("providers/acme/demo/registry.hcl", "deprecated \"1.0.0\" {\n  reason = \"Old.\"\n}\n")
	r := scan(t, files).Provider(index.PlaceOf(ownDemo)).Release("1.0.0")
	if r.Docs() == "" || r.Deprecated() == nil || r.Package("linux", "amd64").Download() == nil {
		t.Errorf("its documentation is %q, its notice %v, and its download %v", r.Docs(), r.Deprecated(), r.Package("linux", "amd64").Download())
	}
}

func TestMissingPackages(t *testing.T) {
	publisher := indextest.NewPublisher(t)
	null := address.Address{Hostname: "registry.terraform.io", Namespace: "hashicorp", Name: "null"}
	files := indextest.New(t).Keys("registry.terraform.io/hashicorp", publisher)
	files.Provider("registry.terraform.io/hashicorp/null", "3.2.0", "darwin_arm64", "linux_amd64", "windows_amd64").Signed(publisher)
	files.Remove("providers/registry.terraform.io/hashicorp/null/terraform-provider-null_3.2.0_darwin_arm64.zip")
	files.Remove("providers/registry.terraform.io/hashicorp/null/terraform-provider-null_3.2.0_windows_amd64.zip")
	files.Provider("registry.terraform.io/hashicorp/null", "3.1.0", "linux_amd64").Checksums()

	p := scan(t, files).Provider(index.PlaceOf(null))
	missing := p.Release("3.2.0").Missing()
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
	if got := p.Release("3.1.0").Missing(); got != nil {
		t.Errorf("missing of what its publisher did not sign: %v, want none", got)
	}

	own := string(p.Release("3.2.0").Archives().Head)
	all := string(offer.MirrorArchives(p.Release("3.2.0"), missing, false).Head)
	want := own[:len(own)-2] +
		`,"darwin_arm64":{"hashes":["` + missing[0].Hashes[0] + `"],"url":"` + missing[0].URL + `"}` +
		`,"windows_amd64":{"hashes":["` + missing[1].Hashes[0] + `"],"url":"` + missing[1].URL + `"}}}`
	if all != want {
		t.Errorf("got %s\nwant %s", all, want)
	}
	if again := string(offer.MirrorArchives(p.Release("3.2.0"), nil, false).Head); again != own {
		t.Errorf("with nothing missing: got %s, want %s", again, own)
	}
	h1 := []wire.Archive{{Platform: address.Platform{OS: "linux", Arch: "amd64"}, URL: "x.zip", Hashes: []string{"h1:abc="}}}
	if got := string(offer.MirrorArchives(nil, h1, false).Head); got != `{"archives":{"linux_amd64":{"hashes":["h1:abc="],"url":"x.zip"}}}` {
		t.Errorf("with h1: alone: got %s", got)
	}
	if got, want := string(offer.MirrorArchives(p.Release("3.2.0"), missing[:1], true).Head), own[:len(own)-2]+`,"darwin_arm64":{"url":"`+missing[0].URL+`"}}}`; got != want {
		t.Errorf("for who knows h1: only: got %s\nwant %s", got, want)
	}
	if got, want := offer.MirrorArchives(nil, h1, true), offer.MirrorArchives(nil, h1, false); string(got.Head) != string(want.Head) || got.Tag != want.Tag {
		t.Errorf("with h1:, for who knows no other: got %s", got.Head)
	}
	if got := string(offer.MirrorArchives(nil, nil, false).Head); got != `{"archives":{}}` {
		t.Errorf("with nothing at all: got %s", got)
	}
}

func TestMirrorIndexMergesVersions(t *testing.T) {
	files := indextest.New(t)
	files.Provider("registry.terraform.io/hashicorp/null", "3.1.0", "linux_amd64")
	own := scan(t, files).Provider(index.PlaceOf(address.Address{Hostname: "registry.terraform.io", Namespace: "hashicorp", Name: "null"}))
	tests := []struct {
		rule    string
		present *index.Provider
		further []string
		want    string
	}{
		{"newest first, each once", own, []string{"3.0.0", "3.1.0", "3.10.0"}, `{"versions":{"3.10.0":{},"3.1.0":{},"3.0.0":{}}}`},
		{"only releases in the tree", own, nil, string(own.Index().Head)},
		{"only releases of the origin", nil, []string{"1.0.0"}, `{"versions":{"1.0.0":{}}}`},
		{"the plain one of several builds first", own, []string{"3.1.0+a", "3.0.0+a", "3.0.0"}, `{"versions":{"3.1.0":{},"3.1.0+a":{},"3.0.0":{},"3.0.0+a":{}}}`},
		{"names that are not versions are left out", nil, []string{"1.0.0", "v1.1.0", "latest"}, `{"versions":{"1.0.0":{}}}`},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			var further []wire.ProviderVersion
			for _, v := range test.further {
				further = append(further, wire.ProviderVersion{Version: v})
			}
			if got := string(offer.MergedProvider(own.Address, test.present, further, nil, 0).Index().Head); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
