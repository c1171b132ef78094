package catalog_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/catalog"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// A module of the search tests, with its own texts.
type documented struct {
	address, description, readme, input, submodule string
}

func searchTree(t testing.TB, modules ...documented) *catalog.Catalog {
	t.Helper()
	files := indextest.New(t)
	for _, m := range modules {
		dir := "modules/" + m.address + "/1.0.0/"
		files.Write(dir+"main.tf", fmt.Sprintf("variable %q {}", "x"+m.input))
		if m.input != "" {
			files.Write(dir+"main.tf", fmt.Sprintf("variable %q {}", m.input))
		}
		if m.readme != "" {
			files.Write(dir+"README.md", "# Title\n\nA module for everybody.\n\n"+m.readme+"\n")
		}
		if m.submodule != "" {
			files.Write(dir+"modules/"+m.submodule+"/main.tf", `variable "inner_setting" {}`)
			files.Write(dir+"modules/"+m.submodule+"/README.md", "# Sub\n\nIt is about "+m.submodule+" and lattices.\n")
		}
		if m.description != "" {
			files.Write("modules/"+m.address+"/registry.hcl", fmt.Sprintf("description = %q", m.description))
		}
	}
	return catalog.For(scan(t, files))
}

// find returns what a search among all modules finds, the best first, as address and
// submodules.
func find(t testing.TB, c *catalog.Catalog, query string) []string {
	t.Helper()
	return findAmong(t, c, c.Modules, query)
}

func findAmong(t testing.TB, c *catalog.Catalog, entries []*catalog.Entry, query string) []string {
	s, q := c.ModuleSearcher(entries), catalog.ParseQuery(query)
	results, _ := search(t, s, q)
	if results.Len() == 0 {
		q = q.Loosen()
		results, _ = search(t, s, q)
	}
	found := []string{}
	for i := range results.Len() {
		at, _ := results.Item(i)
		name := entries[at].Address.String()
		for _, part := range q.Explain(entries[at]).Parts {
			name += " " + part.Path
		}
		found = append(found, name)
	}
	return found
}

func search(t testing.TB, s *catalog.Searcher, q catalog.Query) (entries, pages catalog.Results) {
	t.Helper()
	entries, pages, err := s.Search(t.Context(), q, 0)
	if err != nil {
		t.Fatal(err)
	}
	return entries, pages
}

func TestSearchOrder(t *testing.T) {
	c := searchTree(t,
		documented{address: "acme/network/aws"},
		documented{address: "network/dns/aws"},
		documented{address: "acme/network-peering/aws"},
		documented{address: "networking/bucket/aws"},
		documented{address: "acme/subnetwork/aws"},
		documented{address: "acme/described/aws", description: "For the Network of a team"},
		documented{address: "acme/readme/aws", readme: "It makes networks."},
		documented{address: "acme/input/aws", input: "enable_network_logs"},
		documented{address: "acme/parent/aws", submodule: "network"},
		documented{address: "acme/nothing/aws"},
	)
	want := []string{
		"acme/network/aws",                // exactly the name
		"network/dns/aws",                 // exactly another part of the address
		"acme/network-peering/aws",        // the beginning of the name
		"networking/bucket/aws",           // the beginning of another part
		"acme/parent/aws modules/network", // a submodule of exactly the name, after modules of the name
		"acme/subnetwork/aws",             // within a name
		"acme/described/aws",              // a word of the description
		"acme/input/aws",                  // a word of an input's name
		"acme/readme/aws",                 // the beginning of a word of the README
	}
	for _, query := range []string{"network", "(network),"} { // punctuation is no part of a name
		// A submodule and what is found within a name are equals, in the order of addresses.
		if got := find(t, c, query); !slices.Equal(got, want) {
			t.Errorf("%s: got  %q\nwant %q", query, got, want)
		}
	}
}

