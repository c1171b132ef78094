// Package clientconfig writes the configuration with which Terraform and OpenTofu use a
// registry: blocks of their CLI configuration, which is in ~/.terraformrc or ~/.tofurc.
// Both the command and the pages use it.
package clientconfig
