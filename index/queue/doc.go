// Package queue decides in which order archives are read, and when what has been read is
// committed, and in which order a scan lists folders. It knows neither archives nor folders.
package queue
