// Package metadata reads the registry.hcl in the folders of providers and modules. While a file
// cannot be read, its earlier content counts.
package metadata
