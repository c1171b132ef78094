package index_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
)

// addressAt is the address of a provider or module.
func addressAt(hostname, names string) address.Address {
	n := strings.Split(names, "/")
	a, err := address.ParseProvider(hostname, n[0], n[1])
	if len(n) == 3 {
		a, err = address.ParseModule(hostname, n[0], n[1], n[2])
	}
	if err != nil {
		panic(err)
	}
	return a
}

// releasesOf returns the offered versions of a provider, with a ! after deprecated ones.
func releasesOf(p *index.Provider) (versions []string) {
	if p == nil {
		return nil
	}
	for _, r := range p.Releases {
		versions = append(versions, r.Version+mark(r.Deprecated()))
	}
	return versions
}

func moduleVersionsOf(m *index.Module) (versions []string) {
	if m == nil {
		return nil
	}
	for _, v := range m.Versions {
		versions = append(versions, v.Version+mark(v.Deprecated()))
	}
	return versions
}

func mark(deprecated *registryhcl.Notice) string {
	if deprecated != nil {
		return "!"
	}
	return ""
}

func withdrawnOf(list []index.WithdrawnVersion) (versions []string) {
	for _, w := range list {
		versions = append(versions, w.Version)
	}
	return versions
}

// aVersionedTree has a module and a provider with the same versions.
func aVersionedTree(t *testing.T, versions ...string) *indextest.Tree {
	files := indextest.New(t)
	for _, v := range versions {
		files.Provider("acme/demo", v, "linux_amd64")
		files.Write("modules/acme/vpc/aws/"+v+"/main.tf", "# "+v)
	}
	return files
}

func TestRegistryFileInAScan(t *testing.T) {
	const notices = `
description = "d"
deprecated "< 1.1.0" {
  reason = "use 1.1"
}
withdrawn "1.2.0" {
  reason = "CVE"
  link   = "https://example.com/cve"
}`
	files := aVersionedTree(t, "1.0.0-rc.1", "1.0.0", "1.1.0", "1.2.0")
	files.Write("providers/acme/demo/registry.hcl", notices).Write("modules/acme/vpc/aws/registry.hcl", notices)
	s := scan(t, files)
	nothingWithheld(t, s)
	want := []string{"1.1.0", "1.0.0!", "1.0.0-rc.1!"}
	p, m := s.Provider(index.PlaceOf(ownDemo)), s.Module(index.PlaceOf(ownVPC))
	if got := releasesOf(p); !slices.Equal(got, want) {
		t.Errorf("the releases are %q", got)
	}
	if got := moduleVersionsOf(m); !slices.Equal(got, want) {
		t.Errorf("the module's versions are %q", got)
	}
	if p.Release("1.2.0") != nil || m.Version("1.2.0") != nil || p.File("terraform-provider-demo_1.2.0_linux_amd64.zip") != nil {
		t.Error("what is withdrawn is found")
	}
	if p.Latest().Version != "1.1.0" || m.Latest().Version != "1.1.0" {
		t.Errorf("the latest are %s and %s", p.Latest().Version, m.Latest().Version)
	}
	for _, list := range [][]index.WithdrawnVersion{p.Withdrawn(), m.Withdrawn(), s.WithdrawnVersions(index.PlaceOf(ownDemo)), s.WithdrawnVersions(index.PlaceOf(ownVPC))} {
		if got := withdrawnOf(list); !slices.Equal(got, []string{"1.2.0"}) || list[0].Notice.String() != "CVE (https://example.com/cve)" {
			t.Errorf("withdrawn are %+v", list)
		}
	}
	if p.Metadata().Description != "d" || m.Metadata().Description != "d" || s.Metadata(index.PlaceOf(ownVPC)).Description != "d" {
		t.Error("the description is lost")
	}
	for _, o := range []index.Offer{offerOf(s, "acme/demo", "1.0.0"), offerOf(s, "acme/vpc/aws", "1.0.0")} {
		if !slices.Equal(o.Notes, []string{"it is deprecated: use 1.1"}) {
			t.Errorf("the offer is %+v", o)
		}
	}
	for _, want := range []index.Problem{
		{Path: "modules/acme/vpc/aws/1.2.0", Address: "acme/vpc/aws"},
		{Path: "providers/acme/demo/terraform-provider-demo_1.2.0_linux_amd64.zip", Address: "acme/demo"},
	} {
		want.Version, want.Reason, want.Detail = "1.2.0", tree.Withdrawn, "it is withdrawn: CVE (https://example.com/cve)"
		if got := problemOf(s.Report().Ignored, want.Path); got != want {
			t.Errorf("ignored is %+v", got)
		}
	}
	for name, document := range map[string]string{"versions": string(p.Versions().Head), "index.json": string(p.Index().Head), "module versions": string(m.List().Head)} {
		if strings.Contains(document, `"1.2.0"`) {
			t.Errorf("%s: %s", name, document)
		}
	}
}

