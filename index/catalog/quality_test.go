package catalog_test

import (
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/catalog"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// companyTree is a registry as companies have one, with the names that theirs have.
func companyTree(t testing.TB) *catalog.Catalog {
	t.Helper()
	files := indextest.New(t)
	module := func(address, version, description string, configuration ...string) {
		dir := "modules/" + address + "/" + version + "/"
		files.Write(dir+"README.md", "# Module\n\n"+description+".\n")
		var text strings.Builder
		for _, line := range configuration {
			kind, names, _ := strings.Cut(line, " ")
			for name := range strings.FieldsSeq(names) {
				switch kind {
				case "creates":
					text.WriteString(`resource "` + name + `" "this" {}` + "\n")
				case "reads":
					text.WriteString(`data "` + name + `" "this" {}` + "\n")
				case "takes":
					text.WriteString(`variable "` + name + `" {}` + "\n")
				case "returns":
					text.WriteString(`output "` + name + `" { value = null }` + "\n")
				case "part":
					files.Write(dir+"modules/"+name+"/main.tf", `variable "name" {}`)
				}
			}
		}
		files.Write(dir+"main.tf", text.String())
	}
	module("acme/alb/aws", "1.0.0", "Application load balancer with listeners", "creates aws_lb aws_lb_listener", "takes vpc_id subnet_ids")
	module("acme/bastion/aws", "1.0.0", "Jump host without keys", "creates aws_instance", "takes vpc_id")
	module("acme/batch/aws", "1.0.0", "Queue for jobs", "takes max_vcpus", "creates aws_batch_job_queue")
	module("acme/cert-manager/kubernetes", "1.0.0", "Certificates by Let's Encrypt", "creates helm_release")
	module("acme/cloudtrail/aws", "1.0.0", "Trail of all accounts", "creates aws_s3_bucket aws_s3_bucket_policy", "reads aws_iam_policy_document")
	module("acme/ec2-instance/aws", "1.0.0", "Virtual machine with a role", "creates aws_instance", "takes name ami")
	module("acme/eks/aws", "21.0.3", "Kubernetes cluster with managed nodes", "creates aws_eks_cluster", "takes vpc_id", "returns oidc_provider_arn", "part node-group")
	module("acme/key-vault/azurerm", "1.0.0", "Vault for keys and secrets", "creates azurerm_key_vault", "takes purge_protection_enabled")
	module("acme/loki/kubernetes", "1.0.0", "Logs of all pods", "takes bucket retention")
	module("acme/namespace/kubernetes", "1.0.0", "Namespace with quotas", "creates kubernetes_namespace_v1")
	module("acme/rds-postgres/aws", "4.2.0", "Database with backups", "creates aws_db_instance", "takes vpc_id deletion_protection")
	module("acme/s3-bucket/aws", "3.4.1", "Encrypted storage", "creates aws_s3_bucket aws_s3_bucket_policy", "reads aws_iam_policy_document", "takes lifecycle_rules")
	module("acme/security-group/aws", "2.1.0", "Rules with names", "creates aws_security_group aws_vpc_security_group_ingress_rule", "takes vpc_id")
	module("acme/vpc/aws", "1.4.0", "Network with public and private subnets", "creates aws_vpc aws_subnet", "takes single_nat_gateway", "returns vpc_id nat_public_ips")
	module("initech/karten/aws", "1.0.0", "Größere Kacheln entstehen über Nacht", "takes name")
	module("initech/vpc/aws", "9.0.0", "Old network", "creates aws_vpc", "returns vpc_id")
	files.Write("modules/initech/vpc/aws/registry.hcl", `deprecated ">= 0.0.0" { reason = "use acme/vpc/aws" }`)
	files.Write("modules/acme/vpc/aws/registry.hcl", `source = "https://github.com/acme/terraform-aws-network"`)
	const public = "registry.terraform.io/"
	files.Provider(public+"hashicorp/aws", "6.12.0", "linux_amd64").Docs(
		"resources/db_subnet_group.md", "# aws_db_subnet_group", "resources/iam_policy.md", "# aws_iam_policy",
		"resources/instance.md", "# aws_instance", "resources/lb.md", "# aws_lb", "resources/route.md", "# aws_route", "resources/route_table.md", "# aws_route_table",
		"resources/s3_bucket.md", "# aws_s3_bucket", "resources/s3_bucket_policy.md", "# aws_s3_bucket_policy", "resources/subnet.md", "# aws_subnet",
		"data-sources/iam_policy_document.md", "# aws_iam_policy_document", "data-sources/s3_bucket.md", "# aws_s3_bucket",
		"functions/arn_parse.md", "# arn_parse", "guides/version-6-upgrade.md", "---\npage_title: Version 6 Upgrade Guide\n---\n")
	files.Provider(public+"hashicorp/azurerm", "4.40.0", "linux_amd64")
	files.Provider(public+"hashicorp/kubernetes", "2.38.0", "linux_amd64").Docs("resources/namespace_v1.md", "# kubernetes_namespace_v1")
	files.Provider(public+"cyrilgdn/postgresql", "1.25.0", "linux_amd64").Docs("resources/role.md", "# postgresql_role")
	files.Provider("acme/platform", "1.5.2", "linux_amd64")
	x := index.New(index.Options{Open: files.Open, Signer: signer(t)})
	t.Cleanup(func() { x.Close() })
	return catalog.For(indextest.Rescan(t, x))
}

// firstOf returns the first result of a search among everything, as the pages have it: an address,
// and of documentation the page after #. It begins with ~ if it only has similar words, and with ? if
// it lacks some.
func firstOf(t testing.TB, c *catalog.Catalog, query string) string {
	t.Helper()
	modules, providers := c.ModuleSearcher(c.Modules), c.ProviderSearcher(c.Providers)
	q := catalog.ParseQuery(query, "registry.example.com")
	for _, stage := range []struct {
		mark  string
		query catalog.Query
	}{{"", q}, {"~", q.Loosen()}, {"?", q.Loosen().Relax()}} {
		found, _ := search(t, modules, stage.query)
		foundProviders, pages := search(t, providers, stage.query)
		best := min(found.Best(), foundProviders.Best(), pages.Best())
		for _, list := range []struct {
			results catalog.Results
			entries []*catalog.Entry
		}{{found, c.Modules}, {foundProviders, c.Providers}, {pages, c.Providers}} {
			if list.results.Len() == 0 || list.results.Best() != best {
				continue
			}
			at, page := list.results.Item(0)
			e := list.entries[at]
			name := strings.TrimPrefix(e.Address.String(), "registry.terraform.io/")
			if page >= 0 {
				title := e.Titles().Title(page)
				name += "#" + string(title.Category) + "/" + title.Slug
			}
			return stage.mark + name
		}
	}
	return ""
}

// TestFirstResults has what people type or paste into the search of a registry, and what they look
// for. Each row is a rule of the order.
func TestFirstResults(t *testing.T) {
	c := companyTree(t)
	const (
		policy  = "hashicorp/aws#resources/s3_bucket_policy"
		bucket  = "hashicorp/aws#resources/s3_bucket"
		message = "Error: Unsupported argument\n\n  on main.tf line 12, in resource \"aws_s3_bucket\" \"logs\":\n  12:   acl = \"private\"\n\nAn argument named \"acl\" is not expected here."
	)
	for _, test := range []struct{ rule, query, want string }{
		// Names and their spellings.
		{"words that are one name", "s3 bucket", "acme/s3-bucket/aws"},
		{"a name in one word", "s3bucket", "~acme/s3-bucket/aws"},
		{"a name of two words in one", "certmanager", "~acme/cert-manager/kubernetes"},
		{"words in another order", "aws vpc", "acme/vpc/aws"},
		{"a plural", "security groups", "acme/security-group/aws"},
		{"a word of a name, before an input of that name", "bucket", "acme/s3-bucket/aws"},
		{"a word of a name in the plural", "buckets", "acme/s3-bucket/aws"},
		{"the deprecated last", "vpc", "acme/vpc/aws"},
		{"a typo", "secuirty group", "~acme/security-group/aws"},
		{"two letters in the wrong order in a short word", "network vcp", "~acme/vpc/aws"},
		{"a typo in a part of a word", "cert-manger", "~acme/cert-manager/kubernetes"},
		{"the name of a provider with a typo, before the modules for it", "kubernets", "~hashicorp/kubernetes"},
		{"umlauts in two letters", "groessere", "~initech/karten/aws"},

		// Words that say little.
		{"a kind: a provider", "aws provider", "hashicorp/aws"},
		{"a kind: a module", "aws vpc module", "acme/vpc/aws"},
		{"a sentence", "how to create a vpc in aws", "acme/vpc/aws"},
		{"most of the words", "eks cluster on premises", "?acme/eks/aws"},
		{"an address that is not here", "acme/vpc/google", "?acme/vpc/aws"},

		// Abbreviations.
		{"an abbreviation", "k8s", "hashicorp/kubernetes"},
		{"one beside another word", "k8s namespace", "acme/namespace/kubernetes"},
		{"another word for the same", "postgresql aws", "acme/rds-postgres/aws"},
		{"an abbreviation of two words", "sg", "acme/security-group/aws"},
		{"two words for an abbreviation", "aws load balancer", "hashicorp/aws#resources/lb"},
		{"in one word", "loadbalancer", "~acme/alb/aws"},

		// Types, inputs and outputs.
		{"a type: the module that is about it", "aws_s3_bucket", "acme/s3-bucket/aws"},
		{"a type that no module is about: its documentation", "aws_subnet", "hashicorp/aws#resources/subnet"},
		{"a type that modules read: its documentation", "aws_iam_policy_document", "hashicorp/aws#data-sources/iam_policy_document"},
		{"without the type of the provider", "subnet", "hashicorp/aws#resources/subnet"},
		{"before names that only begin so", "route", "hashicorp/aws#resources/route"},
		{"the words of a type", "iam policy document", "hashicorp/aws#data-sources/iam_policy_document"},
		{"an output of the module that is about it", "vpc_id", "acme/vpc/aws"},
		{"an input as expressions have it", "var.purge_protection_enabled", "acme/key-vault/azurerm"},
		{"an output as expressions have it", "module.network.nat_public_ips", "acme/vpc/aws"},
		{"a module as expressions have it", "module.eks", "acme/eks/aws"},
		{"the first line of an output", `output "oidc_provider_arn" {`, "acme/eks/aws"},

		// What configurations and clients have: a resource is looked up.
		{"the first line of a resource", `resource "aws_instance" "web" {`, "hashicorp/aws#resources/instance"},
		{"a block", "import {\n  to = aws_s3_bucket.logs\n  id = \"logs\"\n}", bucket},
		{"an address", "module.x.aws_s3_bucket_policy.this[0]", policy},
		{"an interpolation", "${aws_s3_bucket.logs.arn}/*", bucket},
		{"a data source, not the resource of that name", "data.aws_s3_bucket.logs", "hashicorp/aws#data-sources/s3_bucket"},
		{"a command", "terraform import aws_s3_bucket.logs logs", bucket},
		{"a message about a resource", message, bucket},
		{"a message about a module", "Error: Module not found\n\nModule \"acme/eks/aws\" (from main.tf:3) cannot be found in the module registry at registry.example.com.", "acme/eks/aws"},
		{"a message about a provider", "│ - provider registry.terraform.io/hashicorp/azurerm: required by this configuration but no version is selected", "hashicorp/azurerm"},
		{"a message with URLs", "Error: could not query the provider registry for hashicorp/kubernetes: Get \"https://registry.terraform.io/v1/providers/hashicorp/kubernetes/versions\": dial tcp", "hashicorp/kubernetes"},
		{"a message about a resource that the provider lacks", "Error: Invalid resource type\n\nThe provider hashicorp/aws does not support resource type \"aws_opsworks_stack\".", "?hashicorp/aws"},
		{"a message about an argument", "The argument \"lifecycle_rules\" is required, but no definition was found in module \"s3-bucket\"", "acme/s3-bucket/aws"},
		{"a block of a lock file", "provider \"registry.terraform.io/hashicorp/kubernetes\" {\n  version = \"2.38.0\"\n  hashes = [\n    \"h1:KG4NuIBl1mRWU0KD/BGfCi1YN/j3F7H4YgeeM7iSdNs=\",\n  ]\n}", "hashicorp/kubernetes"},
		{"the configuration of a provider", "provider \"kubernetes\" {\n  config_path = \"x\"\n}", "hashicorp/kubernetes"},
		{"a provider as clients write it", `provider["registry.terraform.io/hashicorp/aws"]`, "hashicorp/aws"},
		{"a provider in a configuration", "provider.aws", "hashicorp/aws"},
		{"a function in an expression", "provider::aws::arn_parse(aws_instance.web.arn)", "hashicorp/aws#functions/arn_parse"},

		// Addresses with something beside them.
		{"with a version", "acme/vpc/aws@1.4.0", "acme/vpc/aws"},
		{"with a constraint", "initech/vpc/aws >= 1.2, < 2.0", "initech/vpc/aws"},
		{"of Terragrunt", "tfr:///acme/vpc/aws?version=1.4.0", "acme/vpc/aws"},
		{"of a folder of plugins", "~/.terraform.d/plugins/registry.terraform.io/hashicorp/aws/6.12.0/linux_amd64", "hashicorp/aws"},
		{"a package", "terraform-provider-platform_1.5.2_linux_amd64.zip", "acme/platform"},
		{"a line of a list of checksums", strings.Repeat("0a", 32) + "  terraform-provider-platform_1.5.2_linux_amd64.zip", "acme/platform"},
		{"the repository of a provider", "https://github.com/hashicorp/terraform-provider-aws/releases/tag/v6.12.0", "hashicorp/aws"},
		{"the repository of a module that tells it", "terraform-aws-network", "acme/vpc/aws"},
		{"the repository of a module that does not", "terraform-aws-eks", "acme/eks/aws"},
		{"the latest version", "21.0.3", "acme/eks/aws"},
		{"with a v", "v21.0.3", "acme/eks/aws"},
		{"the beginning of a version", "eks 21.0", "acme/eks/aws"},

		{"nothing", "qwertzuiop", ""},
		{"nothing, of several words", "quertz uiop asdf", ""},
		{"a hash", strings.Repeat("0a", 32), ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			if got := firstOf(t, c, test.query); got != test.want {
				t.Errorf("%q finds %q first, want %q", test.query, got, test.want)
			}
		})
	}
}
