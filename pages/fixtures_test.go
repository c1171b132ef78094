package pages

import (
	"html/template"
	"strings"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/clientconfig"
	"github.com/caddy-terraform/caddy-terraform-registry/index/catalog"
	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/changes"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/markdown"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/snippet"
)

// The models of the tests: a registry with a module of ordinary size.

var published = time.Date(2026, 11, 12, 14, 3, 0, 0, time.UTC)

func testIdentity() *identity {
	return &identity{Name: "registry.example.com", Hostname: "registry.example.com"}
}

func plainMarkdown(s string) prose { return prose(template.HTMLEscapeString(s)) }

func nowhere(moduledoc.Position) link { return link{} }

func unlinked(list ...changes.Change) (all []linkedChange) {
	for _, c := range list {
		all = append(all, linkedChange{Change: c})
	}
	return all
}

func vpcVariables() []moduledoc.Variable {
	return []moduledoc.Variable{
		{Name: "name", Type: "string", Description: "Prefix of all names.", Nullable: true, Validations: []string{"The name must have 1 to 20 letters, digits or dashes."}},
		{Name: "zones", Type: "list(string)", Default: "null", Description: "Availability zones; all of the region when null.", Nullable: true},
		{Name: "cidr", Type: "string", Description: "Address range, /16 to /24.", Nullable: false},
		{
			Name: "subnets", Default: "{}", Nullable: false,
			Type:        "map(object({\n  cidr_newbits = number\n  public       = optional(bool, false)\n  routes = optional(list(object({\n    destination = string\n    gateway     = string\n  })), [])\n}))",
			Description: "Subnets in every zone, by name. They are carved out of cidr in equal parts, and their names become part of the outputs.",
		},
		{Name: "single_nat", Type: "bool", Default: "false", Description: "One gateway for all zones, which costs less and fails together.", Nullable: true},
		{Name: "flow_logs", Type: "object({ bucket = string, days = optional(number, 30) })", Default: "null", Description: "Where flow logs go.", Nullable: true},
		{Name: "peer_secret", Type: "string", Default: `""`, Description: "Shared secret of the peering.", Sensitive: true, Ephemeral: true, Nullable: true},
		{Name: "enable_classic", Type: "bool", Default: "false", Deprecated: "It has had no effect since 1.2: leave it out.", Nullable: true},
		{Name: "tags", Type: "map(string)", Default: `{"managed-by":"terraform","cost-center":"4711","environment":"production","team":"platform"}`, Description: "Tags of everything.", Nullable: true},
		{Name: "policy", Type: "string", Default: `"` + strings.Repeat(`{\"Effect\":\"Allow\"},`, 150) + `"`, Description: "Policy of the endpoints.", Nullable: true},
	}
}

func vpcOutputs() []moduledoc.Output {
	return []moduledoc.Output{
		{Name: "vpc_id", Description: "ID of the VPC."},
		{Name: "private_subnet_ids", Description: "IDs of the private subnets, by zone."},
		{Name: "nat_addresses", Description: "Public addresses of the gateways."},
		{Name: "peer_token", Sensitive: true},
		{Name: "nat_ips", Description: "The same as a list.", Deprecated: "Use nat_addresses."},
	}
}

func vpcResources() []moduledoc.Resource {
	return []moduledoc.Resource{
		{Mode: moduledoc.Managed, Type: "aws_vpc", Name: "this"},
		{Mode: moduledoc.Managed, Type: "aws_subnet", Name: "private"},
		{Mode: moduledoc.Managed, Type: "aws_subnet", Name: "public"},
		{Mode: moduledoc.Managed, Type: "aws_nat_gateway", Name: "this"},
		{Mode: moduledoc.Data, Type: "aws_availability_zones", Name: "available"},
	}
}

func vpcModule() moduledoc.Module {
	return moduledoc.Module{
		Readme: moduledoc.Readme{Name: "README.md"}, Variables: vpcVariables(), Outputs: vpcOutputs(), Resources: vpcResources(),
		RequiredVersion: ">= 1.3",
		Providers:       []moduledoc.Provider{{Name: "aws", Source: "hashicorp/aws", Version: ">= 5.0"}},
	}
}

