package pull

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
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

// An Event is an action of a Filler, for metrics.
type Event struct {
	Kind     EventKind
	Hostname svchost.Hostname // of the providers and modules
	Reason   string           // of a failure, as Reason returns it
	Bytes    int64            // of a fetched package
	Took     time.Duration

	// Address, Version, Tag, and the commit of the version and of the tag, for events about tags.
	Address           address.Address
	Version, Tag      string
	Commit, TagCommit string // TagCommit is offer.TagGone if there is no such tag any more

	// Namespace and the IDs of its Keys, for events about keys.
	Namespace string
	Keys      []string
}

// An EventKind is the kind of an Event.
type EventKind string

const (
	// VersionsFetched: an origin was asked for a list of versions. With a Reason, the
	// origin did not send it.
	VersionsFetched EventKind = "versions_fetched"

	// VersionsStale: a list was used although it should have been renewed.
	VersionsStale EventKind = "versions_stale"

	// ReleaseRefused: a release cannot be verified, or its documents cannot be fetched.
	ReleaseRefused EventKind = "release_refused"

	// PackageFilled: a package was added to the tree. With a Reason, it was not.
	PackageFilled EventKind = "package_filled"

	// KeyAdded: the origin sends keys for a namespace that it has not sent before.
	KeyAdded EventKind = "key_added"

	// SignatureLost: a namespace with known keys has a release that none of the keys
	// has signed.
	SignatureLost EventKind = "signature_lost"

	// TagMoved: the tag of a version that was fetched has been moved or deleted, or is back where
	// it was. The version stays as it was.
	TagMoved EventKind = "tag_moved"
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

// explained returns what the log has of an error of an origin. Clients do not get git's message.
func explained(err error) []any {
	if message := upstream.GitMessage(err); message != "" {
		return []any{"error", err.Error(), "git", message}
	}
	return []any{"error", err.Error()}
}

// outages are conditions that are logged once, however often they occur. The zero value
// is ready for use.
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

// originOutages are the outages of origins. An origin that fails for some providers or modules alone is told
// from one that is down: it lists others meanwhile. The zero value is ready for use.
type originOutages struct {
	mutex   sync.Mutex
	present map[string]*originOutage // by origin
	alone   map[string]bool          // known providers and modules that fail alone
}

type originOutage struct {
	failing  map[string]bool // known providers and modules
	answered bool            // it has listed another one since
}

// failed notes that an origin did not answer for a provider or module. It reports whether an outage of the
// origin begins, or the provider or module turns out to fail alone.
func (o *originOutages) failed(origin, name string, known bool) (begins, alone bool) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.alone[name] {
		return false, false
	}
	now := o.present[origin]
	if now != nil && now.answered && now.failing[name] {
		if o.alone == nil {
			o.alone = make(map[string]bool)
		}
		o.alone[name] = true
		delete(o.present, origin)
		return false, true
	}
	if begins = now == nil || now.answered; begins {
		if o.present == nil {
			o.present = make(map[string]*originOutage)
		}
		now = &originOutage{failing: make(map[string]bool)}
		o.present[origin] = now
	}
	if known {
		now.failing[name] = true
	}
	return begins, false
}

// succeeded notes that an origin has listed a provider or module, and reports whether that ends an outage.
func (o *originOutages) succeeded(origin, name string) (ends bool) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	delete(o.alone, name)
	now := o.present[origin]
	if now == nil {
		return false
	}
	if ends = now.failing[name] || len(now.failing) == 0; ends {
		delete(o.present, origin)
	}
	now.answered = true
	return ends
}

// kindOf returns the word for an address: provider or module.
func kindOf(a address.Address) string {
	if a.IsModule() {
		return "module"
	}
	return "provider"
}

// noteRefresh logs that a list could not be renewed: once for an origin that is down, once for
// each kind of failure of this registry's disk or store, which is no fault of the origin, once
// for a known provider or module that the origin fails to list, or for which it fails alone, and
// once for each kind of failure for others. An unknown name is not a failure.
func (f *Filler) noteRefresh(origin string, a address.Address, known bool, err error) {
	kind, name := kindOf(a), a.String()
	failing := origin + " " + Reason(err)
	switch {
	case err == nil:
		if f.originOutages.succeeded(origin, name) {
			f.log(slog.LevelInfo, "the origin answers again", "origin", origin)
		}
		if f.outages.end(name) {
			f.log(slog.LevelInfo, "the origin lists the "+kind+" again", kind, name)
		}
		f.outages.forget(origin + " ")
	case isCanceled(err), errors.Is(err, upstream.ErrNotFound) && !known:
	case upstream.IsKind(err, ErrUnread, tree.ErrDiskFull, tree.ErrNotWritable):
		if f.outages.begin(failing) {
			f.log(slog.LevelWarn, "lists of versions cannot be renewed because of the disk or store of this registry", append(explained(err), kind, name)...)
		}
	case upstream.IsKind(err, upstream.ErrUnavailable, upstream.ErrTimeout):
		begins, alone := f.originOutages.failed(origin, name, known)
		switch {
		case begins:
			f.log(slog.LevelWarn, "the origin does not answer, its last known answers are served", append(explained(err), "origin", origin)...)
		case alone:
			f.noteUnlisted(a, err)
		}
	case known:
		f.noteUnlisted(a, err)
	case f.outages.begin(failing): // not by name, since clients may request any name
		f.log(slog.LevelWarn, "the origin sends no list of a "+kind, append(explained(err), kind, name)...)
	}
}

// noteUnlisted logs once that an origin fails to list a known provider or module.
func (f *Filler) noteUnlisted(a address.Address, err error) {
	kind, name := kindOf(a), a.String()
	if f.outages.begin(name) {
		f.log(slog.LevelWarn, "the origin does not list the "+kind+", its last list is served", append(explained(err), kind, name)...)
	}
}

// quiet is the time for which refusals for the same reason are not logged again:
// clients may request any release, and must not be able to fill the log.
const quiet = 10 * time.Minute

// refusals count refusals that were not logged. There are few origins and reasons. The
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

// note reports whether to log a refusal, and how many have not been logged since the
// last logged one.
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

// noteRefusal logs that something cannot be mirrored, once in a while for each kind of
// failure of an origin. A missing release is not a failure.
func (f *Filler) noteRefusal(message string, a address.Address, err error, details ...any) {
	level := slog.LevelWarn
	log, unlogged := f.refusals.note(refusalID{message, a.Hostname.ForDisplay(), Reason(err)}, time.Now())
	if !log || errors.Is(err, upstream.ErrNotFound) {
		level = slog.LevelDebug
	}
	args := append([]any{kindOf(a), a.String()}, details...)
	args = append(args, explained(err)...)
	if unlogged > 0 {
		args = append(args, "more_like_it", unlogged)
	}
	f.log(level, message, args...)
}

// notePanic reports a fault of the Filler itself.
func (f *Filler) notePanic(err error, stack []byte) {
	f.log(slog.LevelError, "fetching from an origin panicked, please report it", "error", err.Error(), "stack", string(stack))
}

// noteKeys reports keys of a namespace that the origin sends and the tree did not have,
// except for the first ones.
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