// Clients do not tell builds of one version apart: the plain one comes first in every list,
// and a notice about it is about all of them.
func TestBuildsOfAVersion(t *testing.T) {
	versions := []string{"1.0.0", "1.0.0+a", "1.0.0+b", "2.0.0+a"}
	for _, test := range []struct{ rule, notice, offered, withdrawn string }{
		{"are listed after it", "", "2.0.0+a 1.0.0 1.0.0+b 1.0.0+a", ""},
		{"are deprecated with it", `deprecated "1.0.0" {}`, "2.0.0+a 1.0.0! 1.0.0+b! 1.0.0+a!", ""},
		{"are deprecated alone", `deprecated "1.0.0+a" {}`, "2.0.0+a 1.0.0 1.0.0+b 1.0.0+a!", ""},
		{"are withdrawn with it", `withdrawn "1.0.0" {}`, "2.0.0+a", "1.0.0 1.0.0+b 1.0.0+a"},
		{"are withdrawn alone", `withdrawn "1.0.0+b" {}`, "2.0.0+a 1.0.0 1.0.0+a", "1.0.0+b"},
		{"are withdrawn with a version that is not there", `withdrawn "2.0.0" {}`, "1.0.0 1.0.0+b 1.0.0+a", "2.0.0+a"},
		{"are in a range by their number", `withdrawn "< 2.0.0" {}`, "2.0.0+a", "1.0.0 1.0.0+b 1.0.0+a"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			files := aVersionedTree(t, versions...)
			files.Write("providers/acme/demo/registry.hcl", test.notice+"\n").Write("modules/acme/vpc/aws/registry.hcl", test.notice+"\n")
			s := scan(t, files)
			nothingWithheld(t, s)
			if got := strings.Join(releasesOf(s.Provider(index.PlaceOf(ownDemo))), " "); got != test.offered {
				t.Errorf("the releases are %s", got)
			}
			if got := strings.Join(moduleVersionsOf(s.Module(index.PlaceOf(ownVPC))), " "); got != test.offered {
				t.Errorf("the module's versions are %s", got)
			}
			for _, a := range []address.Address{ownDemo, ownVPC} {
				if got := strings.Join(withdrawnOf(s.WithdrawnVersions(index.PlaceOf(a))), " "); got != test.withdrawn {
					t.Errorf("withdrawn of %s are %s", a, got)
				}
			}
		})
	}
}

