// Package offer has what a registry offers: providers, releases and modules, the files of
// them, and the documents that clients get. It does not know how these are found, or why
// others are withheld.
package offer
