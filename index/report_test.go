package index_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/index/report"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
)

// offerOf returns the offer of a version in the report, or the zero Offer.
func offerOf(s *index.Snapshot, address, version string) index.Offer {
	for _, o := range s.Report().Offered {
		if o.Address == address && o.Version == version {
			return o
		}
	}
	return index.Offer{}
}

// problemOf returns the problem of a path in the report, or the zero Problem.
func problemOf(problems []index.Problem, path string) index.Problem {
	for _, p := range problems {
		if p.Path == path {
			return p
		}
	}
	return index.Problem{}
}

// nothingWithheld fails the test if the report has withheld entries.
func nothingWithheld(t *testing.T, s *index.Snapshot) {
	t.Helper()
	if len(s.Report().Withheld) > 0 {
		t.Errorf("withheld: %+v", s.Report().Withheld)
	}
}

func TestAHundredThousandFilesOfJunk(t *testing.T) {
	if testing.Short() {
		t.Skip("one scan of many files shows the race detector no more than one of few")
	}
	junk := fstest.MapFS{"terraform/modules/acme/vpc/aws/1.0.0/main.tf": {}}
	for i := range 50_000 {
		junk[fmt.Sprintf("terraform/junk%d", i)] = &fstest.MapFile{}                           // beside the tree
		junk[fmt.Sprintf("terraform/providers/acme/demo/junk%d.txt", i)] = &fstest.MapFile{}   // inside it
		junk[fmt.Sprintf("terraform/modules/acme/vpc/aws/junk%d.txt", i)] = &fstest.MapFile{}  // and there
		junk[fmt.Sprintf("terraform/modules/acme/junk%d", i)] = &fstest.MapFile{}              // where no file has an address
		junk[fmt.Sprintf("terraform/keys/.junk%d", i)] = &fstest.MapFile{Data: []byte("junk")} // and hidden
	}
	s := scanWith(t, options(t, func() (tree.Tree, error) {
		return source.Directories{Root: "terraform"}.OpenIn(junk)
	}))
	nothingWithheld(t, s)
	if len(s.Report().Ignored) != report.MaxIgnored || s.Report().IgnoredTotal != 200_000 {
		t.Errorf("%d are listed as ignored, %d counted", len(s.Report().Ignored), s.Report().IgnoredTotal)
	}
	if !offers("acme/vpc/aws", "1.0.0")(s) {
		t.Error("the module among them is not offered")
	}
}

func TestTwoScansOfATreeReportTheSame(t *testing.T) {
	files := indextest.New(t)
	p := indextest.NewPublisher(t)
	files.Keys("acme", p)
	for i := range 30 {
		files.Provider("acme/demo", fmt.Sprintf("1.%d.0", i), "linux_amd64", "linux_arm64", "darwin_arm64")
		files.Provider("a.example/acme/demo", fmt.Sprintf("1.%d.0", i), "linux_amd64")
		files.Provider("b.example/acme/demo", fmt.Sprintf("1.%d.0", i), "linux_amd64")
		files.Write(fmt.Sprintf("providers/acme/demo/terraform-provider-demo_2.%d.0_linux_amd64.zip", i), "no zip")
		files.Write(fmt.Sprintf("modules/acme/m%d/aws/1.0.0/main.tf", i), "x")
		files.Write(fmt.Sprintf("modules/a.example/acme/m%d/aws/1.0.0/main.tf", i), "x")
		files.Write(fmt.Sprintf("modules/acme/m%d/aws/1.1.0.zip", i), "no zip")
	}
	o := options(t, files.Open)
	o.Workers = 16
	first := scanWith(t, o).Report()
	for range 5 {
		if again := scanWith(t, o).Report(); !reflect.DeepEqual(again, first) {
			t.Fatal("another scan reports something else")
		}
	}
	if n := len(first.Offered); n != 3*30+2*30 || first.Offered[0].Kind != index.KindProvider || first.Offered[n-1].Kind != index.KindModule {
		t.Errorf("%d are offered, the providers first", n)
	}
	for i, o := range first.Offered[:30] {
		if want := fmt.Sprintf("1.%d.0", 29-i); o.Version != want {
			t.Fatalf("offer %d is version %s, not %s", i, o.Version, want)
		}
	}
}

// The operator learns which versions clients take for one another.
func TestBuildsOfAVersionAreNoted(t *testing.T) {
	files := aVersionedTree(t, "1.0.0", "1.0.0+a", "1.0.0+b", "1.0.0-rc.1", "1.0.0-rc.1+a", "2.0.0+a", "2.0.0+b", "3.0.0+a")
	files.Provider("acme/other", "1.0.0+a", "linux_amd64")
	const note = "clients take it for %s, from which it differs in build metadata only: withdraw or remove it"
	x := index.New(options(t, files.Open))
	for range 2 { // the second report has no note twice
		if _, err := x.Rescan(t.Context()); err != nil {
			t.Fatal(err)
		}
		s := x.Snapshot()
		nothingWithheld(t, s)
		taken := map[string]string{"1.0.0+a": "1.0.0", "1.0.0+b": "1.0.0", "1.0.0-rc.1+a": "1.0.0-rc.1", "2.0.0+a": "2.0.0+b"}
		for _, o := range s.Report().Offered {
			var want []string
			if other, ok := taken[o.Version]; ok && o.Address != "acme/other" {
				want = []string{fmt.Sprintf(note, other)}
			}
			if !slices.Equal(o.Notes, want) {
				t.Errorf("the notes of %s %s are %q", o.Address, o.Version, o.Notes)
			}
		}
	}
}

// Names are the users' own, paths are the tree's: neither a line feed nor bytes
// that are not text may stop the rest or leave the report's JSON.
func TestUnusualNames(t *testing.T) {
	dir := t.TempDir()
	files := indextest.OnDisk(t, dir)
	files.Provider("acme/demo", "1.0.0", "linux_amd64")
	for _, name := range []string{"a\nb", "\x1b[2J", "\xff\xfe", "..\\..", "%2e%2e", "%00", "a%2fb", "ä", strings.Repeat("x", 200), "-", " ", "'"} {
		files.Provider("acme/"+name, "1.0.0", "linux_amd64")
		files.Write("providers/"+name+"/demo/x", "x")
		files.Write("providers/acme/demo/"+strings.TrimSuffix(name, "x"), "x")
		files.Write("providers/acme/demo/1.0.0/"+name, "x")
		files.Write("modules/acme/vpc/"+name+"/1.0.0/main.tf", "x")
		files.Write("modules/acme/vpc/aws/1.0.0/"+name, "x")
		files.Write("modules/acme/vpc/aws/1"+strings.TrimPrefix(name, "x")+"/main.tf", "x")
	}
	files.Write("modules/acme/vpc/aws/1.0.0/main.tf", "x")
	s := scanWith(t, options(t, source.Directories{Root: dir}.Open))
	for _, address := range []string{"acme/demo", "acme/vpc/aws", "acme/ä"} {
		if !offers(address, "1.0.0")(s) {
			t.Errorf("%s is not offered", address)
		}
	}
	b, err := json.Marshal(s.Report())
	if err != nil || !json.Valid(b) {
		t.Fatal(err)
	}
	for _, p := range s.Report().Withheld {
		if p.Detail == "" || p.Reason == "" || strings.ContainsAny(p.Detail, "\n\x1b") || strings.Contains(p.Detail, dir) {
			t.Errorf("%q: %s: %q", p.Path, p.Reason, p.Detail)
		}
	}
}
