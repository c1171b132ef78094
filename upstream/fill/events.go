package fill

import (
	"errors"
	"log/slog"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

// An Event is something that a Filler has done, for metrics.
type Event struct {
	Kind     EventKind
	Hostname svchost.Hostname // of the providers and modules
	Reason   string           // of a failure, as Reason returns it
	Bytes    int64            // of a package that was fetched
	Took     time.Duration

	// Namespace and the IDs of its Keys, for events about keys.
	Namespace string
	Keys      []string
}

// An EventKind says what an Event is about.
type EventKind string

const (
	// VersionsFetched: an origin was asked for a list of versions. With a Reason it
	// did not send it.
	VersionsFetched EventKind = "versions_fetched"

	// VersionsStale: a list was used that should have been renewed.
	VersionsStale EventKind = "versions_stale"

	// ReleaseRefused: a release cannot be verified, or its documents not be fetched.
	ReleaseRefused EventKind = "release_refused"

	// PackageFilled: a package came into the tree. With a Reason it did not.
	PackageFilled EventKind = "package_filled"

	// KeyAdded: the origin sends keys for a namespace that it did not send before.
	KeyAdded EventKind = "key_added"

	// SignatureLost: a namespace with known keys has a release that none of them has
	// signed.
	SignatureLost EventKind = "signature_lost"
)

func (f *Filler) observe(e Event, err error) {
	if f.options.Observe == nil || isCanceled(err) {
		return
	}
	if err != nil {
		e.Reason = Reason(err)
	}
	f.options.Observe(e)
}

func (f *Filler) log(level slog.Level, message string, args ...any) {
	if f.options.Logger != nil {
		f.options.Logger.Log(f.ctx, level, message, args...)
	}
}

// Outages are conditions that are logged once, however often they are noticed. The
// zero value is ready for use.
type outages struct {
	mutex   sync.Mutex
	present map[string]bool
}

// begin reports whether an outage is new.
func (o *outages) begin(name string) bool {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.present[name] {
		return false
	}
	if o.present == nil {
		o.present = make(map[string]bool)
	}
	o.present[name] = true
	return true
}

// end reports whether there was an outage.
func (o *outages) end(name string) bool {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	present := o.present[name]
	delete(o.present, name)
	return present
}

// forget ends all outages whose names begin with prefix.
func (o *outages) forget(prefix string) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	maps.DeleteFunc(o.present, func(name string, _ bool) bool { return strings.HasPrefix(name, prefix) })
}

// kindOf is the word for what an address is of.
func kindOf(a address.Address) string {
	if a.IsModule() {
		return "module"
	}
	return "provider"
}

// noteRefresh logs that a list could not be renewed: once for an origin that is
// down, once for a known provider or module that it fails to list, and once for each way
// in which it fails for others. An origin that does not know a name does not fail.
func (f *Filler) noteRefresh(a address.Address, known bool, err error) {
	origin, kind, name := a.Hostname.ForDisplay(), kindOf(a), a.String()
	failing := origin + " " + Reason(err)
	switch {
	case err == nil:
		if f.outages.end(origin) {
			f.log(slog.LevelInfo, "the origin answers again", "origin", origin)
		}
		if f.outages.end(name) {
			f.log(slog.LevelInfo, "the origin lists the "+kind+" again", kind, name)
		}
		f.outages.forget(origin + " ")
	case isCanceled(err), errors.Is(err, upstream.ErrNotFound) && !known:
	case upstream.IsKind(err, upstream.ErrUnavailable, upstream.ErrTimeout):
		if f.outages.begin(origin) {
			f.log(slog.LevelWarn, "the origin does not answer, what is known of it is served", "origin", origin, "error", err.Error())
		}
	case known:
		if f.outages.begin(name) {
			f.log(slog.LevelWarn, "the origin does not list the "+kind+", what it listed before is served", kind, name, "error", err.Error())
		}
	case f.outages.begin(failing): // not by name: clients may request any
		f.log(slog.LevelWarn, "the origin sends no list of a "+kind, kind, name, "error", err.Error())
	}
}

// quiet is how long refusals for the same reason are not logged again: clients may
// request any release, and must not be able to fill the log.
const quiet = 10 * time.Minute

// Refusals count what was refused and not logged. Origins and reasons are few. The
// zero value is ready for use.
type refusals struct {
	mutex sync.Mutex
	all   map[refusalID]*refusal
}

type refusalID struct{ message, origin, reason string }

type refusal struct {
	logged   time.Time
	unlogged int
}

// note reports whether a refusal is to be logged, and how many were not since the
// last one that was.
func (r *refusals) note(id refusalID, now time.Time) (log bool, unlogged int) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	known := r.all[id]
	if known == nil {
		if r.all == nil {
			r.all = make(map[refusalID]*refusal)
		}
		known = new(refusal)
		r.all[id] = known
	}
	if !known.logged.IsZero() && now.Sub(known.logged) < quiet {
		known.unlogged++
		return false, 0
	}
	unlogged, known.unlogged, known.logged = known.unlogged, 0, now
	return true, unlogged
}

// noteRefusal logs what cannot be mirrored, once in a while for each way in which an
// origin fails. That something does not exist is no failure.
func (f *Filler) noteRefusal(message string, a address.Address, err error, details ...any) {
	level := slog.LevelWarn
	log, unlogged := f.refusals.note(refusalID{message, a.Hostname.ForDisplay(), Reason(err)}, time.Now())
	if !log || errors.Is(err, upstream.ErrNotFound) {
		level = slog.LevelDebug
	}
	args := append([]any{kindOf(a), a.String()}, details...)
	args = append(args, "error", err.Error())
	if unlogged > 0 {
		args = append(args, "more_like_it", unlogged)
	}
	f.log(level, message, args...)
}

// noteKeys reports keys of a namespace that the origin sends and the tree did not
// have before, except for the first ones.
func (f *Filler) noteKeys(r *upstream.Release, before namespaceKeys) {
	if !r.Signed() || !before.known() || before.pinned {
		return
	}
	f.outages.end(unsignedOutage(r.Address))
	known := before.ring.Keys()
	var added []string
	for _, key := range r.Keys {
		if !slices.ContainsFunc(known, func(k signing.PublicKey) bool { return k.ID == key.ID }) {
			added = append(added, key.ID)
		}
	}
	if len(added) == 0 {
		return
	}
	f.log(slog.LevelWarn, "the origin has a further key for a namespace: pin its keys if the origin is not to be trusted with that",
		"namespace", namespaceOf(r.Address), "keys", added)
	f.observe(Event{Kind: KeyAdded, Hostname: r.Address.Hostname, Namespace: r.Address.Namespace, Keys: added}, nil)
}

// noteUnsigned reports a release without a signature, once for a namespace that had
// signatures before.
func (f *Filler) noteUnsigned(r *upstream.Release, before namespaceKeys) {
	if r.Signed() || !before.known() || !f.outages.begin(unsignedOutage(r.Address)) {
		return
	}
	f.log(slog.LevelWarn, "a namespace whose releases were signed has one without a signature by a known key",
		"namespace", namespaceOf(r.Address), "provider", r.Address.String(), "version", r.Version)
	f.observe(Event{Kind: SignatureLost, Hostname: r.Address.Hostname, Namespace: r.Address.Namespace}, nil)
}

func namespaceOf(a address.Address) string {
	return path.Join(a.Hostname.ForDisplay(), a.Namespace)
}

func unsignedOutage(a address.Address) string { return "unsigned " + namespaceOf(a) }
