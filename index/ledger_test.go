package index_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
)

// A refusing ledger has versions with other bytes, as "ADDRESS VERSION [PLATFORM]".
type refusing struct {
	mu      sync.Mutex
	refused []string
	missing []string // it must have them, and has not
	offered map[string]time.Time
}

func (l *refusing) require(missing ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.missing = missing
}

func (l *refusing) refuse(versions ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refused = versions
}

func (l *refusing) judge(name string) (time.Time, *tree.Finding) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if slices.Contains(l.refused, name) {
		return time.Time{}, tree.Findingf(tree.Replaced, "it is on record with other bytes")
	}
	if slices.Contains(l.missing, name) {
		return time.Time{}, tree.Findingf(tree.NotOnRecord, "it is not on record")
	}
	return l.offered[name], nil
}

func (l *refusing) Package(a address.Address, version string, k *index.Package) (time.Time, *tree.Finding) {
	return l.judge(fmt.Sprint(a, " ", version, " ", k.Platform))
}

func (l *refusing) ModuleVersion(a address.Address, v *index.ModuleVersion) (time.Time, *tree.Finding) {
	return l.judge(fmt.Sprint(a, " ", v.Version))
}

func TestVersionsThatALedgerHasWithOtherBytes(t *testing.T) {
	files := indextest.New(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64", "darwin_arm64")
	files.Provider("acme/demo", "1.1.0", "linux_amd64")
	files.Provider("registry.example.com/acme/demo", "1.1.0", "linux_amd64")
	files.Write("modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", "# one"))
	files.Write("modules/acme/vpc/aws/1.1.0.tar.gz", indextest.TarGz("main.tf", "# two"))
	files.Write("modules/acme/vpc/aws/registry.hcl", `deprecated "1.0.0" { reason = "old" }`)
	all := []string{
		"acme/demo 1.1.0", "acme/demo 1.0.0", "registry.example.com/acme/demo 1.1.0", "acme/vpc/aws 1.1.0", "acme/vpc/aws 1.0.0",
	}
	ledger := new(refusing)
	x := newLogged(t, options(t, files.Open))
	x.SetLedger(ledger)
	rescan(t, x.Index)
	for _, test := range []struct {
		rule    string
		refused []string
		hidden  []string // of all
		paths   []string
	}{
		{"nothing is refused", nil, nil, nil},
		{"a module", []string{"acme/vpc/aws 1.0.0"}, []string{"acme/vpc/aws 1.0.0"}, []string{"modules/acme/vpc/aws/1.0.0.tar.gz"}},
		{"one package refuses its release", []string{"acme/demo 1.0.0 linux_amd64"}, []string{"acme/demo 1.0.0"},
			[]string{"providers/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip"}},
		{"all versions of a module", []string{"acme/vpc/aws 1.0.0", "acme/vpc/aws 1.1.0"}, []string{"acme/vpc/aws 1.0.0", "acme/vpc/aws 1.1.0"},
			[]string{"modules/acme/vpc/aws/1.0.0.tar.gz", "modules/acme/vpc/aws/1.1.0.tar.gz"}},
		{"a mirrored one alone", []string{"registry.example.com/acme/demo 1.1.0 linux_amd64"}, []string{"registry.example.com/acme/demo 1.1.0"},
			[]string{"providers/registry.example.com/acme/demo/terraform-provider-demo_1.1.0_linux_amd64.zip"}},
		{"nothing any more", nil, nil, nil},
	} {
		t.Run(test.rule, func(t *testing.T) {
			ledger.refuse(test.refused...)
			x.Compare()
			check := func(when string, s *index.Snapshot) {
				t.Helper()
				r := s.Report()
				var offered, withheld []string
				for _, o := range r.Offered {
					offered = append(offered, o.Address+" "+o.Version)
				}
				for _, p := range r.Withheld {
					if p.Reason != tree.Replaced {
						t.Errorf("%s: %+v", when, p)
					}
					withheld = append(withheld, p.Path)
				}
				want := slices.DeleteFunc(slices.Clone(all), func(v string) bool { return slices.Contains(test.hidden, v) })
				slices.Sort(want)
				slices.Sort(offered)
				if !slices.Equal(offered, want) || !slices.Equal(withheld, test.paths) {
					t.Errorf("%s: offered are %q, withheld %q", when, offered, withheld)
				}
				if n := s.Totals.Withheld[tree.Replaced]; n != len(test.paths) {
					t.Errorf("%s: counted are %d", when, n)
				}
			}
			s := x.Snapshot()
			check("at once", s)
			if v := s.Module(index.PlaceOf(ownVPC)).Version("1.0.0"); v != nil && v.Deprecated() == nil {
				t.Error("a version has lost its notice")
			}
			x.Compare(ownDemo, ownVPC)
			if x.Snapshot() != s {
				t.Error("comparing again makes another snapshot")
			}
			files.Write("modules/acme/dns/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", test.rule))
			rescan(t, x.Index)
			files.Remove("modules/acme/dns")
			check("after scans", rescan(t, x.Index))
		})
	}
	ledger.refuse("acme/demo 1.1.0 linux_amd64")
	x.Compare(ownVPC)
	if x.Snapshot().Provider(index.PlaceOf(ownDemo)).Release("1.1.0") == nil {
		t.Error("an address was compared that nobody named")
	}
	x.Compare(ownDemo)
	if x.Snapshot().Provider(index.PlaceOf(ownDemo)).Release("1.1.0") != nil {
		t.Error("a named address was not compared")
	}
	merged := index.Place{Address: address.Address{Hostname: "registry.example.com", Namespace: "acme", Name: "demo"}, Merged: true}
	if r := x.Snapshot().Provider(merged).Release("1.1.0"); r == nil || r.Hostname == "" {
		t.Errorf("merged, %+v is offered", r)
	}
	if log := x.log.String(); !strings.Contains(log, "reason=replaced") {
		t.Errorf("the log says %s", log)
	}
	x.SetLedger(nil)
	for s := x.Snapshot(); s.Totals.Withheld[tree.Replaced] > 0; {
		s = x.Next(t.Context(), s)
	}
}

