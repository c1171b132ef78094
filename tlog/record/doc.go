// Package record enters the offers of a registry in a transparency log.
//
// A Recorder is told of each snapshot of a tree. It compares the folders with those that it
// has entered, makes leaves of what it does not know (leaves.go), and adds them to the log. It
// works beside the registry: a log that is slow or that fails keeps nothing from being
// offered, and what could not be entered is tried again.
package record