func TestLatest(t *testing.T) {
	for _, test := range []struct {
		rule       string
		versions   []string
		deprecated string
		latest     string
	}{
		{"the newest", []string{"1.0.0", "2.0.0"}, "", "2.0.0"},
		{"no prerelease", []string{"1.0.0", "2.0.0-rc.1"}, "", "1.0.0"},
		{"none that is deprecated", []string{"1.0.0", "2.0.0"}, "2.0.0", "1.0.0"},
		{"the plain one of several builds", []string{"1.0.0+a", "1.0.0", "1.0.0+b"}, "", "1.0.0"},
		{"the last build where none is plain", []string{"1.0.0+a", "1.0.0+b"}, "", "1.0.0+b"},
		{"none that is deprecated with its version", []string{"1.0.0", "2.0.0", "2.0.0+b"}, "2.0.0", "1.0.0"},
		{"a version of which only a build is deprecated", []string{"1.0.0", "2.0.0", "2.0.0+b"}, "2.0.0+b", "2.0.0"},
		{"a deprecated one rather than a prerelease", []string{"1.0.0", "1.1.0", "2.0.0-rc.1"}, "< 2.0.0-alpha", "1.1.0"},
		{"the newest where all are deprecated", []string{"1.0.0", "2.0.0"}, ">= 0", "2.0.0"},
		{"the newest where all are prereleases", []string{"1.0.0-rc.1", "2.0.0-rc.1"}, "2.0.0-rc.1", "2.0.0-rc.1"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			files := aVersionedTree(t, test.versions...)
			if test.deprecated != "" {
				notice := fmt.Sprintf("deprecated %q {}", test.deprecated)
				files.Write("providers/acme/demo/registry.hcl", notice).Write("modules/acme/vpc/aws/registry.hcl", notice)
			}
			s := scan(t, files)
			if got := s.Provider(index.PlaceOf(ownDemo)).Latest().Version; got != test.latest {
				t.Errorf("the provider's is %s", got)
			}
			if got := s.Module(index.PlaceOf(ownVPC)).Latest().Version; got != test.latest {
				t.Errorf("the module's is %s", got)
			}
		})
	}
}

// Where a registry.hcl lies, and the other files in its folder.
func TestWhereARegistryFileCounts(t *testing.T) {
	for _, test := range []struct {
		rule      string
		build     func(files *indextest.Tree)
		withdrawn string // of acme/demo, with hostname if it has one
		withheld  index.Problem
	}{
		{"in the folder of a provider", func(files *indextest.Tree) {
			files.Write("providers/acme/demo/registry.hcl", `withdrawn "1.0.0" {}`)
		}, "", index.Problem{}},
		{"in the folder of a mirrored provider", func(files *indextest.Tree) {
			files.Provider("a.example/acme/demo", "1.0.0", "linux_amd64")
			files.Write("providers/a.example/acme/demo/registry.hcl", `withdrawn "1.0.0" {}`)
		}, "a.example", index.Problem{}},
		{"not in the folder of a version", func(files *indextest.Tree) {
			files.Write("providers/acme/demo/1.0.0/registry.hcl", `withdrawn "1.0.0" {}`)
		}, "-", index.Problem{Path: "providers/acme/demo/1.0.0/registry.hcl", Address: "acme/demo", Version: "1.0.0", Reason: tree.Misplaced, Detail: "it is of all versions: move it to providers/acme/demo/"}},
		{"not above it", func(files *indextest.Tree) {
			files.Write("providers/acme/registry.hcl", `withdrawn "1.0.0" {}`)
		}, "-", index.Problem{Path: "providers/acme/registry.hcl", Reason: tree.Misplaced, Detail: "it is in the folder of one provider or module: move it to providers/acme/TYPE/"}},
		{"above a module", func(files *indextest.Tree) {
			files.Write("modules/acme/registry.hcl", `withdrawn "1.0.0" {}`)
		}, "-", index.Problem{Path: "modules/acme/registry.hcl", Reason: tree.Misplaced, Detail: "it is in the folder of one provider or module: move it to modules/acme/NAME/SYSTEM/"}},
		{"not in another spelling of the address", func(files *indextest.Tree) {
			files.Write("providers/ACME/demo/registry.hcl", `withdrawn "1.0.0" {}`)
		}, "-", index.Problem{Path: "providers/ACME/demo/registry.hcl", Address: "acme/demo", Reason: tree.Duplicate, Detail: "it is of the address of providers/acme/demo in another spelling: move it there"}},
		{"one that cannot be used withdraws nothing new", func(files *indextest.Tree) {
			files.Write("providers/acme/demo/registry.hcl", `withdrawn "one" {}`)
		}, "-", index.Problem{Path: "providers/acme/demo/registry.hcl", Address: "acme/demo", Reason: tree.BadMetadata,
			Detail: `line 1: "one" is not a version constraint: write an operator and up to three numbers, like ~> 1.2, and a comma before the next one`}},
		{"one that is too large", func(files *indextest.Tree) {
			files.Write("providers/acme/demo/registry.hcl", strings.Repeat("#", 64<<10+1))
		}, "-", index.Problem{Path: "providers/acme/demo/registry.hcl", Address: "acme/demo", Reason: tree.TooLarge, Detail: "it is larger than 64 KiB: shorten it"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			files := aVersionedTree(t, "1.0.0")
			test.build(files)
			s := scan(t, files)
			a := ownDemo
			if strings.Contains(test.withdrawn, ".") {
				a = addressAt(test.withdrawn, "acme/demo")
			}
			if offered := s.Provider(index.PlaceOf(a)) != nil; offered != (test.withdrawn == "-") {
				t.Errorf("it is offered: %t", offered)
			}
			if test.withheld == (index.Problem{}) {
				nothingWithheld(t, s)
			} else if !reflect.DeepEqual(s.Report().Withheld, []index.Problem{test.withheld}) {
				t.Errorf("withheld are %+v", s.Report().Withheld)
			}
		})
	}
}

