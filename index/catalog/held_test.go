package catalog_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/catalog"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// heldTree has what people look for by what they have in their hands.
func heldTree(t testing.TB) *catalog.Catalog {
	t.Helper()
	files := indextest.New(t)
	files.Write("modules/acme/storage/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", `
terraform {
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.0"
    }
  }
}
variable "bucket_prefix" {}
output "bucket_arn" {}
resource "aws_s3_bucket" "main" {}
data "aws_caller_identity" "me" {}
ephemeral "aws_secretsmanager_secret" "s" {}
module "labels" {
  source  = "registry.example.com/acme/labels/null"
  version = "~> 1.0"
}
module "tags" {
  source  = "registry.example.com/acme/labels/null//modules/tags"
  version = "~> 1.0"
}
`, "README.md", "# Storage\n\nKeeps objects of a team in München.\n\nこのサブネットは東京にあります。 Needs a KMS key.",
		"modules/replica/main.tf", `
resource "aws_s3_bucket_replication_configuration" "r" {}
module "other" {
  source  = "acme/other/null"
  version = "~> 2.0"
}
`,
		"modules/replica/README.md", "# Replica\n\nA second copy of the objects elsewhere."))
	files.Write("modules/acme/storage/aws/registry.hcl", `source = "https://github.com/acme/terraform-aws-storage"`)
	files.Write("modules/acme/labels/null/1.0.0/main.tf", `variable "team" {}`)
	files.Write("modules/acme/zone/google/1.0.0/main.tf", `
terraform {
  required_providers {
    google = {
      source = "hashicorp/google-beta"
    }
  }
}
data "external" "records" {}
`)
	files.Write("modules/acme/labels/null/1.0.0/README.md", "# Labels\n\nNames for everything on the platform, and for s3, too: aws calls it a bucket.\n")
	files.Write("modules/registry.terraform.io/terraform-aws-modules/vpc/aws/5.0.0/main.tf", `resource "aws_vpc" "this" {}`)
	files.Provider("registry.terraform.io/hashicorp/aws", "5.0.0", "linux_amd64").Docs(
		"index.md", "# AWS", "resources/s3_bucket.md", "# aws_s3_bucket", "resources/s3_bucket_policy.md", "# aws_s3_bucket_policy",
		"functions/arn_parse.md", "# arn_parse", "guides/version-5-upgrade.md", "---\npage_title: Upgrading and authentication\n---\n")
	files.Provider("acme/demo", "1.0.0", "linux_amd64")
	x := index.New(index.Options{Open: files.Open, Signer: signer(t)})
	t.Cleanup(func() { x.Close() })
	return catalog.For(indextest.Rescan(t, x))
}

