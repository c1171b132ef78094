package index_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

var ownVPC = address.Address{Namespace: "acme", Name: "vpc", System: "aws"}

// A module's package is found in any of these forms.
func TestFormsOfAModule(t *testing.T) {
	for _, test := range []struct {
		rule                   string
		files                  []string // names and contents
		version, archive, kind string
		ignored                int
	}{
		{"a folder", []string{"1.0.0/main.tf", "x"}, "1.0.0", "archive.tar.gz", "application/gzip", 0},
		{"a folder with a v", []string{"v1.0.0/main.tf", "x"}, "1.0.0", "archive.tar.gz", "application/gzip", 0},
		{"a folder of a version in short", []string{"1.2/main.tf", "x"}, "1.2.0", "archive.tar.gz", "application/gzip", 0},
		{"a folder with submodules only", []string{"1.0.0/modules/a/main.tf", "x"}, "1.0.0", "archive.tar.gz", "application/gzip", 0},
		{"a .tar.gz", []string{"1.0.0.tar.gz", indextest.TarGz("main.tf", "x")}, "1.0.0", "archive.tar.gz", "application/gzip", 0},
		{"a .tgz", []string{"1.0.0.tgz", indextest.TarGz("main.tf", "x")}, "1.0.0", "archive.tar.gz", "application/gzip", 0},
		{"a .zip", []string{"1.0.0.zip", indextest.Zip("main.tf", "x")}, "1.0.0", "archive.zip", "application/zip", 0},
		{"a .zip of a pre-release with a v", []string{"v1.0.0-rc.1+b.zip", indextest.Zip("main.tf", "x")}, "1.0.0-rc.1+b", "archive.zip", "application/zip", 0},
		{"beside anything else", []string{"1.0.0/main.tf", "x", "README.md", "x", "docs/a.md", "x", ".git/config", "x", "2.0.0.tar.gz.part", "x"}, "1.0.0", "archive.tar.gz", "application/gzip", 2},
	} {
		t.Run(test.rule, func(t *testing.T) {
			files := indextest.New(t)
			for i := 0; i < len(test.files); i += 2 {
				files.Write("modules/Acme/VPC/aws/"+test.files[i], test.files[i+1])
			}
			s := scan(t, files)
			nothingWithheld(t, s)
			m := s.Module(index.Place{Address: ownVPC, Merged: true})
			if m == nil || len(m.Versions) != 1 || m.Version(test.version) == nil {
				t.Fatalf("it is %+v", m)
			}
			a := m.Version(test.version).Archive
			if a.Name != test.archive || a.ContentType != test.kind {
				t.Errorf("the package is %+v", a)
			}
			if isArchive := strings.HasSuffix(a.Path(), test.files[0]); a.Immutable() != isArchive {
				t.Errorf("that it never changes is %v", a.Immutable())
			}
			if b := served(t, s, a); int64(len(b)) != a.Size || a.Tag() != a.SHA256.String() {
				t.Errorf("%d bytes of %d are served", len(b), a.Size)
			}
			if s.Report().IgnoredTotal != test.ignored {
				t.Errorf("ignored is %+v", s.Report().Ignored)
			}
		})
	}
}

// Of two packages of one version the same one is always offered: an archive before a folder,
// and a readable package before an unreadable one.
func TestAVersionInTwoForms(t *testing.T) {
	targz, zipped := indextest.TarGz("main.tf", "x"), indextest.Zip("main.tf", "x")
	for _, test := range []struct {
		rule     string
		files    []string // names and contents
		archive  string
		withheld []string
	}{
		{"a .tar.gz comes first", []string{"1.0.0.tar.gz", targz, "1.0.0.tgz", targz, "1.0.0.zip", zipped, "1.0.0/main.tf", "x"}, "archive.tar.gz", []string{"1.0.0", "1.0.0.tgz", "1.0.0.zip"}},
		{"a .zip before a folder", []string{"1.0.0.zip", zipped, "1.0.0/main.tf", "x"}, "archive.zip", []string{"1.0.0"}},
		{"a folder before a .zip that cannot be read", []string{"1.0.0.zip", "no zip", "1.0.0/main.tf", "x"}, "archive.tar.gz", []string{"1.0.0.zip"}},
		{"written with a v or without", []string{"v1.0.0.zip", zipped, "1.0.0.zip", zipped}, "archive.zip", []string{"v1.0.0.zip"}},
		{"written out or in short", []string{"1.0/main.tf", "x", "1.0.0/main.tf", "x"}, "archive.tar.gz", []string{"1.0.0"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			files := indextest.New(t)
			for i := 0; i < len(test.files); i += 2 {
				files.Write("modules/acme/vpc/aws/"+test.files[i], test.files[i+1])
			}
			s := scan(t, files)
			m := s.Module(index.PlaceOf(ownVPC))
			if m == nil || len(m.Versions) != 1 || m.Versions[0].Archive.Name != test.archive {
				t.Fatalf("it is %+v", m)
			}
			var withheld []string
			for _, p := range s.Report().Withheld {
				withheld = append(withheld, strings.TrimPrefix(p.Path, "modules/acme/vpc/aws/"))
				if p.Address != "acme/vpc/aws" || p.Version != "1.0.0" {
					t.Errorf("the problem is %+v", p)
				}
			}
			if !slices.Equal(withheld, test.withheld) {
				t.Errorf("withheld is %q", withheld)
			}
		})
	}
}

func TestTheListOfAModule(t *testing.T) {
	files := indextest.New(t)
	for _, version := range []string{"1.0.0", "v1.10.0", "1.9", "2.0.0-rc.1"} {
		files.Write("modules/acme/vpc/aws/"+version+"/main.tf", "x")
	}
	m := scan(t, files).Module(index.PlaceOf(ownVPC))
	d := m.List()
	versions, err := wire.DecodeModuleVersions(d.Head)
	if want := []string{"2.0.0-rc.1", "1.10.0", "1.9.0", "1.0.0"}; err != nil || !slices.Equal(versions, want) || len(d.Tail) != 0 || len(d.Links) != 0 {
		t.Errorf("the list is %s, %v", d.Head, err)
	}
	for _, v := range m.Versions {
		if want := fmt.Sprintf(`{"version":%q,"published_at":"2026-01-02T03:04:05Z","hashes":[%q,"zh:%s"],"package_size":%d}`, v.Version, v.FileHashes, v.Archive.SHA256, v.Archive.Size); !strings.Contains(string(d.Head), want) {
			t.Errorf("the list is %s, without %s", d.Head, want)
		}
	}
	if m.Version("1.9") != nil || m.Version("1.9.0") == nil {
		t.Error("a version is found by another form than clients request")
	}
}