// modulePageOf returns the page of acme/vpc/aws on one of its tabs.
func modulePageOf(tabName string) modulePage {
	m := vpcModule()
	base := "/modules/acme/vpc/aws"
	tabs := []struct {
		name, text string
		count      int
	}{
		{tabReadme, "README", 0}, {tabInputs, "Inputs", len(m.Variables)}, {tabOutputs, "Outputs", len(m.Outputs)},
		{tabResources, "Resources", len(m.Resources)}, {tabDependencies, "Dependencies", 2}, {tabSubmodules, "Submodules", 2},
		{tabExamples, "Examples", 1}, {tabVersions, "Versions", 14}, {tabChanges, "Changes", 0},
	}
	p := modulePage{
		page: page{Site: testIdentity(), Title: "acme/vpc/aws 1.4.0", Current: "modules"},
		heading: heading{
			Crumbs: []link{{"modules", "/browse/modules"}, {"acme", "/browse/modules?namespace=acme"}, {"vpc", ""}, {"aws", ""}},
			Before: "acme/", Name: "vpc", After: "/aws",
			Lede: "A VPC with public and private subnets in every availability zone, one NAT gateway each, and flow logs.",
			Menu: versionMenu{Current: "1.4.0", Versions: []versionLink{
				{Version: "2.0.0-rc.1", URL: base + "/2.0.0-rc.1", Chip: &chip{Label: "prerelease"}},
				{Version: "1.4.0", URL: base + "/1.4.0", Chip: &chip{Label: "latest", Tone: "good"}, Current: true},
				{Version: "1.3.2", URL: base + "/1.3.2"},
				{Version: "1.2.0", URL: base + "/1.2.0", Chip: &chip{Label: "deprecated", Tone: "warn"}},
			}, All: link{"All 14 versions", base + "/1.4.0?tab=versions"}},
			Chips: []chip{{Label: "latest", Tone: "good"}, {Time: published}, {Label: "terraform", Value: ">= 1.3"}, {Label: "hashicorp/aws", Value: ">= 5.0"}, {Label: "34 kB"}, {Label: "MPL-2.0"}},
		},
		sidebar: sidebar{
			Use: &usage{Code: snippet.Module("registry.example.com/acme/vpc/aws", "~> 1.4", &m, "vpc")},
			Facts: []fact{
				{Term: "Source", Text: "github.com/acme/terraform-aws-vpc", URL: "https://github.com/acme/terraform-aws-vpc"},
				{Term: "Owner", Text: "platform team"},
				{Term: "Published", Time: published},
				{Term: "Package", Text: "archive.tar.gz", URL: "/v1/modules/acme/vpc/aws/1.4.0/archive.tar.gz", More: ", 34 kB"},
				{Term: "sha256", Text: "3f8a1c22…9ac1d2", Full: "3f8a1c22b0d49c6e7f5a1b2c3d4e5f60718293a4b5c6d7e8f9012a3b4c9ac1d2"},
			},
		},
		Tab: tabName, Inputs: newInputs(m.Variables, plainMarkdown, nowhere), Outputs: newOutputs(m.Outputs, plainMarkdown, nowhere),
		Resources: newResources(m.Resources, func(*moduledoc.Resource) string { return "" }, nowhere),
		Dependencies: dependencies{
			Terraform: ">= 1.3",
			Providers: []dependency{{"aws", link{"hashicorp/aws", "/registries/registry.terraform.io/providers/hashicorp/aws/latest"}, ">= 5.0", false}},
			Modules:   []dependency{{"labels", link{"acme/labels/null", "/modules/acme/labels/null/latest"}, "~> 1.0", false}, {"subnets", link{"./modules/subnets", base + "/1.4.0/submodules/subnets"}, "", true}},
		},
		Submodules: []part{
			{Name: "modules/subnets", URL: base + "/1.4.0/submodules/subnets", Description: "Subnets of one zone.", Inputs: 5, Outputs: 2, Resources: 3},
			{Name: "modules/endpoints", URL: base + "/1.4.0/submodules/endpoints", Inputs: 1, Outputs: 1, Resources: 1},
		},
		Examples: []part{{Name: "examples/complete", URL: base + "/1.4.0/examples/complete", Description: "Everything switched on.", Resources: 0}},
		Versions: []versionGroup[versionRow]{
			{"2.x", []versionRow{{Version: "2.0.0-rc.1", URL: base + "/2.0.0-rc.1", Published: published, Size: "35 kB", Chips: []chip{{Label: "prerelease"}}, Removed: []string{"nat_ips"}, Compare: base + "/2.0.0-rc.1?tab=changes"}}},
			{"1.x", []versionRow{
				{Version: "1.4.0", URL: base + "/1.4.0", Published: published, Size: "34 kB", Chips: []chip{{Label: "latest", Tone: "good"}}, Added: []string{"flow_logs", "nat_addresses"}, Compare: base + "/1.4.0?tab=changes"},
				{Version: "1.3.2", URL: base + "/1.3.2", Published: published.AddDate(0, -2, 0), Size: "33 kB", Compare: base + "/1.3.2?tab=changes"},
				{Version: "1.3.1", URL: base + "/1.3.1", Published: published.AddDate(0, -3, 0), Size: "33 kB", Chips: []chip{{Label: "withdrawn", Tone: "bad"}}, Reason: "CVE-2026-1234: flow logs were public.", Compare: base + "/1.3.1?tab=changes"},
				{Version: "1.2.0", URL: base + "/1.2.0", Published: published.AddDate(-1, -5, 0), Size: "29 kB", Chips: []chip{{Label: "deprecated", Tone: "warn"}}, Reason: "Subnets overlap: use 1.2.1 or newer."},
			}},
		},
		Changes: comparison{
			From: "1.3.2", To: "1.4.0", Action: base + "/1.4.0",
			Others:  []versionLink{{Version: "2.0.0-rc.1"}, {Version: "1.3.2", Current: true}, {Version: "1.2.0"}},
			Verdict: changes.Verdict{Tone: "bad", Title: "1 breaking change in a minor release.", Text: "That calls for a new major version."},
			Groups: []changeGroup{{Changes: unlinked(
				changes.Change{Kind: changes.Removed, What: "output", Name: "nat_ips", Breaking: true},
				changes.Change{Kind: changes.Added, What: "input", Name: "flow_logs"},
				changes.Change{Kind: changes.Changed, What: "input", Name: "zones", Details: []changes.Detail{{Of: "default", From: "[]", To: "null"}, {Of: "null is now accepted"}}},
				changes.Change{Kind: changes.Changed, What: "provider", Name: "aws", Details: []changes.Detail{{Of: "version", From: ">= 4.0", To: ">= 5.0"}}, Breaking: true},
				changes.Change{Kind: changes.Added, What: "submodule", Name: "modules/endpoints"},
			), Resources: unlinked(changes.Change{Kind: changes.Added, What: "resource", Name: "aws_flow_log.this"})}},
		},
	}
	p.Readme = readme{Name: "README.md", Content: testReadme}
	if tabName == tabReadme {
		p.Outline = []markdown.Heading{{Level: 2, Text: "Usage", ID: "usage"}, {Level: 3, Text: "One gateway", ID: "one-gateway"}, {Level: 2, Text: "Upgrading", ID: "upgrading"}}
	}
	for _, t := range tabs {
		url := base + "/1.4.0?tab=" + t.name
		if t.name == tabReadme {
			url = base + "/1.4.0"
		}
		p.Tabs = append(p.Tabs, tab{t.text, url, t.count, t.name == tabName})
	}
	return p
}

