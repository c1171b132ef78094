// Package queue decides in which order archives are read, and when what has been read is
// committed. It does not know what an archive is.
package queue