// The time of a version is the time in the ledger, and not the time of a file that was copied.
func TestALedgerSaysWhenAVersionWasFirstOffered(t *testing.T) {
	files := indextest.New(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64", "darwin_arm64")
	files.Provider("acme/demo", "1.1.0", "linux_amd64", "darwin_arm64")
	files.Write("modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", "# one"))
	files.Write("modules/acme/vpc/aws/1.1.0.tar.gz", indextest.TarGz("main.tf", "# two"))
	first := time.Date(2025, 6, 7, 8, 9, 10, 0, time.UTC)
	x := newLogged(t, options(t, files.Open))
	x.SetLedger(&refusing{offered: map[string]time.Time{
		"acme/demo 1.0.0 linux_amd64":  first.Add(time.Hour),
		"acme/demo 1.0.0 darwin_arm64": first,
		"acme/demo 1.1.0 linux_amd64":  first, // the other one was there before the log
		"acme/vpc/aws 1.0.0":           first,
	}})
	s := rescan(t, x.Index)
	provider, module := s.Provider(index.PlaceOf(ownDemo)), s.Module(index.PlaceOf(ownVPC))
	if r := provider.Release("1.0.0"); !r.Published().Equal(first) {
		t.Errorf("the release was published at %s", r.Published())
	}
	if r := provider.Release("1.1.0"); r.Published().Equal(first) {
		t.Errorf("the release of which one package is older was published at %s", r.Published())
	}
	if v := module.Version("1.0.0"); !v.Published().Equal(first) {
		t.Errorf("the version was published at %s", v.Published())
	}
	if v := module.Version("1.1.0"); v.Published().Equal(first) {
		t.Errorf("the other version was published at %s", v.Published())
	}
	if list := string(slices.Concat(module.List().Head, module.List().Tail)); !strings.Contains(list, `{"version":"1.0.0","published_at":"2025-06-07T08:09:10Z","hashes":["h1:`) {
		t.Errorf("the list of versions is %s", list)
	}
	if again := rescan(t, x.Index); again.Provider(index.PlaceOf(ownDemo)) != provider || again.Module(index.PlaceOf(ownVPC)) != module {
		t.Error("another scan makes them again")
	}
}

// While a folder cannot be read, its versions stay offered as they were: without the versions that
// the ledger refuses.
func TestALedgerRefusesWhatIsKept(t *testing.T) {
	files := indextest.New(t)
	files.Write("modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", "# one"))
	files.Write("modules/acme/vpc/aws/1.1.0.tar.gz", indextest.TarGz("main.tf", "# two"))
	ledger := new(refusing)
	ledger.refuse("acme/vpc/aws 1.0.0")
	var faults treetest.Faults
	x := newLogged(t, options(t, faults.Open(files.Open)))
	x.SetLedger(ledger)
	rescan(t, x.Index)
	faults.When(func(_ int, o treetest.Operation) error {
		if strings.HasSuffix(o.Path, "acme/vpc/aws") {
			return syscall.EIO
		}
		return nil
	})
	m := rescan(t, x.Index).Module(index.PlaceOf(ownVPC))
	if m.Version("1.0.0") != nil || m.Version("1.1.0") == nil {
		t.Errorf("offered are %v", m.VersionList())
	}
	if _, failed := faults.End(); len(failed) == 0 {
		t.Error("nothing has failed")
	}
	ledger.refuse()
	x.Compare()
	if x.Snapshot().Module(index.PlaceOf(ownVPC)).Version("1.0.0") == nil {
		t.Error("it is refused although the ledger has it")
	}
}