func TestARegistryFileAlone(t *testing.T) {
	files := indextest.New(t)
	files.Write("providers/a.example/acme/demo/registry.hcl", "description = \"d\"\nwithdrawn \"1.0.0\" {}\n")
	s := scan(t, files)
	nothingWithheld(t, s)
	a := addressAt("a.example", "acme/demo")
	if s.Report().Hint != "" || s.Report().IgnoredTotal != 0 || s.Provider(index.PlaceOf(a)) != nil || len(s.WithdrawnVersions(index.PlaceOf(a))) > 0 || s.Metadata(index.PlaceOf(a)).Description != "d" {
		t.Errorf("the report is %+v", s.Report())
	}
}

// An address with HOSTNAME and without is the same, if the registry answers as HOSTNAME.
func TestRegistryFilesOfOneAddressTwice(t *testing.T) {
	own := addressAt("a.example", "acme/demo")
	module := addressAt("a.example", "acme/vpc/aws")
	for _, test := range []struct {
		rule         string
		with         []string // versions with HOSTNAME
		own, hosted  string   // registry.hcl with and without HOSTNAME
		merged       []string
		under        []string // exactly with HOSTNAME
		withdrawn    []string
		descriptions string // merged
	}{
		{"notices of both count for all versions", []string{"1.2.0", "1.3.0"},
			`withdrawn "1.0.0" {}` + "\n" + `deprecated "1.3.0" {}`, `withdrawn "1.2.0" {}` + "\n" + `deprecated "1.1.0" {}`,
			[]string{"1.3.0!", "1.1.0!"}, []string{"1.3.0!", "1.2.0"}, []string{"1.2.0", "1.0.0"}, ""},
		{"what one withdraws, the other does not offer", []string{"1.1.0"}, `withdrawn "1.1.0" {}`, "", []string{"1.0.0"}, nil, []string{"1.1.0"}, ""},
		{"without a version on one side", nil, `withdrawn "1.0.0" {}`, "", []string{"1.1.0"}, nil, []string{"1.0.0"}, ""},
		{"with nothing left", nil, `withdrawn ">= 1" {}`, "", nil, nil, []string{"1.1.0", "1.0.0"}, ""},
		{"texts are those with HOSTNAME", []string{"1.2.0"}, `description = "a"`, `description = "b"`, []string{"1.2.0", "1.1.0", "1.0.0"}, []string{"1.2.0"}, nil, "a"},
		{"or else those without", []string{"1.2.0"}, `owner = "a"`, `description = "b"`, []string{"1.2.0", "1.1.0", "1.0.0"}, []string{"1.2.0"}, nil, "b"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			files := aVersionedTree(t, "1.0.0", "1.1.0")
			for _, v := range test.with {
				files.Provider("a.example/acme/demo", v, "linux_amd64")
				files.Write("modules/a.example/acme/vpc/aws/"+v+"/main.tf", "# other "+v)
			}
			for dir, content := range map[string]string{"a.example/": test.own, "": test.hosted} {
				if content != "" {
					files.Write("providers/"+dir+"acme/demo/registry.hcl", content)
					files.Write("modules/"+dir+"acme/vpc/aws/registry.hcl", content)
				}
			}
			s := scan(t, files)
			nothingWithheld(t, s)
			for _, got := range [][]string{releasesOf(s.Provider(index.Place{Address: own, Merged: true})), moduleVersionsOf(s.Module(index.Place{Address: module, Merged: true}))} {
				if !slices.Equal(got, test.merged) {
					t.Errorf("merged, it has %q", got)
				}
			}
			for _, got := range [][]string{releasesOf(s.Provider(index.PlaceOf(own))), moduleVersionsOf(s.Module(index.PlaceOf(module)))} {
				if !slices.Equal(got, test.under) {
					t.Errorf("under the hostname there is %q", got)
				}
			}
			if got := withdrawnOf(s.WithdrawnVersions(index.Place{Address: own, Merged: true})); !slices.Equal(got, test.withdrawn) {
				t.Errorf("withdrawn are %q", got)
			}
			if p := s.Provider(index.Place{Address: own, Merged: true}); p != nil && !slices.Equal(withdrawnOf(p.Withdrawn()), test.withdrawn) {
				t.Errorf("the provider has withdrawn %+v", p.Withdrawn())
			}
			if got := s.Metadata(index.Place{Address: own, Merged: true}).Description; got != test.descriptions {
				t.Errorf("the description is %q", got)
			}
		})
	}
}