const testReadme = `<h2 id="usage">Usage</h2>
<p>Subnets are carved out of <code>cidr</code> in equal parts. With <code>single_nat = true</code> there is one gateway for all zones, which costs less and fails together. See <a href="https://example.org/">the handbook</a>.</p>
<pre tabindex="0" class="chroma"><code><span class="k">module</span> <span class="s">"vpc"</span> {
  source  = <span class="s">"registry.example.com/acme/vpc/aws"</span>
  version = <span class="s">"~&gt; 1.4"</span>

  name = <span class="s">"shop"</span> <span class="c">// a comment that makes the line rather long, so that it has to scroll on a phone</span>
}
</code></pre>
<h3 id="one-gateway">One gateway</h3>
<ul><li>costs less</li><li>fails together<ul><li>all at once</li></ul></li></ul>
<ul><li class="task-item"><span class="task done" role="img" aria-label="Done"></span>Flow logs</li><li class="task-item"><span class="task" role="img" aria-label="To do"></span>IPv6</li></ul>
<div class="callout caution"><p><strong>Careful.</strong> Changing <code>cidr</code> replaces everything.</p></div>
<blockquote><p>Networks are forever.</p></blockquote>
<h2 id="upgrading">Upgrading</h2>
<div class="scroll" tabindex="0"><table><thead><tr><th>From</th><th>To</th><th>What to do</th></tr></thead><tbody><tr><td>1.2</td><td>1.3</td><td>Nothing.</td></tr><tr><td>1.3</td><td>1.4</td><td>Write <code>nat_addresses</code> where there was <code>nat_ips</code>.</td></tr></tbody></table></div>
`

