package report

import (
	"maps"
	"slices"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// CopyRest is how long a file must stay unchanged before it counts as damaged: a file that
// is copied slowly under its final name cannot be read until it is complete.
const CopyRest = 5 * time.Second

// unfinishedReasons are the reasons that a report gives for incomplete files.
var unfinishedReasons = []tree.Reason{tree.BadArchive, tree.BadChecksums, tree.BadKeys, tree.BadManifest, tree.BadMetadata, tree.BadSignature, tree.Empty, tree.NoConfiguration, tree.NotListed}

// MayPass reports whether a problem with a file may pass by itself, because the
// file is still being written. The clock of a file server may be ahead.
func MayPass(reason tree.Reason, modified, now time.Time) bool {
	return reason == tree.BeingWritten || slices.Contains(unfinishedReasons, reason) && now.Sub(modified).Abs() < CopyRest
}

// Unfinished are the files that are withheld and may still be being written, by path.
type Unfinished map[string]bool

// Next returns the new problems between two scans, and the unfinished files after the second.
// A file that mayPass says may still be being written is a problem only if it stays in this
// state: began has such files when they are found. A file that cannot be read at the moment is
// unread, and no problem.
func (u Unfinished) Next(was, is []Problem, mayPass func(Problem) bool) (next Unfinished, problems, unread, began []Problem) {
	next = maps.Clone(u)
	if next == nil {
		next = make(Unfinished)
	}
	before := make(map[Problem]bool, len(was))
	for _, p := range was {
		before[p] = true
		delete(next, p.Path)
	}
	for _, p := range is {
		switch {
		case before[p] && !u[p.Path]:
		case p.Passes():
			unread = append(unread, p)
		case !mayPass(p):
			problems = append(problems, p)
		default:
			next[p.Path] = true
			if !u[p.Path] {
				began = append(began, p)
			}
		}
	}
	return next, problems, unread, began
}
