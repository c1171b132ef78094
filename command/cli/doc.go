// Package cli is what the commands share: flags of a tree, errors with exit statuses, and
// output that fits a terminal or is JSON.
package cli
