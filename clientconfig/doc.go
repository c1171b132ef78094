// Package clientconfig writes what Terraform and OpenTofu have to be told to use a
// registry: blocks of their CLI configuration, which is in ~/.terraformrc or ~/.tofurc.
// It is the one place where the command and the pages get them from.
package clientconfig
