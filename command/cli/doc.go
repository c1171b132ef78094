// Package cli has the parts that all commands share: flags of a tree, errors with exit
// statuses, progress, and output that fits a terminal or is JSON.
package cli