func TestSearch(t *testing.T) {
	c := searchTree(t,
		documented{address: "acme/vpc/aws", readme: "Peers with others in eu-central-1.", input: "nat_gateway_count", submodule: "peering"},
		documented{address: "acme/vpc/google", description: "Für alle Straßen"},
		documented{address: "other/Lambda_Function/aws", description: "Runs code", readme: "A vpc is optional."},
		documented{address: "mirrored.example.com/acme/vpc/azurerm"},
	)
	const aws, google, lambda, mirrored = "acme/vpc/aws", "acme/vpc/google", "other/lambda_function/aws", "mirrored.example.com/acme/vpc/azurerm"
	for _, test := range []struct {
		rule, query string
		want        []string
	}{
		{"case does not matter", "VPC", []string{aws, google, mirrored, lambda}},
		{"all words must be found", "vpc google", []string{google}},
		{"wherever each is", "code function", []string{lambda}},
		{"a word that is nowhere", "vpc nowhere", nil},
		{"an address is words", "acme/vpc/aws", []string{aws}},
		{"an address with a hostname", "mirrored.example.com/acme/vpc", []string{mirrored}},
		{"a hostname with a namespace", "mirrored.example.com/acme", []string{mirrored}},
		{"a part of a hostname", "example.com", []string{mirrored}},
		{"the letters of a name within it", "ambd", []string{lambda}},
		{"not the letters within a word of a text", "ptiona", nil},
		{"a word of an input", "gateway", []string{aws}},
		{"an input", "nat_gateway_count", []string{aws}},
		{"the beginning of an input", "nat_gateway", []string{aws}},
		{"an input that does not exist", "nat_instance", nil},
		{"words with hyphens", "eu-central-1", []string{aws}},
		{"a submodule", "peering", []string{aws + " modules/peering"}},
		{"a submodule by its input", "inner_setting", []string{aws + " modules/peering"}},
		{"a submodule by its description", "lattices", []string{aws + " modules/peering"}},
		{"a submodule by words of its own and of its module", "gateway lattices", []string{aws + " modules/peering"}},
		{"a submodule lies under its module", "peer", []string{aws + " modules/peering"}},
		{"a submodule is not found by its module alone", "gateway", []string{aws}},
		{"letters of other languages", "straße", []string{google}},
		{"in quotes", "'vpc google'", []string{google}},
		{"in double quotes", `"vpc google"`, []string{google}},
		{"a quote at the beginning", "'google", []string{google}},
		{"spaces of all kinds", "\tvpc\n google\u00a0", []string{google}},
		{"a symbol alone", "_", []string{lambda}},
		{"symbols that are in no name", "!?", nil},
		{"symbols between words", "vpc & google - straßen", []string{google}},
		{"one letter", "z", []string{mirrored}},
		{"words beyond the eighth do not count", "ac acm acme m me v vp vpc nowhere", []string{aws, google, mirrored}},
		{"parts of words beyond the sixteenth do not count", strings.Repeat("v-vp-vpc-", 5) + "v-nowhere", []string{aws, google, mirrored, lambda}},
		{"a query is cut off", "google" + strings.Repeat(" ", 4<<10) + "nowhere", []string{google}},
		{"bytes that are no text", "goo\xffgle", []string{google}},
		{"a NUL separates", "vpc\x00google", []string{google}},
		{"an escaped NUL joins no names", "acme/vpc%00vpc", nil},
		{"nor does it stand for the end of one", "acme/%00", nil},
		{"other escapes count", "acme/%76pc", []string{aws, google, mirrored}},
		{"an empty query finds every module", "", []string{aws, google, mirrored, lambda}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			got := find(t, c, test.query)
			if test.query == "" || strings.HasPrefix(test.query, "ac acm") {
				slices.Sort(got)
				slices.Sort(test.want)
				for i := range got {
					got[i], _, _ = strings.Cut(got[i], " ")
				}
			}
			if !slices.Equal(got, test.want) && len(got)+len(test.want) > 0 {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// The folder in which all submodules lie is no reason to show one.
func TestTheFolderOfSubmodulesIsNotFound(t *testing.T) {
	c := searchTree(t,
		documented{address: "acme/parts/aws", description: "Has modules for everybody", submodule: "first"},
		documented{address: "acme/other/aws", submodule: "own-modules"},
	)
	if got, want := find(t, c, "modules"), []string{"acme/parts/aws", "acme/other/aws modules/own-modules"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Names have hyphens where configurations have underscores. A type of resources is not taken for
// words of a text.
func TestNamesWithUnderscores(t *testing.T) {
	c := searchTree(t,
		documented{address: "acme/key-vault/azurerm"},
		documented{address: "acme/iam-policies/aws", submodule: "read-only-role"},
		documented{address: "acme/words/aws", readme: "Key of a vault."},
		documented{address: "acme/secrets/azurerm", input: "key_vault"},
	)
	for _, test := range []struct {
		rule, query string
		want        []string
	}{
		{"a name", "key_vault", []string{"acme/key-vault/azurerm", "acme/secrets/azurerm"}},
		{"the beginning of a name", "key_va", []string{"acme/key-vault/azurerm", "acme/secrets/azurerm"}},
		{"a plural", "key_vaults", []string{"acme/key-vault/azurerm", "acme/secrets/azurerm"}},
		{"a singular", "iam_policy", []string{"acme/iam-policies/aws"}},
		{"a submodule", "read_only_role", []string{"acme/iam-policies/aws modules/read-only-role"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			if got := find(t, c, test.query); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// A plural finds the singular, but not all that begins like it.
func TestPlurals(t *testing.T) {
	c := searchTree(t,
		documented{address: "acme/atlas/aws"},
		documented{address: "acme/atlantis/aws", input: "atlas_count"},
		documented{address: "acme/network/aws", description: "Made for an Atla only", input: "subnet_id"},
		documented{address: "acme/router/aws", description: "It has atlantes", input: "subnetwork"},
		documented{address: "acme/subnet-group/aws"},
		documented{address: "acme/iam-policies/aws"},
		documented{address: "acme/keies/aws"},
	)
	for _, test := range []struct {
		rule, query string
		want        []string
	}{
		{"a word that only looks like a plural", "atlas", []string{"acme/atlas/aws", "acme/atlantis/aws", "acme/network/aws"}},
		{"a plural", "subnets", []string{"acme/subnet-group/aws", "acme/network/aws"}},
		{"a singular that is not the beginning of the plural", "policy", []string{"acme/iam-policies/aws"}},
		{"a plural that is none", "key", nil},
		{"the singular, whose beginning counts", "subnet", []string{"acme/subnet-group/aws", "acme/network/aws", "acme/router/aws"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			if got := find(t, c, test.query); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// A search after other snapshots finds what a search in a fresh scan of the same files does,
// in the same order, whatever has been added, replaced, hidden and removed meanwhile.
func TestSearchAfterChanges(t *testing.T) {
	files := indextest.New(t)
	write := func(i, round int, input string) {
		module := fmt.Sprintf("modules/team%d/module%d/aws", i%7, i)
		files.Remove(module)
		files.Write(fmt.Sprintf("%s/1.0.%d.tar.gz", module, round), indextest.TarGz(
			"main.tf", fmt.Sprintf("variable \"setting_%d\" {}\nvariable %q {}", i%10, input),
			"modules/part"+input+"/main.tf", "# a module"))
	}
	for i := range 60 {
		write(i, 0, "first")
	}
	x := index.New(index.Options{Open: files.Open})
	x.Start()
	t.Cleanup(func() { x.Close() })
	for round := range 20 {
		switch round % 4 {
		case 1: // some are replaced
			for i := range round {
				write(i*3, round, fmt.Sprint("round", round))
			}
		case 2: // one is added
			write(100+round, round, "added")
		case 3: // some are removed
			files.Remove(fmt.Sprintf("modules/team%d", round%7))
		}
		shown := func(c *catalog.Catalog) []*catalog.Entry {
			if round%5 == 0 {
				return c.Modules[:5]
			}
			return c.Modules
		}
		now, fresh := catalog.For(rescan(t, x)), catalog.For(scan(t, files))
		for _, query := range []string{"", "module1", "module", "team3", "setting", "setting_4", "round9", "added", "partround", "first", "team1 part", "nothing"} {
			got, want := findAmong(t, now, shown(now), query), findAmong(t, fresh, shown(fresh), query)
			if !slices.Equal(got, want) {
				t.Fatalf("round %d: %q finds %q, want %q", round, query, got, want)
			}
		}
	}
}

// The entries that a searcher does not have change nothing of what it finds: neither its
// order, nor which words are found.
func TestSearchAmongSomeEntries(t *testing.T) {
	seen := []documented{
		{address: "open/vpc/aws", readme: "Peers with others.", input: "nat_gateway", submodule: "peering"},
		{address: "open/zone/aws", description: "A vpc has zones", submodule: "vault"},
		{address: "mirrored.example.com/open/vpc/google"},
	}
	hidden := []documented{
		{address: "acme/vault/aws", description: "A vpc for peering", readme: "It has a vault.", input: "nat_gateway", submodule: "zone"},
		{address: "open/vpc/azurerm", submodule: "vpc"},
		{address: "zzz/vpc/aws"},
	}
	all, some := searchTree(t, slices.Concat(hidden, seen)...), searchTree(t, seen...)
	shown := slices.DeleteFunc(slices.Clone(all.Modules), func(e *catalog.Entry) bool {
		return slices.ContainsFunc(hidden, func(d documented) bool { return d.address == e.Address.String() })
	})
	for _, query := range []string{"", "vpc", "vault", "vault vpc", "vpc vault", "peering", "zone", "nat_gateway", "azurerm", "azurerm vpc", "zzz", "acme", "a", "open vpc", "peers others", "module"} {
		if got, want := findAmong(t, all, shown, query), find(t, some, query); !slices.Equal(got, want) {
			t.Errorf("%q finds %q, and %q where there is nothing else", query, got, want)
		}
	}
	slices.Reverse(shown)
	if got, want := findAmong(t, all, shown, "vpc open"), []string{"mirrored.example.com/open/vpc/google", "open/vpc/aws", "open/zone/aws"}; !slices.Equal(got, want) {
		t.Errorf("equals are in the order %q, want %q", got, want)
	}
	if got := findAmong(t, some, all.Modules, "vpc"); len(got) > 0 {
		t.Errorf("entries of another catalog are found: %q", got)
	}
}

// A merged entry is found in place of the entries that it merges.
func TestSearchMergedEntries(t *testing.T) {
	c := searchTree(t,
		documented{address: "acme/vpc/aws", readme: "Plain."},
		documented{address: "a.example.com/acme/vpc/aws", readme: "Named."},
	)
	merged, _ := c.Merged(c.Modules[0].Address.WithHostname("a.example.com"))
	got := findAmong(t, c, []*catalog.Entry{merged}, "vpc")
	if want := []string{"a.example.com/acme/vpc/aws"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func FuzzSearch(f *testing.F) {
	c := searchTree(f,
		documented{address: "acme/vpc/aws", readme: "Peers with others in eu-central-1.", input: "nat_gateway_count", submodule: "peering"},
		documented{address: "acme/vpc/google", description: "Für alle Straßen"},
	)
	s := c.ModuleSearcher(c.Modules)
	for _, query := range []string{"", "vpc", "virtual machine", "a 1.0.0", "load balancer", "'acme/vpc/aws'", "nat_gateway -_", "\x00\xff", "acme/%00", "acme/vpc%00vpc", "%2f%/%", "straße", strings.Repeat("a ", 300)} {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		q := catalog.ParseQuery(query)
		for _, q := range []catalog.Query{q, q.Loosen(), q.Loosen().Relax()} {
			results, _ := search(t, s, q)
			for i := range results.Len() {
				at, _ := results.Item(i)
				if at < 0 || at >= len(c.Modules) {
					t.Fatalf("got %d", at)
				}
				x := q.Explain(c.Modules[at])
				hasVersion := strings.ContainsAny(query, "0123456789") // it stands beside the name
				if !q.IsEmpty() && q.Named == nil && !hasVersion && len(x.Parts)+len(x.Reasons) == 0 && !strings.Contains(marked(append(x.Description, q.MarkName(c.Modules[at].Address.String())...)), "[") {
					t.Fatalf("%q finds %s, and nothing says why", query, c.Modules[at].Address)
				}
			}
		}
	})
}

// marked returns runs as a text, with brackets around what is marked.
func marked(runs []catalog.Run) (text string) {
	for _, r := range runs {
		if r.Marked {
			text += "[" + r.Text + "]"
		} else {
			text += r.Text
		}
	}
	return text
}

// Whoever wants the first few results gets the first few of all.
func TestTheFirstResultsOfASearch(t *testing.T) {
	c := heldTree(t)
	modules, providers := c.ModuleSearcher(c.Modules), c.ProviderSearcher(c.Providers)
	for _, s := range []*catalog.Searcher{modules, providers} {
		for _, query := range []string{"", "a", "aws", "s3_bucket", "arn", "nothing"} {
			q := catalog.ParseQuery(query)
			all, allPages := search(t, s, q)
			for most := 1; most < 6; most++ {
				first, firstPages, err := s.Search(t.Context(), q, most)
				if err != nil {
					t.Fatal(err)
				}
				for _, of := range []struct{ first, all catalog.Results }{{first, all}, {firstPages, allPages}} {
					if of.first.Len() != min(most, of.all.Len()) {
						t.Errorf("%q: of %d results it has %d, not %d", query, of.all.Len(), of.first.Len(), most)
						continue
					}
					for i := range of.first.Len() {
						entry, page := of.first.Item(i)
						if wantEntry, wantPage := of.all.Item(i); entry != wantEntry || page != wantPage {
							t.Errorf("%q: of the first %d, result %d is another one", query, most, i)
						}
					}
				}
			}
		}
	}
}
