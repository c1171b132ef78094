package handlers_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// hostedTree has modules as code hosts pack them: in one folder of the archive.
func hostedTree(t testing.TB) *indextest.Tree {
	t.Helper()
	const main = `output "root" { value = 1 }`
	files := []string{"vpc-1.0+b/main.tf", main, "vpc-1.0+b/modules/sub/main.tf", main}
	tree := indextest.New(t)
	tree.Write("modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz(files...))
	tree.Write("modules/acme/vpc/aws/1.1.0.zip", indextest.Zip(files...))
	tree.Write("modules/acme/vpc/aws/1.2.0.tgz", indextest.TarGz("vpc-1.0+b/README.md", "# VPC", "vpc-1.0+b/modules/sub/main.tf", main))
	return tree
}

// splitFolder takes the folder off a location as go-getter does: what is behind
// the first // of the path, up to the query, which stays with the package.
func splitFolder(t testing.TB, location string) (pack *url.URL, folder string) {
	t.Helper()
	scheme := strings.Index(location, "://") + len("://")
	before, after, found := strings.Cut(location[scheme:], "//")
	if !found {
		t.Fatalf("%s has no folder", location)
	}
	folder, query, _ := strings.Cut(after, "?")
	u, err := url.Parse(location[:scheme] + before + "?" + query)
	if err != nil {
		t.Fatal(err)
	}
	return u, folder
}

// Checklist 88, 89 and 96, with and without links that are signed.
func TestModulesInAFolderOfTheirArchive(t *testing.T) {
	const versions = "/v1/modules/acme/vpc/aws/"
	tree := hostedTree(t)
	for rule, s := range map[string]*site{
		"everybody's": serve(t, registry(scan(t, tree))),
		"private":     serve(t, privately(t, registry(scan(t, tree)), "allow reader read acme")),
	} {
		for version, name := range map[string]string{"1.0.0": "archive.tar.gz", "1.1.0": "archive.zip", "1.2.0": "archive.tar.gz"} {
			s.rule(rule+" "+version, func(t *testing.T, s *site) {
				// An OpenTofu that would be sent with its token knows no folders.
				for _, agent := range []string{"Terraform/1.15.9", "OpenTofu/1.12.6"} {
					a := s.get(versions+version+"/download", "User-Agent: "+agent, reader)
					if a.StatusCode != http.StatusNoContent {
						t.Fatalf("%s: got %d %s", agent, a.StatusCode, a.body)
					}
					pack, folder := splitFolder(t, s.resolve(home+versions+version+"/download", a.Header.Get("X-Terraform-Get")).String())
					if folder != "vpc-1.0+b" || pack.Path != versions+version+"/"+name {
						t.Errorf("%s: it is in %q of %s", agent, folder, pack)
					}
					if signed := pack.Query().Get("sig") != ""; signed != (rule == "private") {
						t.Errorf("%s: the location is %s", agent, pack)
					}
					if files := s.unpack(pack); files[folder+"/modules/sub/main.tf"] == "" {
						t.Errorf("%s: unpacked is %v", agent, files)
					}
				}
			})
		}
	}
}

// A range of a packed folder needs the files it is of. All of a folder that has
// changed is refused before the answer has begun.
func TestRangesOfAFolderThatHasChanged(t *testing.T) {
	tree := indextest.New(t)
	tree.Write("modules/acme/vpc/aws/1.0.0/main.tf", "# a module")
	tree.Write("modules/acme/vpc/aws/1.0.0/zeros.bin", strings.Repeat("\x00", 100_000))
	s := serve(t, registry(scan(t, tree)))
	location := s.moduleLocation("acme/vpc/aws/1.0.0").String()
	whole := s.get(location)
	tree.Write("modules/acme/vpc/aws/1.0.0/zeros.bin", "fewer")
	if a := s.get(location, "Range: bytes=0-999"); a.StatusCode != http.StatusPartialContent || a.body != whole.body[:1000] {
		t.Errorf("a range before what has changed: got %d with %d bytes", a.StatusCode, len(a.body))
	}
	mustRefuse(t, s.get(location), http.StatusServiceUnavailable)
}
