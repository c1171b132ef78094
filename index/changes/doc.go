// Package changes knows what may have changed in a tree since the last scan, and which changes of
// this process other instances have not been told of.
package changes