// TestWhatPeopleHaveInTheirHands has what a search finds, and how it says why: marks are in
// brackets, submodules after >, and pages of documentation after #.
func TestWhatPeopleHaveInTheirHands(t *testing.T) {
	c := heldTree(t)
	modules, providers := c.ModuleSearcher(c.Modules), c.ProviderSearcher(c.Providers)
	const storage, labels, zone, vpc = "acme/storage/aws", "acme/labels/null", "acme/zone/google", "registry.terraform.io/terraform-aws-modules/vpc/aws"
	for _, test := range []struct {
		rule, query string
		want        []string
	}{
		{"a type of resources: what creates it, and its page", "aws_s3_bucket", []string{
			storage + ": creates [aws_s3_bucket] > modules/replica: creates [aws_s3_bucket]_replication_configuration",
			"#[aws_s3_bucket]", "#[aws_s3_bucket]_policy"}},
		{"without the type of its provider", "s3_bucket_policy", []string{"#aws_[s3_bucket_policy]"}},
		{"a type of data sources", "aws_caller_identity", []string{storage + ": reads [aws_caller_identity]"}},
		{"a type of ephemeral resources", "aws_secretsmanager_secret", []string{storage + ": opens [aws_secretsmanager_secret]"}},
		{"a required provider: what requires it, and itself", "hashicorp/aws", []string{storage + ": requires [hashicorp/aws]", vpc + ": requires [hashicorp/aws]", "registry.terraform.io/[hashicorp]/[aws]"}},
		{"by its full source", "registry.terraform.io/hashicorp/aws", []string{storage + ": requires [hashicorp/aws]", vpc + ": requires [hashicorp/aws]", "[registry.terraform.io]/[hashicorp]/[aws]"}},
		{"by that of another registry: only what requires it", "registry.example.com/hashicorp/aws", nil},
		{"a required provider with a hyphen", "google-beta", []string{zone + ": requires hashicorp/[google-beta]"}},
		{"the beginning of its name", "google-be", []string{zone + ": requires hashicorp/[google-be]ta"}},
		{"a data source as configurations name it", "data.aws_caller_identity", []string{storage + ": reads [aws_caller_identity]"}},
		{"with its name", "data.aws_caller_identity.me.account_id", []string{storage + ": reads [aws_caller_identity]"}},
		{"a data source whose type is the name of its provider", "data.external.records.result", []string{zone + ": reads [external]"}},
		{"that type", "data.external", []string{zone + ": reads [external]"}},
		{"a resource as configurations name it", "aws_caller_identity.me", []string{storage + ": reads [aws_caller_identity]"}},
		{"a resource of a called module as clients name it", `module.a["x/y z"].module.b.aws_s3_bucket_policy.this[0]`, []string{"#[aws_s3_bucket_policy]"}},
		{"a data source of a called module", "module.vpc.data.aws_caller_identity.me", []string{storage + ": reads [aws_caller_identity]"}},
		{"the first line of a resource", `resource "aws_s3_bucket_policy" "this" {`, []string{"#[aws_s3_bucket_policy]"}},
		{"a block with an argument source", `data "aws_caller_identity" "me" { source = "files/logo.png" }`, []string{storage + ": reads [aws_caller_identity]"}},
		{"between brackets and a comma", "(aws_caller_identity.me),", []string{storage + ": reads [aws_caller_identity]"}},
		{"of a data source", `data "aws_caller_identity" "me" {}`, []string{storage + ": reads [aws_caller_identity]"}},
		{"a version, of which only the latest is searched", "storage v9.1.0", []string{"acme/[storage]/aws: "}},
		{"a function as configurations call it", "provider::aws::arn_parse", []string{"#[arn_parse]"}},
		{"a function with its arguments", "provider::aws::arn_parse(var.arn)", []string{"#[arn_parse]"}},
		{"the repository of a module", "git@github.com:acme/terraform-aws-storage.git", []string{"[acme]/[storage]/[aws]: "}},
		{"its URL", "git::https://github.com/acme/terraform-aws-storage.git?ref=v1.0.0", []string{"[acme]/[storage]/[aws]: "}},
		{"its source in a configuration", "github.com/acme/terraform-aws-storage?ref=v1.0.0", []string{"[acme]/[storage]/[aws]: "}},
		{"its source with a submodule and the ending of Git", "github.com/acme/terraform-aws-storage.git//modules/x?ref=v1.0.0", []string{"[acme]/[storage]/[aws]: "}},
		{"its page of a tag", "https://github.com/acme/terraform-aws-storage/tree/v1.0.0", []string{"[acme]/[storage]/[aws]: "}},
		{"its page of a file", "https://github.com/acme/terraform-aws-storage/blob/main/modules/a/b/c/main.tf", []string{"[acme]/[storage]/[aws]: "}},
		{"its page at another host", "https://gitlab.com/acme/terraform-aws-storage/-/tree/main", []string{"[acme]/[storage]/[aws]: "}},
		{"words with slashes, which are no address here", "bucket/policy", []string{"#aws_s3_[bucket_policy]"}},
		{"a function", "arn_parse", []string{"#[arn_parse]"}},
		{"a guide", "authentication", []string{"#version-5-upgrade Upgrading and [authentication]"}},
		{"a page by words of its own and of its provider", "hashicorp bucket policy", []string{"#aws_s3_[bucket_policy]"}},
		{"an input", "bucket_prefix", []string{storage + ": input [bucket_prefix]"}},
		{"a part of an input", "prefix", []string{storage + ": input bucket_[prefix]"}},
		{"an output", "bucket_arn", []string{storage + ": output [bucket_arn]"}},
		{"parts of a name are not words anywhere", "s3_bucket", []string{storage + ": creates aws_[s3_bucket] > modules/replica: creates aws_[s3_bucket]_replication_configuration", "#aws_[s3_bucket]", "#aws_[s3_bucket]_policy"}},
		{"a word of a README", "kms", []string{storage + ": README [kms]"}},
		{"a submodule under its module", "replica", []string{storage + ": > modules/[replica]: "}},
		{"a plural of a name", "vpcs", []string{"registry.terraform.io/terraform-aws-modules/[vpc]/aws: "}},
		{"a plural of a word", "teams", []string{labels + ": input [team]", storage + ": Keeps objects of a [team] in München."}},
		{"a typo", "platfrm", []string{labels + ": Names for everything on the [platform], and for s3, too: aws calls it a bucket."}},
		{"another typo", "sotrage", []string{"acme/[storage]/aws: "}},
		{"the ending of a verb", "keeping", []string{storage + ": [Keep]s objects of a team in München."}},
		{"an accent that is left out", "munchen", []string{storage + ": Keeps objects of a team in [München]."}},
		{"an accent of its own", "STÓRAGE", []string{"acme/[storage]/aws: "}},
		{"characters within a run without spaces", "サブネット", []string{storage + ": README この[サブネット]は東京にあります"}},
		{"one of them", "京", []string{storage + ": README このサブネットは東[京]にあります"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			q := catalog.ParseQuery(test.query)
			found, _ := search(t, modules, q)
			foundProviders, pages := search(t, providers, q)
			if found.Len()+foundProviders.Len()+pages.Len() == 0 {
				q = q.Loosen()
				found, _ = search(t, modules, q)
			}
			var got []string
			for i := range found.Len() {
				at, _ := found.Item(i)
				e := c.Modules[at]
				x := q.Explain(e)
				name := marked(q.MarkName(e.Address.String()))
				if len(x.Reasons) > 0 || len(x.Parts) > 0 || !strings.Contains(name, "[") {
					name = e.Address.String()
				}
				text := name + ": "
				if description := marked(x.Description); strings.Contains(description, "[") {
					text += description
				}
				text += reasons(x.Reasons)
				for _, p := range x.Parts {
					text = strings.TrimSuffix(text, " ") + " > " + marked(p.Name) + ": " + reasons(p.Reasons)
				}
				got = append(got, text)
			}
			for i := range foundProviders.Len() {
				at, _ := foundProviders.Item(i)
				got = append(got, marked(q.MarkName(c.Providers[at].Address.String())))
			}
			for i := range pages.Len() {
				at, page := pages.Item(i)
				found := c.Providers[at].Titles().Title(page)
				name, title := q.ExplainPage(&found, c.Providers[at].Address.Name)
				got = append(got, strings.TrimSpace("#"+marked(name)+" "+marked(title)))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

func reasons(all []catalog.Reason) string {
	var texts []string
	for _, r := range all {
		texts = append(texts, string(r.Kind)+" "+marked(r.Text))
	}
	return strings.Join(texts, ", ")
}

func TestPastedReferences(t *testing.T) {
	const own = "registry.example.com"
	for _, test := range []struct{ rule, text, want string }{
		{"an address of a module", "acme/vpc/aws", "acme/vpc/aws"},
		{"an address of a provider", "hashicorp/aws", "hashicorp/aws"},
		{"with a hostname", "registry.terraform.io/hashicorp/aws", "registry.terraform.io/hashicorp/aws"},
		{"with the registry's own", "registry.example.com/acme/vpc/aws", "own acme/vpc/aws"},
		{"with the registry's own and a port", "localhost:8443/acme/vpc/aws", "own acme/vpc/aws"},
		{"a line of configuration", `source = "registry.example.com/acme/vpc/aws"`, "own acme/vpc/aws"},
		{"with spaces", `  source  =  'acme/vpc/aws'  `, "acme/vpc/aws"},
		{"with the line of its version", "source  = \"registry.example.com/acme/vpc/aws\"\n  version = \"~> 1.4\"", "own acme/vpc/aws"},
		{"in a block whose lines a field has joined", `module "vpc" {  source  = "registry.example.com/acme/vpc/aws"  version = "~> 1.4"}`, "own acme/vpc/aws"},
		{"of a provider", `required_providers { aws = { source = "hashicorp/aws"`, "hashicorp/aws"},
		{"a submodule", "registry.example.com/acme/vpc/aws//modules/subnets?ref=v1", "own acme/vpc/aws modules/subnets"},
		{"the URL of a module's page", "https://registry.example.com/modules/acme/vpc/aws/1.2.0?tab=inputs#input_x", "own acme/vpc/aws"},
		{"below a path", "https://registry.example.com/ui/modules/acme/vpc/aws", "own acme/vpc/aws"},
		{"of a namespace that is called like folders of files", "https://registry.example.com/ui/modules/src/vpc/aws", "own src/vpc/aws"},
		{"of a submodule", "https://registry.example.com/modules/acme/vpc/aws/latest/submodules/subnets", "own acme/vpc/aws modules/subnets"},
		{"of a mirrored module", "https://registry.example.com/registries/registry.terraform.io/modules/acme/vpc/aws", "registry.terraform.io/acme/vpc/aws"},
		{"of a page of documentation", "https://registry.terraform.io/providers/hashicorp/aws/latest/docs/resources/s3_bucket", "registry.terraform.io/hashicorp/aws resources s3_bucket"},
		{"of a provider in the search of OpenTofu", "https://search.opentofu.org/provider/hashicorp/aws/latest", "registry.opentofu.org/hashicorp/aws"},
		{"of its documentation there", "https://search.opentofu.org/provider/hashicorp/aws/latest/docs/resources/s3_bucket", "registry.opentofu.org/hashicorp/aws resources s3_bucket"},
		{"of a provider that is called like pages of modules", "https://search.opentofu.org/provider/hashicorp/modules", "registry.opentofu.org/hashicorp/modules"},
		{"of a module there", "https://search.opentofu.org/module/acme/vpc/aws/latest", "registry.opentofu.org/acme/vpc/aws"},
		{"of a submodule there", "https://search.opentofu.org/module/acme/vpc/aws/v1.0.0/submodule/subnets", "registry.opentofu.org/acme/vpc/aws modules/subnets"},
		{"the id of a version of a module", "acme/vpc/aws/1.0.0", "acme/vpc/aws"},
		{"of a provider", "hashicorp/aws/5.0.0", "hashicorp/aws"},
		{"the title of a page", "acme/vpc/aws 1.0.0", "acme/vpc/aws"},
		{"as a browser has it", "acme/vpc/aws 1.0.0 · registry.example.com", "acme/vpc/aws"},
		{"of a part of it", "Inputs · modules/subnets · acme/vpc/aws 1.0.0 · Acme platform", "acme/vpc/aws"},
		{"a page of documentation that is called like a page of a repository", "https://registry.terraform.io/providers/acme/demo/latest/docs/resources/tree/x", "registry.terraform.io/acme/demo resources tree"},
		{"the source of a repository names nothing here", "github.com/acme/terraform-aws-vpc?ref=v1.0.0", ""},
		{"of the protocol", "https://registry.example.com/v1/modules/acme/vpc/aws/1.2.0/download", "own acme/vpc/aws"},
		{"without a scheme", "registry.example.com/providers/acme/demo", "own acme/demo"},
		{"the URL of a repository names nothing here", "git::https://github.com/acme/terraform-modules.git//vpc?ref=v1.2.3", ""},
		{"nor does the URL of a repository that is called like the pages", "https://github.com/acme/modules/tree/main/vpc", ""},
		{"nor that of SSH", "git@github.com:acme/terraform-aws-vpc.git", ""},
		{"a page below a path of a module that is called like a page of a repository", "https://registry.example.com/ui/modules/acme/tree/aws/1.2.0", "own acme/tree/aws"},
		{"a hostname that looks like the address of a data source", "data.example.com/acme/vpc/aws", "data.example.com/acme/vpc/aws"},
		{"a full source of a provider", "registry.opentofu.org/hashicorp/aws", "registry.opentofu.org/hashicorp/aws"},
		{"a local folder names nothing", "./modules/vpc", ""},
		{"words with slashes that are no names", "read/write!", ""},
		{"words are none", "vpc aws", ""},
		{"names without a hostname are no page of a repository", "acme/vpc/tree/main", ""},
		{"nor is a word", "vpc", ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			q := catalog.ParseQuery(test.text, own, "localhost:8443")
			got := ""
			if r := q.Named; r != nil {
				got = strings.Join(slices.DeleteFunc([]string{r.Address.String(), r.Part, r.Category, r.Slug}, func(s string) bool { return s == "" }), " ")
				if r.Own {
					got = "own " + got
				}
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if q.IsEmpty() {
				t.Error("there are no words to look for")
			}
		})
	}
}

// A repository is found by all URLs of its host, also if its name is "modules".
func TestRepositoriesAreFoundByTheirURLs(t *testing.T) {
	files := indextest.New(t)
	for module, source := range map[string]string{
		"acme/vpc/aws": "https://gitlab.com/acme/modules/terraform-aws-vpc", "acme/net/aws": "https://gitlab.com/acme/modules/aws/network/edge",
		"acme/dns/aws": "https://bitbucket.org/acme/terraform-aws-dns", "acme/cdn/aws": "https://codeberg.org/acme/terraform-aws-cdn",
		"acme/mono/aws": "https://github.com/acme/modules", "acme/more/aws": "https://codeberg.org/acme/providers",
	} {
		files.Write("modules/"+module+"/1.0.0/main.tf", "").Write("modules/"+module+"/registry.hcl", "source = \""+source+"\"\n")
	}
	c := catalog.For(scan(t, files))
	for _, test := range []struct{ rule, url, want string }{
		{"in a group that is called like the pages", "https://gitlab.com/acme/modules/terraform-aws-vpc", "acme/vpc/aws"},
		{"a folder there", "https://gitlab.com/acme/modules/terraform-aws-vpc/-/tree/main/examples", "acme/vpc/aws"},
		{"a file there", "https://gitlab.com/acme/modules/terraform-aws-vpc/-/blob/main/main.tf", "acme/vpc/aws"},
		{"by SSH", "git@gitlab.com:acme/modules/terraform-aws-vpc.git", "acme/vpc/aws"},
		{"with as many names as a module", "https://gitlab.com/acme/modules/aws/network/edge/-/blob/main/main.tf", "acme/net/aws"},
		{"a file at Bitbucket", "https://bitbucket.org/acme/terraform-aws-dns/src/main/main.tf", "acme/dns/aws"},
		{"a file at Forgejo", "https://codeberg.org/acme/terraform-aws-cdn/src/branch/main/main.tf", "acme/cdn/aws"},
		{"a folder of a repository that is called like the pages", "https://github.com/acme/modules/tree/main/vpc", "acme/mono/aws"},
		{"a file there", "https://github.com/acme/modules/blob/main/vpc/main.tf", "acme/mono/aws"},
		{"a file of one that is called like the other pages", "https://codeberg.org/acme/providers/src/branch/main/main.tf", "acme/more/aws"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			if got := find(t, c, test.url); !slices.Contains(got, test.want) {
				t.Errorf("found are %q", got)
			}
		})
	}
}

// Modules that use a module or provider are known with their constraints, as the hostname in
// their sources has it. Each counts once, also if submodules of one package are used.
func TestUsedBy(t *testing.T) {
	c := heldTree(t)
	u := catalog.NewUsedBy(c.Modules)
	for _, test := range []struct {
		rule    string
		sources []string
		names   int
		want    []string
		modules int
	}{
		{"a module", []string{"registry.example.com/acme/labels/null"}, 3, []string{"acme/storage/aws  ~> 1.0"}, 1},
		{"of the public registry", []string{"acme/labels/null"}, 3, nil, 0},
		{"by either name", []string{"acme/labels/null", "registry.example.com/acme/labels/null"}, 3, []string{"acme/storage/aws  ~> 1.0"}, 1},
		{"two modules", []string{"registry.example.com/acme/labels/null", "acme/other/null"}, 3, []string{"acme/storage/aws  ~> 1.0", "acme/storage/aws modules/replica ~> 2.0"}, 1},
		{"a provider that OpenTofu gets from its registry", []string{"registry.opentofu.org/hashicorp/aws"}, 2, []string{"acme/storage/aws  >= 5.0", "acme/storage/aws modules/replica", "registry.terraform.io/terraform-aws-modules/vpc/aws"}, 2},
		{"a provider", []string{"hashicorp/aws"}, 2, []string{"acme/storage/aws  >= 5.0", "acme/storage/aws modules/replica", "registry.terraform.io/terraform-aws-modules/vpc/aws"}, 2},
	} {
		t.Run(test.rule, func(t *testing.T) {
			var addresses []address.Address
			for _, source := range test.sources {
				addresses = append(addresses, catalog.ParseSource(source, test.names)[0])
			}
			users, got := u.Users(addresses...), []string(nil)
			for by := range users.Callers() {
				got = append(got, strings.TrimSpace(c.Modules[by.Entry].Address.String()+" "+by.Part+" "+by.Constraint))
			}
			if !slices.Equal(got, test.want) || users.Modules() != test.modules {
				t.Errorf("it is used by %d modules: %q, want %d: %q", users.Modules(), got, test.modules, test.want)
			}
		})
	}
	if n := testing.AllocsPerRun(10, func() { u.Users(c.Providers[0].Address, c.Modules[0].Address) }); n > 0 {
		t.Errorf("to count them takes %v allocations", n)
	}
}

// A name is meant more often than one of many words in a text.
func TestATypoInANameComesFirst(t *testing.T) {
	files := indextest.New(t)
	files.Write("modules/acme/anything/aws/1.0.0/README.md", "# Anything\n\nBehind a gateway.\n").Write("modules/acme/anything/aws/1.0.0/main.tf", "")
	files.Write("modules/acme/gateway/aws/1.0.0/main.tf", "")
	x := index.New(index.Options{Open: files.Open, Signer: signer(t)})
	t.Cleanup(func() { x.Close() })
	c := catalog.For(indextest.Rescan(t, x))
	found, _ := search(t, c.ModuleSearcher(c.Modules), catalog.ParseQuery("gatway").Loosen())
	var names []string
	for i := range found.Len() {
		at, _ := found.Item(i)
		names = append(names, c.Modules[at].Address.Name)
	}
	if !slices.Equal(names, []string{"gateway", "anything"}) {
		t.Errorf("found are %q", names)
	}
}
