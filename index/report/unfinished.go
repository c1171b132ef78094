package report

import (
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
