package pages

import (
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
)

// The home page stands in for the registries whose packages the visitor may have from
// it, and for no others.
func TestTheHomePageStandsIn(t *testing.T) {
	public := []string{"allow anonymous read *"}
	private := []string{"allow ann read *"}
	const hosts = `host "registry.terraform.io" {`
	const providers, modules = `/v1/registries/registry.terraform.io/providers/"`, `/v1/registries/registry.terraform.io/modules/"`
	for _, test := range []struct {
		rule       string
		files      func(*indextest.Tree)
		origins    []pull.Origin
		rules      []string
		user       string
		want, lack []string
	}{
		{"not for a registry that it has nothing of", func(files *indextest.Tree) { files.Provider("acme/demo", "1.0.0", "linux_amd64") }, nil, public, "",
			[]string{"registry.example.com/NAMESPACE/TYPE"}, []string{"host \"", "Network mirror"}},
		{"for the providers in the tree", func(files *indextest.Tree) { files.Provider("registry.terraform.io/acme/demo", "1.0.0", "linux_amd64") }, nil, public, "",
			[]string{hosts, providers, `https://registry.terraform.io/v1/modules/`}, []string{modules, "credentials"}},
		{"for the modules in the tree", func(files *indextest.Tree) {
			files.Write("modules/registry.terraform.io/acme/vpc/aws/1.0.0/main.tf", "# a")
		}, nil, public, "",
			[]string{hosts, modules}, []string{providers}},
		{"for an upstream, before anything of it is here", nil, []pull.Origin{{Hostname: "registry.terraform.io"}}, public, "",
			[]string{"Network mirror", hosts, providers}, []string{modules}},
		{"for an upstream with modules", nil, []pull.Origin{{Hostname: "registry.terraform.io", Modules: true}}, public, "",
			[]string{hosts, providers, modules}, []string{"credentials"}},
		{"with a token where that is private", nil, []pull.Origin{{Hostname: "registry.terraform.io"}}, private, "ann",
			[]string{hosts, `credentials "registry.terraform.io"`}, nil},
		{"for nobody who is not known", func(files *indextest.Tree) { files.Provider("registry.terraform.io/acme/demo", "1.0.0", "linux_amd64") }, []pull.Origin{{Hostname: "intern.example.net"}}, private, "",
			nil, []string{"registry.terraform.io", "intern.example.net"}},
		{"for everyone where that is public", nil, []pull.Origin{{Hostname: "registry.terraform.io"}, {Hostname: "intern.example.net"}}, []string{"allow anonymous read registry.terraform.io"}, "",
			[]string{hosts, providers}, []string{`credentials "registry.terraform.io"`, "intern.example.net"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			files := indextest.New(t)
			if test.files != nil {
				test.files(files)
			}
			s := siteOf(t, snapshotOf(t, files), test.rules...)
			if test.origins != nil {
				s.Registry.Upstream = originsOnly{origins: test.origins}
			}
			checkText(t, "/", mainOf(t, s.get("/", test.user)), test.want, test.lack)
		})
	}
}

// Without the registry's signature, clients get providers only from the mirror.
func TestUnsignedProvidersAreNotExcludedFromTheMirror(t *testing.T) {
	files := indextest.New(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64")
	files.Provider("registry.terraform.io/acme/demo", "1.0.0", "linux_amd64")
	for _, unsigned := range []bool{false, true} {
		s := siteOf(t, snapshotOf(t, files))
		s.Unsigned = unsigned
		text := textIn(parse(t, s.get("/", "")))
		if got := strings.Contains(text, "exclude"); got == unsigned {
			t.Errorf("unsigned %t: excluded %t", unsigned, got)
		}
	}
}

// An originsOnly is an upstream that only has origins.
type originsOnly struct {
	pull.Upstream
	origins []pull.Origin
}

func (o originsOnly) Origins() []pull.Origin { return o.origins }

func TestNewReleasesSayWhatTheyAre(t *testing.T) {
	s := siteOf(t, snapshotOf(t, siteTree(t)))
	checkText(t, "/", mainOf(t, s.get("/", "")), []string{"acme/vpc/aws 1.4.0 module", "acme/demo 1.2.0 provider"}, nil)
}