// A withdrawn version stays withdrawn while its registry.hcl cannot be read as a whole, even
// after a restart.
func TestABrokenRegistryFile(t *testing.T) {
	const good = "withdrawn \"1.1.0\" {\n  reason = \"CVE\"\n}\n"
	for _, test := range []struct {
		rule    string
		change  string // of registry.hcl; empty: it is removed
		offered []string
	}{
		{"half a file", "withdrawn \"1.1", []string{"1.0.0"}},
		{"an empty file", "\x00", []string{"1.0.0"}},
		{"a mistake in a notice", "withdrawn \"1.1.0.0\" {}\n", []string{"1.0.0"}},
		{"a block of another name", "withdraw \"1.1.0\" {}\n", []string{"1.0.0"}},
		{"what can be read counts too", "withdrawn \"1.0.0\" {}\nwithdrawn \"\" {}\n", nil},
		{"a mistake elsewhere", "owner = 1\nwithdrawn \"1.0.0\" {}\n", []string{"1.1.0"}},
		{"other notices", "withdrawn \"1.0.0\" {}\n", []string{"1.1.0"}},
		{"no file", "", []string{"1.1.0", "1.0.0"}},
	} {
		for _, restarted := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restarted %t", test.rule, restarted), func(t *testing.T) {
				files := aVersionedTree(t, "1.0.0", "1.1.0")
				for _, name := range []string{"providers/acme/demo/registry.hcl", "modules/acme/vpc/aws/registry.hcl"} {
					files.Write(name, good)
				}
				o := options(t, files.Open)
				o.Store = new(memoryStore)
				x := index.New(o)
				defer func() { x.Close() }()
				check := func(step string, want []string) {
					t.Helper()
					s := rescan(t, x)
					for _, got := range [][]string{releasesOf(s.Provider(index.PlaceOf(ownDemo))), moduleVersionsOf(s.Module(index.PlaceOf(ownVPC)))} {
						if !slices.Equal(got, want) {
							t.Errorf("%s: offered are %q", step, got)
						}
					}
				}
				check("before", []string{"1.0.0"})
				for _, name := range []string{"providers/acme/demo/registry.hcl", "modules/acme/vpc/aws/registry.hcl"} {
					switch test.change {
					case "":
						files.Remove(name)
					case "\x00":
						files.Write(name, "")
					default:
						files.Write(name, test.change)
					}
				}
				if restarted {
					x.Close()
					x = index.New(o)
				}
				check("changed", test.offered)
				check("again", test.offered)
				if len(test.offered) == 2 {
					return
				}
				for _, name := range []string{"providers/acme/demo/registry.hcl", "modules/acme/vpc/aws/registry.hcl"} {
					files.Write(name, "# "+test.change[:1]+"\n# nothing is withdrawn\n")
				}
				check("restored", []string{"1.1.0", "1.0.0"})
			})
		}
	}
}

