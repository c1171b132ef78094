package fill

import (
	"time"

	svchost "github.com/hashicorp/terraform-svchost"
)

// An Event is something that a Filler has done, for metrics.
type Event struct {
	Kind     EventKind
	Hostname svchost.Hostname // whose providers it is about
	Reason   string           // of a failure, as Reason gives it
	Bytes    int64            // of a package that has come in
	Took     time.Duration

	// Namespace that an event about keys is of, and the IDs of those.
	Namespace string
	Keys      []string
}

// An EventKind is what an Event is of.
type EventKind string

const (
	// VersionsFetched: an origin was asked for a list of versions. With a Reason
	// it did not give it.
	VersionsFetched EventKind = "versions_fetched"

	// VersionsStale: a list was used that is older than it should be.
	VersionsStale EventKind = "versions_stale"

	// ReleaseRefused: what vouches for a release did not come in, or does not.
	ReleaseRefused EventKind = "release_refused"

	// PackageFilled: a package came in. With a Reason it did not.
	PackageFilled EventKind = "package_filled"

	// KeyAdded: the origin sends keys for a namespace that it did not send before.
	KeyAdded EventKind = "key_added"

	// SignatureLost: a namespace of which keys are known has a release that none of
	// them has signed.
	SignatureLost EventKind = "signature_lost"
)

func (f *Filler) observe(e Event, err error) {
	if f.options.Observe == nil || givenUp(err) {
		return
	}
	if err != nil {
		e.Reason = Reason(err)
	}
	f.options.Observe(e)
}
