package upstream

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