func TestAnUnreadableRegistryFile(t *testing.T) {
	files := aVersionedTree(t, "1.0.0", "1.1.0")
	files.Write("providers/acme/demo/registry.hcl", "description = \"d\"\nwithdrawn \"1.1.0\" {}\n")
	denied := ""
	var faults treetest.Faults
	faults.When(func(_ int, o treetest.Operation) error {
		if o.Path == denied && strings.HasPrefix(o.Name, "open") {
			return syscall.EACCES
		}
		return nil
	})
	x := newIndex(t, options(t, faults.Open(files.Open)))
	rescan(t, x)
	for _, name := range []string{"providers/acme/demo/registry.hcl", "providers/acme/demo", ""} {
		denied = name
		files.Write("providers/acme/demo/registry.hcl", "description = \"d\"\n# changed with "+name+"\nwithdrawn \"1.1.0\" {}\n")
		s := rescan(t, x)
		if got := releasesOf(s.Provider(index.PlaceOf(ownDemo))); slices.Contains(got, "1.1.0") {
			t.Errorf("without %q, %q are offered", name, got)
		}
		if s.Metadata(index.PlaceOf(ownDemo)).Description != "d" {
			t.Errorf("without %q, the description is lost", name)
		}
		if denied != "" && problemOf(s.Report().Withheld, name).Reason != tree.Unreadable {
			t.Errorf("without %q, withheld are %+v", name, s.Report().Withheld)
		}
	}
}

func TestMetadataIsLogged(t *testing.T) {
	files := indextest.New(t)
	files.Write("modules/acme/vpc/aws/1.0.0/main.tf", "x")
	files.Write("modules/acme/vpc/aws/registry.hcl", "# nothing\n")
	x := newLogged(t, options(t, files.Open))
	for _, test := range []struct {
		rule, content string
		lines         []string
	}{
		{"the start", "# nothing\n", nil},
		{"another way to say it", "# nothing at all\n", nil},
		{"a notice", "deprecated \"< 2.0\" {}\ndeprecated \"3.0.0\" {}\n",
			[]string{`level=INFO msg="metadata of acme/vpc/aws changed" address=acme/vpc/aws deprecated="< 2.0; 3.0.0" withdrawn=""`}},
		{"a version is withdrawn", "withdrawn \"1.0.0\" { reason = \"CVE\" }\n", []string{
			`level=INFO msg="no longer offered acme/vpc/aws 1.0.0" kind=module address=acme/vpc/aws version=1.0.0`,
			`level=INFO msg="metadata of acme/vpc/aws changed" address=acme/vpc/aws deprecated="" withdrawn=1.0.0`,
			`level=INFO msg=ignored path=modules/acme/vpc/aws/1.0.0 detail="it is withdrawn: CVE"`,
		}},
		{"a broken file", "withdrawn \"1.0.0\" {", []string{
			`level=INFO msg="metadata of acme/vpc/aws changed" address=acme/vpc/aws deprecated="" withdrawn=1.0.0`,
			`level=WARN msg=withheld path=modules/acme/vpc/aws/registry.hcl reason=bad_metadata detail="line 1: there is no closing brace for this block before the end of the file"`,
		}},
		{"no file", "", []string{
			`level=INFO msg="now offered acme/vpc/aws 1.0.0" kind=module address=acme/vpc/aws version=1.0.0`,
			`level=INFO msg="metadata of acme/vpc/aws changed" address=acme/vpc/aws`,
		}},
	} {
		if files.Remove("modules/acme/vpc/aws/registry.hcl"); test.content != "" {
			files.Write("modules/acme/vpc/aws/registry.hcl", test.content)
		}
		lines := x.scan(t)
		if len(lines) == 1 && lines[0] == "" {
			lines = nil
		}
		if !slices.Equal(lines, test.lines) {
			t.Errorf("%s: the log has %s", test.rule, strings.Join(lines, "\n"))
		}
	}
}