func homePageOf() homePage {
	return homePage{
		page:   page{Site: testIdentity(), Title: "registry.example.com", Home: true},
		Counts: []tally{{128, "module", "modules", "/browse/modules"}, {34, "provider", "providers", "/browse/providers"}, {1204, "version", "versions", ""}},
		Newest: []release{
			{"acme/vpc/aws", "/modules/acme/vpc/aws/1.4.0", "1.4.0", "A VPC with public and private subnets in every availability zone, one NAT gateway each, and flow logs.", "module", published},
			{"acme/demo", "/providers/acme/demo/0.3.1", "0.3.1", "Things of the demo service.", "provider", published.AddDate(0, 0, -1)},
			{"platform/kubernetes-cluster/google", "/modules/platform/kubernetes-cluster/google/3.0.0", "3.0.0", "", "module", published.AddDate(0, 0, -4)},
			{"registry.terraform.io/hashicorp/aws", "/registries/registry.terraform.io/providers/hashicorp/aws/5.100.0", "5.100.0", "", "provider", published.AddDate(0, -1, 0)},
		},
		Places: []facet{{Title: "Namespaces", Choices: []choice{{Text: "acme", URL: "/browse/modules?namespace=acme", Count: 73}, {Text: "platform", URL: "/browse/modules?namespace=platform", Count: 31}, {Text: "data-science", URL: "/browse/modules?namespace=data-science", Count: 24}}}},
		Steps: snippet.Setup{
			Registry: clientconfig.Registry{
				Hostnames: []string{"registry.example.com"}, URL: "https://registry.example.com/v1", Login: true, HostsProviders: true,
				Origins: []clientconfig.Origin{{Hostname: "registry.opentofu.org", Providers: true}, {Hostname: "registry.terraform.io", Providers: true, Modules: true}},
			},
			Modules: true, Providers: true, Mirror: true,
		}.Steps(),
	}
}

func testItems() []item {
	return []item{
		{Name: "acme/vpc/aws", URL: "/modules/acme/vpc/aws/latest", Version: "1.4.0", Description: "A VPC with public and private subnets in every availability zone, one NAT gateway each, and flow logs.", Owner: "platform team", Versions: 14, Published: published},
		{Name: "acme/vpc-legacy/aws", URL: "/modules/acme/vpc-legacy/aws/latest", Version: "0.9.3", Description: "The VPC of old accounts.", Versions: 1, Published: published.AddDate(-2, 0, 0), Chips: []chip{{Label: "deprecated", Tone: "warn"}}},
		{Name: "platform/kubernetes-cluster/google", URL: "/modules/platform/kubernetes-cluster/google/latest", Version: "3.0.0", Versions: 40, Published: published},
	}
}

func browsePageOf() browsePage {
	return browsePage{
		page:    page{Site: testIdentity(), Title: "Modules", Current: "modules"},
		Heading: "Modules", Total: 128, Items: testItems(), Clear: "/browse/modules",
		Facets: []facet{
			{"Namespace", []choice{{"acme", "/browse/modules", 73, true}, {"platform", "/browse/modules?namespace=platform", 31, false}}, []choice{{"data-science", "/browse/modules?namespace=data-science", 24, false}}},
			{"System", []choice{{"aws", "/browse/modules?namespace=acme&provider=aws", 61, false}, {"google", "/browse/modules?namespace=acme&provider=google", 12, false}}, nil},
		},
		Pager: pager{Next: "/browse/modules?offset=20", First: 1, Last: 20, Total: 128},
	}
}

func searchPageOf() searchPage {
	runs := func(texts ...string) (all []catalog.Run) { // every second one is marked
		for i, text := range texts {
			if text != "" {
				all = append(all, catalog.Run{Text: text, Marked: i%2 == 1})
			}
		}
		return all
	}
	var modules []foundItem
	for _, i := range testItems() {
		modules = append(modules, foundItem{item: i, MarkedName: runs(i.Name), Said: runs(i.Description)})
	}
	modules[0].MarkedName, modules[0].Said = runs("acme/", "vpc", "/aws"), runs("A ", "VPC", " with subnets.")
	modules[0].Inner = []foundPart{{URL: "/modules/acme/vpc/aws/1.4.0/submodules/subnets", Name: runs("modules/subnets"), Said: runs("Subnets of one zone."), Why: []catalog.Reason{{Kind: catalog.Input, Text: runs("", "vpc", "_id")}}}}
	modules[1].Why = []catalog.Reason{{Kind: catalog.Creates, Text: runs("aws_", "vpc")}, {Kind: catalog.Readme, Text: runs("", "vpc")}}
	return searchPage{
		page: page{Site: testIdentity(), Title: "vpc", Query: "vpc"}, Clear: "/search?q=vpc",
		Kinds:  []choice{{"All", "/search?q=vpc", 35, true}, {"Modules", "/search/modules?q=vpc", 3, false}},
		Facets: []facet{{"Namespace", []choice{{"acme", "/search?q=vpc&namespace=acme", 2, false}}, nil}},
		Groups: []searchGroup{
			{Title: "Modules", Items: modules, Total: 3},
			{Title: "Documentation", Items: []foundItem{{
				item: item{Name: "aws_vpc", URL: "/providers/hashicorp/aws/latest/docs/resources/vpc", Chips: []chip{{Label: "resource"}}}, MarkedName: runs("aws_", "vpc"), Of: link{"hashicorp/aws", "/providers/hashicorp/aws"},
			}}, Total: 31, All: "/search/documentation?q=vpc"},
		},
	}
}
