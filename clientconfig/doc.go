// Package clientconfig writes the configuration with which Terraform and OpenTofu use a
// registry: blocks of their CLI configuration, which is in ~/.terraformrc or ~/.tofurc.
// Both the command and the pages use it. It also reads what such a configuration says of
// where packages come from, and of tokens.
package clientconfig