// A change of a registry.hcl is noticed as soon as it is written.
func TestMetadataIsWatched(t *testing.T) {
	dir, files, o := onDisk(t)
	files.Write("modules/acme/vpc/aws/1.0.0.zip", indextest.Zip("main.tf", "#"))
	o.Watch, o.Paths = true, source.Directories{Root: dir}.Paths()
	x := run(t, o)
	x.until(t, offers("acme/vpc/aws", "1.0.0"))
	files.Write("modules/acme/vpc/aws/registry.hcl", `withdrawn "1.0.0" {}`)
	x.until(t, not(offers("acme/vpc/aws", "1.0.0")))
	files.Remove("modules/acme/vpc/aws/registry.hcl")
	x.until(t, offers("acme/vpc/aws", "1.0.0"))
}

// A withdrawn version is not offered again while archives are being read again, and no list
// waits for it.
func TestWithdrawnWhileArchivesAreRead(t *testing.T) {
	files := aVersionedTree(t, "1.0.0", "1.1.0")
	files.Remove("modules")
	g := indextest.Gate{Fs: files.Fs, Opened: make(chan struct{}, 100)}
	for range 100 {
		g.Opened <- struct{}{}
	}
	o := options(t, indextest.On(t, g).Open)
	o.Store = new(memoryStore)
	first := run(t, o)
	first.until(t, offers("acme/demo", "1.1.0"))
	first.Close()

	// 1.1.0 has been replaced and is withdrawn; 1.0.0 is known.
	files.Write("providers/acme/demo/terraform-provider-demo_1.1.0_linux_amd64.zip", indextest.ProviderZip("demo", "1.1.0", "another one"))
	files.Write("providers/acme/demo/registry.hcl", `withdrawn "1.1.0" {}`)
	g.Opened = make(chan struct{})
	o.Open = indextest.On(t, g).Open
	r := run(t, o)
	<-r.Ready()
	s := r.Snapshot()
	if got := releasesOf(s.Provider(index.PlaceOf(ownDemo))); !slices.Equal(got, []string{"1.0.0"}) || s.ListPending(index.PlaceOf(ownDemo)) || s.Pending(index.PlaceOf(ownDemo), "1.1.0") {
		t.Errorf("at once, %q are offered, and the list is pending: %t", got, s.ListPending(index.PlaceOf(ownDemo)))
	}
	close(g.Opened)
	if got := releasesOf(r.scan(t).Provider(index.PlaceOf(ownDemo))); !slices.Equal(got, []string{"1.0.0"}) {
		t.Errorf("in the end, %q are offered", got)
	}

	// The file is restored, and the version is offered again.
	files.Remove("providers/acme/demo/registry.hcl")
	r.Hint()
	r.until(t, offers("acme/demo", "1.1.0"))
}

// Pages date what a registry.hcl says: by the file as it was written last, in each process,
// and by the later of two.
func TestMetadataHasADate(t *testing.T) {
	const own, hosted = "providers/registry.example.com/acme/demo/registry.hcl", "providers/acme/demo/registry.hcl"
	files, store := indextest.New(t), new(memoryStore)
	write := func(name, text string, at time.Time) {
		t.Helper()
		files.Write(name, text)
		if err := files.Fs.Chtimes(name, at, at); err != nil {
			t.Fatal(err)
		}
	}
	first := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	write(own, "owner = \"a\"\n", first)
	write(hosted, "owner = \"b\"\n", first.Add(-time.Hour))
	o := options(t, files.Open)
	o.Store = store
	x := index.New(o)
	expect := func(what string, at time.Time) {
		t.Helper()
		s := rescan(t, x)
		place := index.Place{Address: addressAt("registry.example.com", "acme/demo"), Merged: true}
		if m := s.Metadata(place); m == nil || !m.Changed.Equal(at) {
			t.Errorf("%s: it is %+v, not of %v", what, m, at)
		}
	}
	expect("the later of two", first)
	write(hosted, "owner = \"b\"\n", first.Add(time.Hour))
	expect("the other one, written with the same text", first.Add(time.Hour))
	x.Close()

	x = index.New(o)
	defer x.Close()
	expect("after a restart", first.Add(time.Hour))
	files.Remove(hosted)
	expect("without the other one", first)
}
