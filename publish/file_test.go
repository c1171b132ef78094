package publish_test

import (
	"errors"
	"path"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/publish"
)

func TestReleaseFileNames(t *testing.T) {
	tests := []struct {
		version, name string
		kind          publish.Kind
		refused       bool
	}{
		{version: "1.0.0", name: linuxZip, kind: publish.Package},
		{version: "1.0.0", name: sums, kind: publish.Checksums},
		{version: "1.0.0", name: signature, kind: publish.Signature},
		{version: "1.0.0", name: manifest, kind: publish.Manifest},
		{version: "1.0.0", name: "docs.zip", kind: publish.Docs},
		{version: "1.0.0", name: "docs.tar.gz", kind: publish.Docs},
		{version: "1.0.0+build.5", name: "terraform-provider-demo_1.0.0+build.5_linux_amd64.zip", kind: publish.Package},
		{version: "1.0.0", name: "terraform-provider-demo_1.0.0_linux_armv6.zip", refused: true},
		{version: "1.0.0", name: "terraform-provider-demo_1.0.0_mars_amd64.zip", refused: true},
		{version: "v1.0.0", name: linuxZip, kind: publish.Package},
		{version: "1.0", name: linuxZip, kind: publish.Package},
		{version: "v1.0", name: "docs.zip", kind: publish.Docs},
		{version: "v1.0.0", name: "terraform-provider-demo_v1.0.0_linux_amd64.zip", refused: true},
		{version: "1.0", name: "terraform-provider-demo_1.0_linux_amd64.zip", refused: true},
		{version: "1.0.0", name: "../" + linuxZip, refused: true},
		{version: "1.0.0", name: "index.json", refused: true},
		{version: "1.0.0", name: "registry.hcl", refused: true},
		{version: "1.0.0", name: ".." + linuxZip, refused: true},
		{version: "..", name: linuxZip, refused: true},
	}
	for _, test := range tests {
		f, err := publish.ParseReleaseFile(demo, test.version, test.name)
		switch {
		case test.refused && !errors.Is(err, publish.ErrRefused):
			t.Errorf("%s %s: %v", test.version, test.name, err)
		case !test.refused && (err != nil || f.Kind != test.kind || strings.TrimSuffix(f.Version, "+build.5") != "1.0.0"):
			t.Errorf("%s %s: %v, %v", test.version, test.name, f.Kind, err)
		}
	}
}

// File systems and lock storages limit the length of names, of the release's own files
// and of the names that staging derives.
func TestLongNames(t *testing.T) {
	tests := []struct {
		rule    string
		typ     int // characters
		version int
		refused bool
	}{
		{"as long as the signature's may be", 64, 81, false},
		{"longer, by one character", 64, 82, true},
		{"as long as parts of addresses and versions can be", 64, 128, true},
	}
	author := indextest.NewPublisher(t)
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			r := newRegistry(t)
			a := address.Address{Namespace: strings.Repeat("n", 30), Name: strings.Repeat("t", test.typ)}
			version := "1.0.0-" + strings.Repeat("a", test.version-len("1.0.0-"))
			f, err := publish.ParseReleaseFile(a, version, address.SignatureName(a.Name, version))
			if err != nil {
				t.Fatal(err)
			}
			result, err := r.Put(t.Context(), f, upload(author.Sign("")))
			if test.refused {
				saying(t, err, publish.ErrRefused, "shorten the name or the version")
				return
			}
			if err != nil || result.Outcome != publish.Waiting {
				t.Errorf("got %+v and error %v\n%s", result, err, r.log)
			}
		})
	}
	t.Run("of a module, which are names of locks", func(t *testing.T) {
		part := strings.Repeat("m", 64)
		f, err := publish.ParseModuleFile(address.Address{Namespace: part, Name: part, System: part}, "1.0.0.zip")
		if err != nil {
			t.Fatal(err)
		}
		_, err = newRegistry(t).Put(t.Context(), f, upload(indextest.Zip("main.tf", "")))
		saying(t, err, publish.ErrRefused, "shorten the name or the version")
	})
}

func FuzzFileNames(f *testing.F) {
	for _, seed := range []string{linuxZip, sums, "1.0.0.tar.gz", "../1.0.0.zip", "docs.zip", "v1.2.tgz", "1.0.0\x00.zip"} {
		f.Add("1.0.0", seed)
	}
	f.Fuzz(func(t *testing.T, version, name string) {
		for _, parse := range []func() (publish.File, error){
			func() (publish.File, error) { return publish.ParseReleaseFile(demo, version, name) },
			func() (publish.File, error) { return publish.ParseModuleFile(vpc, name) },
			func() (publish.File, error) { return publish.ParseMetadataFile(demo, name) },
		} {
			file, err := parse()
			if err != nil {
				if !errors.Is(err, publish.ErrRefused) || len(err.Error()) > 2000 {
					t.Errorf("%q: %v", name, err)
				}
				continue
			}
			if path.Base(file.Name) != file.Name || path.Base(path.Join("x", file.Version)) != file.Version && file.Version != "" ||
				strings.ContainsAny(file.Name+file.Version, "/\\\x00@") || strings.HasPrefix(file.Name, ".") {
				t.Errorf("%q is %+v", name, file)
			}
			if file.Kind == publish.Module {
				if again, err := publish.ParseModuleFile(address.Address(file.Address), file.Name); err != nil || again != file {
					t.Errorf("%q is %+v, and that is %+v, %v", name, file, again, err)
				}
			}
		}
	})
}
