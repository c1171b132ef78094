package e2e_test

import "strings"

// greeting returns a configuration that needs one provider and makes it greet
// the world. The greeting is the output text.
func greeting(source, version string) string {
	local := lastElement(source)
	resource := strings.ReplaceAll(local, "-", "_") + "_greeting"
	return `
terraform {
  required_providers {
    ` + local + ` = {
      source  = "` + source + `"
      version = "` + version + `"
    }
  }
}

resource "` + resource + `" "world" {
  provider = ` + local + `
  name     = "world"
}

output "text" {
  value = ` + resource + `.world.text
}
`
}

// calling returns a configuration that calls one module. The output of the
// module is the output text.
func calling(source, version string) string {
	return `
module "it" {
  source  = "` + source + `"
  version = "` + version + `"
}

output "text" {
  value = module.it.text
}
`
}
