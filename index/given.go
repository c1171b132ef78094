package index

import (
	"github.com/caddy-terraform/caddy-terraform-registry/index/queue"
	"github.com/caddy-terraform/caddy-terraform-registry/index/report"
)

// What a snapshot gives out has types in packages below, which know nothing of scans. Users
// of the index find all of it here.
type (
	// A Report has the results for all files of a tree.
	Report = report.Report

	// An Offer is a version that clients can install.
	Offer = report.Offer

	// A Problem is a file or version that is not offered, with the reason.
	Problem = report.Problem

	// A Selection names the archives that a request waits for.
	Selection = queue.Selection

	// Progress says how many of the unknown archives have been read.
	Progress = queue.Progress
)

// Kinds of Offer.
const (
	KindProvider = report.KindProvider
	KindModule   = report.KindModule
)