// A version that a ledger must have and does not have yet is withheld, and clients wait for it. No
// problem is reported: usually the version is on record a second later.
func TestVersionsThatALedgerMustHave(t *testing.T) {
	files := indextest.New(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64", "darwin_arm64")
	files.Provider("acme/demo", "1.1.0", "linux_amd64")
	files.Write("modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", "# one"))
	files.Write("modules/acme/vpc/aws/1.1.0.tar.gz", indextest.TarGz("main.tf", "# two"))
	ledger := new(refusing)
	x := newLogged(t, options(t, files.Open))
	x.SetLedger(ledger)
	rescan(t, x.Index)
	whole := x.Snapshot().Provider(index.PlaceOf(ownDemo)).Release("1.0.0")
	for _, test := range []struct {
		rule             string
		refused, missing []string
		offered, wait    string // as VERSION of a module, or VERSION PLATFORM…
		list             bool   // the lists of versions wait
	}{
		{"all of a module", nil, []string{"acme/vpc/aws 1.0.0", "acme/vpc/aws 1.1.0"},
			"[1.1.0 linux_amd64] [1.0.0 darwin_arm64 linux_amd64]", "[1.1.0] [1.0.0]", true},
		{"one version of a module", nil, []string{"acme/vpc/aws 1.1.0"},
			"[1.1.0 linux_amd64] [1.0.0 darwin_arm64 linux_amd64] [1.0.0]", "[1.1.0]", false},
		{"a further platform takes no other one back", nil, []string{"acme/demo 1.0.0 linux_amd64"},
			"[1.1.0 linux_amd64] [1.0.0 darwin_arm64] [1.1.0] [1.0.0]", "[1.0.0 linux_amd64]", false},
		{"all of a release", nil, []string{"acme/demo 1.0.0 linux_amd64", "acme/demo 1.0.0 darwin_arm64"},
			"[1.1.0 linux_amd64] [1.1.0] [1.0.0]", "[1.0.0 darwin_arm64 linux_amd64]", false},
		{"a release with a package that is replaced does not wait", []string{"acme/demo 1.0.0 darwin_arm64"}, []string{"acme/demo 1.0.0 linux_amd64"},
			"[1.1.0 linux_amd64] [1.1.0] [1.0.0]", "", false},
		{"nor does a version of a module that is replaced", []string{"acme/vpc/aws 1.0.0"}, []string{"acme/vpc/aws 1.1.0"},
			"[1.1.0 linux_amd64] [1.0.0 darwin_arm64 linux_amd64]", "[1.1.0]", true},
	} {
		t.Run(test.rule, func(t *testing.T) {
			ledger.refuse(test.refused...)
			ledger.require(test.missing...)
			x.Compare()
			s := x.Snapshot()
			describe := func(releases []*index.Release, versions []*index.ModuleVersion) (all []string) {
				for _, r := range releases {
					fields := []string{r.Version}
					for _, k := range r.Packages {
						fields = append(fields, k.Platform.String())
						if k.Download() == nil {
							t.Error("a package has no description")
						}
					}
					all = append(all, fmt.Sprint(fields))
					if archives := string(slices.Concat(r.Archives().Head, r.Archives().Tail)); strings.Count(archives, "_") == 0 || strings.Count(archives, ".zip") != len(r.Packages) {
						t.Errorf("the mirror has %s", archives)
					}
				}
				for _, v := range versions {
					all = append(all, fmt.Sprint([]string{v.Version}))
				}
				return all
			}
			demo, vpc := index.PlaceOf(ownDemo), index.PlaceOf(ownVPC)
			if got := strings.Join(describe(s.Provider(demo).ReleaseList(), s.Module(vpc).VersionList()), " "); got != test.offered {
				t.Errorf("offered are %s", got)
			}
			var wait []string
			for a := range s.Folders() {
				wait = append(wait, describe(s.Unrecorded(a))...)
			}
			if got := strings.Join(wait, " "); got != test.wait {
				t.Errorf("there wait %s", got)
			}
			pending := s.Pending(demo, "1.0.0") || s.Pending(vpc, "1.0.0") || s.Pending(vpc, "1.1.0")
			if pending != (test.wait != "") || s.ListPending(demo) || s.ListPending(vpc) != test.list {
				t.Errorf("clients wait: %t, for the lists: %t %t", pending, s.ListPending(demo), s.ListPending(vpc))
			}
			if n := s.Totals.Withheld[tree.NotOnRecord]; n != len(test.missing) {
				t.Errorf("counted are %d", n)
			}
			x.Compare()
			if x.Snapshot() != s {
				t.Error("comparing again makes another snapshot")
			}
		})
	}
	ledger.refuse()
	ledger.require()
	x.Compare()
	if s := x.Snapshot(); s.Provider(index.PlaceOf(ownDemo)).Release("1.0.0") != whole || s.Totals.Problems() > 0 || s.Pending(index.PlaceOf(ownVPC), "") {
		t.Errorf("all is on record, and %d are withheld", s.Totals.Problems())
	}
	if len(x.withheld) != 2 || strings.Contains(x.log.String(), "level=WARN msg=withheld path=modules/acme/vpc/aws/1.1.0") || !strings.Contains(x.log.String(), `level=INFO msg="not offered before it is on record" path=modules/acme/vpc/aws/1.1.0.tar.gz`) {
		t.Errorf("told of are %q, and the log says %s", x.withheld, x.log.String())
	}
}
