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
// Nothing in it is evaluated. What can be read of a file counts, and Parse reports the
// rest: whoever withdraws a version has to learn that a mistake keeps it from being
// withdrawn. Editing changes the lines of the notice alone, since people keep comments in
// the file.
package registryhcl
