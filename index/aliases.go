package index

import (
	"github.com/caddy-terraform/caddy-terraform-registry/index/changes"
	"github.com/caddy-terraform/caddy-terraform-registry/index/ledger"
	"github.com/caddy-terraform/caddy-terraform-registry/index/memo"
	"github.com/caddy-terraform/caddy-terraform-registry/index/offer"
	"github.com/caddy-terraform/caddy-terraform-registry/index/queue"
	"github.com/caddy-terraform/caddy-terraform-registry/index/report"
	"github.com/caddy-terraform/caddy-terraform-registry/index/scanlog"
)

// The types of a snapshot's content are in packages below, which know nothing of scans. Users
// of the index find all of them here.
type (
	// A Report has the results for all files of a tree.
	Report = report.Report

	// An Offer is a version that clients can install.
	Offer = report.Offer

	// A Problem is a file or version that is not offered, with the reason.
	Problem = report.Problem

	// A Provider has all releases that are offered under a provider address.
	Provider = offer.Provider

	// Facts are what is known of a version of a provider or of a module.
	Facts = offer.Facts

	// A Release is a verified version of a provider.
	Release = offer.Release

	// A Package is a release for one platform.
	Package = offer.Package

	// A Signature says who signed the SHA256SUMS of a release that clients get.
	Signature = offer.Signature

	// A Module has all versions that are offered under a module address.
	Module = offer.Module

	// A ModuleVersion is a verified version of a module.
	ModuleVersion = offer.ModuleVersion

	// A WithdrawnVersion is a version that lies in the tree and is offered to no client.
	WithdrawnVersion = offer.WithdrawnVersion

	// ChangedBytes says that the bytes that clients download of a version have changed.
	ChangedBytes = offer.ChangedBytes

	// A ChangedVersion is an offered version whose bytes have changed.
	ChangedVersion = offer.ChangedVersion

	// A File is a file that clients download.
	File = offer.File

	// An OpenFile is an open File with its verified content.
	OpenFile = offer.OpenFile

	// SignedChecksums are the registry's own documents for a release.
	SignedChecksums = offer.SignedChecksums

	// A Signer signs the releases that publishers did not sign.
	Signer = offer.Signer

	// Digests remembers the digests of packages that were read outside of scans.
	Digests = memo.Digests

	// A Ledger has on record what clients were offered before.
	Ledger = ledger.Ledger

	// A Change numbers the calls of Index.Changed: a later call has a larger number.
	Change = changes.Number

	// A Selection names the archives that a request waits for.
	Selection = queue.Selection

	// Stats counts the work of an Index since it was created.
	Stats = scanlog.Stats

	// Progress says how many of the unknown archives have been read.
	Progress = queue.Progress
)

// Kinds of Offer.
const (
	KindProvider = report.KindProvider
	KindModule   = report.KindModule
)

// Authors of signatures.
const (
	NotSigned   = offer.NotSigned
	ByRegistry  = offer.ByRegistry
	ByPublisher = offer.ByPublisher
)
