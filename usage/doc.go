// Package usage counts downloads by day, address, version and platform.
//
// A Counter has the counts of all instances that serve a tree. Each instance writes what it has
// counted every minute, as a segment (segment.go) in a folder that the instances share
// (Storage), and reads the segments of the others. The segments of a day are merged now and then
// (merge.go). A count is the sum of the segments, so each of them must be added once and no more,
// whatever is killed, hangs or is read again: a merged segment names those that it replaces, and
// they count no longer, whether or not they have been deleted.
//
// The counts in memory are in counts.go, with the limits beyond which users are not told apart.
// What the API, the commands and the pages are told of them is in describe.go.
//
// Nothing is counted about a client, unless the names of users or groups are asked for. An IP
// address never comes here.
package usage
