// Package registryhcl reads and edits registry.hcl, the file in which the operator says
// something about a provider or module:
//
//	description = "A network with private and public subnets"
//	source      = "https://git.example.com/acme/terraform-aws-network"
//	owner       = "Platform team"
//
//	deprecated "< 2.0.0" {
//	  reason = "use 2.x"
//	}
//
//	withdrawn "1.4.0" {
//	  reason = "deletes the route table"
//	  link   = "https://status.example.com/42"
//	}
//
//	git {
//	  url    = "https://git.example.com/acme/modules.git"
//	  folder = "network"
//	  tags   = "network/v{version}"
//	}
//
// Nothing in it is evaluated. The parts of a file that can be read count, and Parse reports
// the rest: an operator who withdraws a version has to learn of a mistake that keeps the
// version from being withdrawn. Editing changes only the lines of the notice, since people
// keep comments in the file.
package registryhcl
