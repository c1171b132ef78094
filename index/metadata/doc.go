// Package metadata reads the registry.hcl in the folders of providers and modules, and knows
// what counts while a file cannot be read.
package metadata
