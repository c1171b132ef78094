// Package content reads the documentation of modules and providers on request: variables and
// outputs of a module, files of its package, and the pages of a provider's documentation. What
// has been read is kept up to a number of bytes, and few packages are read at the same time.
package content
