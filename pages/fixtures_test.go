package pages

import (
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

func testIdentity() *identity {
	return &identity{Name: "registry.example.com", Hostname: "registry.example.com"}
}

// richTree is siteTree with a module and a provider that have something for every part of a page.
func richTree(t testing.TB) *indextest.Tree {
	files := siteTree(t)
	files.Write("modules/acme/net/aws/1.0.0/main.tf", "variable \"name\" {}\noutput \"nat_ips\" { value = 1 }\nresource \"aws_vpc\" \"old\" {}\n")
	dir := "modules/acme/net/aws/1.1.0/"
	files.Write(dir+"main.tf", `
terraform {
  required_version = ">= 1.3"
  required_providers {
    aws  = { source = "hashicorp/aws", version = ">= 5.0", configuration_aliases = [aws.peer] }
    null = { source = "hashicorp/null" }
    tls  = { source = "hashicorp/tls" }
    demo = { source = "registry.example.com/acme/demo" }
  }
}
module "labels" {
  source  = "registry.example.com/acme/labels/null"
  version = "~> 1.0"
}
module "zone" {
  source = "./modules/zone"
}
resource "aws_vpc" "this" {}
resource "demo_thing" "one" {}
resource "demo_thing" "two" {}
data "aws_availability_zones" "available" {}
`)
	files.Write(dir+"variables.tf", `
variable "name" {
  type        = string
  description = "Prefix of **all** names."
  validation {
    condition     = true
    error_message = "The name must have 1 to 20 letters."
  }
}
variable "subnets" {
  default  = {}
  nullable = false
  type = map(object({
    newbits = number
    routes = optional(list(object({
      destination = string
    })), [])
  }))
}
variable "secret" {
  sensitive = true
  ephemeral = true
  default   = ""
}
variable "classic" {
  default    = false
  deprecated = "Leave it out."
}
variable "tags" {
  type    = map(string)
  default = { "managed-by" = "terraform", "cost-center" = "4711", "environment" = "production" }
}
variable "policy" {
  default = "`+strings.Repeat("Allow ", 300)+`"
}
`)
	files.Write(dir+"outputs.tf", "output \"id\" {\n  description = \"ID of it.\"\n  value = 1\n}\noutput \"token\" {\n  sensitive = true\n  deprecated = \"Use id.\"\n  value = 1\n}\n")
	files.Write(dir+"README.md", everyElement)
	files.Write(dir+"CHANGELOG.md", "# Changes\n\n## 1.1.0\n\nMore.\n\n## 1.0.0\n\nFirst.\n")
	files.Write(dir+"modules/zone/main.tf", "variable \"zone\" {}\n").Write(dir+"modules/zone/README.md", "# Zone\n\nOf one.\n")
	files.Write(dir+"examples/full/main.tf", "module \"net\" {\n  source = \"../..\"\n}\n")
	files.Write("modules/acme/net/aws/1.2.0/main.tf", "variable \"name\" {}\n").Write("modules/acme/net/aws/1.2.0/broken.tf", "variable \"x\" {\n")
	files.Write("modules/acme/net/google/1.0.0/main.tf", "# for another system")
	files.Provider("acme/rich", "1.0.0", "linux_amd64").Docs(
		"index.md", everyElement, "guides/empty.md", "---\npage_title: Nothing\n---\n", "resources/mast.md", "---\nsubcategory: Hardware\n---\n# mast\n", "data-sources/mast.md", "---\nsubcategory: Hardware\n---\n# mast\n")
	return files
}

// everyElement is a text with every kind of content.
const everyElement = `# Title

~> slow

> [!TIP]
> x

#### Deep

- [x] a
- [ ] b

| | B |
|-|-|
| a | b |

` + "```terraform\na = 1\n```" + `

<h2>Later</h2>

<details><summary>More</summary>

1. one

</details>

[![](https://example.com/b.svg)](https://example.com) <a name="x"></a>[x](#x)[^1]

[^1]: note
`
