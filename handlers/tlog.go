package handlers

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
)

// serveLog answers a request to the transparency log, for a path below tlog/:
//
//	checkpoint                                                       who may read anything
//	key                                                              who may read anything
//	continues                                                        who may read anything
//	consistency?from=N                                               who may read anything
//	tile/…                                                           who may read everything
//	lookup/modules/[:hostname/]:namespace/:name/:system/:version     who may read the module
//	lookup/providers/[:hostname/]:namespace/:type/:version           who may read the provider
//
// Tiles have the names of everything. Of versions that a user may not read, the others tell
// only how many entries there are: hashes in a log are of texts that cannot be guessed. The
// rules decide before anything is looked up, so the time of an answer tells nothing either.
func (g *Registry) serveLog(w http.ResponseWriter, r *request, path string) error {
	r.Kind = KindTlog
	if rest, ok := strings.CutPrefix(path, "lookup/"); ok {
		return g.serveLookup(w, r, rest)
	}
	tile := strings.HasPrefix(path, "tile/")
	if err := g.authorizeLog(r, tile); err != nil {
		return err
	}
	l := g.Log()
	if l == nil {
		return errNoLog
	}
	c := Content{Type: textType, Caching: r.keptFor("max-age=2")}
	var err error
	switch {
	case path == "checkpoint":
		c.Body = l.Head().Signed
	case path == "key":
		for _, key := range l.Public() {
			c.Body = fmt.Appendln(c.Body, key.Line)
		}
		c.Caching = r.revalidate()
	case path == "continues":
		c.Body, err = succession(r.Context(), l)
	case path == "consistency":
		c.Body, err = consistency(r.Context(), l, r.URL.RawQuery)
	case tile:
		c.Type, c.Caching = "application/octet-stream", r.keptFor(tileLife)
		c.Body, err = tileAt(r.Context(), l, path)
	default:
		return errNotFound
	}
	if err != nil {
		return err
	}
	return r.writeTagged(w, c)
}

const textType = "text/plain; charset=utf-8"

// tileLife is how long a cache gives a tile without asking. In one log a tile never changes, but
// a log that is begun in place of another one has other tiles at the same URLs. Those who find
// that they do not fit try again later.
const tileLife = "max-age=3600"

var (
	errNoLog        = unavailable("the transparency log cannot be read at the moment: try again in a moment, and tell the registry's operator if it goes on", nil)
	errNotEntered   = unavailable("the version is offered and not in the transparency log yet: try again in a minute, and tell the registry's operator if it goes on", nil)
	errNoSuccession = fail(http.StatusNotFound, "the transparency log was not begun in place of another one")
	errNoTile       = fail(http.StatusNotFound, "the transparency log has no such tile: see its checkpoint for its size")
)

func logUnread(err error) error { return unavailable(errNoLog.Error(), err) }

// authorizeLog asks the rules whether a request may read something of everything, or
// everything. The answer does not depend on what there is.
func (g *Registry) authorizeLog(r *request, everything bool) error {
	if g.open {
		return nil
	}
	allows := g.rules.AllowsAny
	if everything {
		allows = g.rules.AllowsAll
	}
	if allows(access.Subject{}, access.Read) {
		return nil
	}
	r.target.private = true
	subject, err := g.subject(r)
	switch {
	case err != nil:
		return err
	case allows(subject, access.Read):
		return nil
	case !subject.Anonymous():
		return errNotFound
	}
	return g.unauthorized(r, "the transparency log")
}

// succession returns the first entry of a log that was begun in place of another one.
func succession(ctx context.Context, l *tlog.Log) ([]byte, error) {
	found, err := l.Succession(ctx, l.Head())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errNoSuccession
	case err != nil:
		return nil, logUnread(err)
	}
	return []byte(found.String()), nil
}

// tileAt returns the content of a tile or bundle.
func tileAt(ctx context.Context, l *tlog.Log, path string) ([]byte, error) {
	t, err := tlog.ParseTilePath(path)
	if err != nil {
		return nil, errNoTile
	}
	h, err := l.AtLeast(ctx, tlog.SizeWith(t))
	if err != nil {
		return nil, logUnread(err)
	}
	content, err := l.Tile(ctx, h, t)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errNoTile
	case err != nil:
		return nil, logUnread(err)
	}
	return content, nil
}

// consistency returns the proof that the log begins with the entries of an earlier checkpoint,
// and the newest checkpoint.
func consistency(ctx context.Context, l *tlog.Log, query string) ([]byte, error) {
	values, err := url.ParseQuery(query)
	from, number := int64(0), values.Get("from")
	if err == nil {
		from, err = strconv.ParseInt(number, 10, 64)
	}
	if err != nil || from < 0 {
		return nil, fail(http.StatusBadRequest, "give the size of an earlier checkpoint: consistency?from=SIZE")
	}
	h, err := l.AtLeast(ctx, from)
	if err != nil {
		return nil, logUnread(err)
	}
	if from > h.Size {
		return nil, fail(http.StatusNotFound, "the transparency log has %d entries here: another instance may have more, or it has lost some", h.Size)
	}
	c, err := l.Consistency(ctx, h, from)
	if err != nil {
		return nil, logUnread(err)
	}
	return []byte(c.String() + "\n" + string(h.Signed)), nil
}

// serveLookup answers with all that the log has of one version.
func (g *Registry) serveLookup(w http.ResponseWriter, r *request, path string) error {
	r.Kind = KindTlogLookup
	var array [6]string
	s, err := split(path, array[:0])
	if err != nil {
		return err
	}
	var a address.Address
	switch n := len(s); {
	case s[0] == "modules" && (n == 5 || n == 6):
		host := ""
		if n == 6 {
			host = s[1]
		}
		a, err = address.ParseModule(host, s[n-4], s[n-3], s[n-2])
	case s[0] == "providers" && (n == 4 || n == 5):
		host := ""
		if n == 5 {
			host = s[1]
		}
		a, err = address.ParseProvider(host, s[n-3], s[n-2])
	default:
		return errNotFound
	}
	if err != nil {
		return fail(http.StatusNotFound, "that is not the address of a provider or module: use lookup/providers/NAMESPACE/TYPE/VERSION or lookup/modules/NAMESPACE/NAME/SYSTEM/VERSION")
	}
	r.target = g.targetOf(r.self, a)
	r.target.version = s[len(s)-1]
	if err := g.authorize(r); err != nil {
		return err
	}
	return g.lookUp(w, r, func() error { return g.answerLookup(w, r) })
}

// answerLookup answers a look-up from a snapshot. An answer without a SHA256SUMS says that the
// registry serves none, so there is no answer while the release has not been read.
func (g *Registry) answerLookup(w http.ResponseWriter, r *request) error {
	l := g.Log()
	if l == nil {
		return errNoLog
	}
	t := &r.target
	found, err := l.Lookup(r.Context(), l.Head(), t.version, t.entered()...)
	if err != nil {
		return logUnread(err)
	}
	if len(found.Entries) == 0 {
		if t.offers(r.snapshot) {
			return errNotEntered
		}
		return g.pendingOrNotFound(w, r)
	}
	r.about(t.resource().Address)
	r.Version = t.version
	if !t.IsModule() && g.unknown(r) {
		return errPending
	}
	if p := r.snapshot.Provider(t.place); p.Release(t.version) != nil {
		if f := p.File(address.ChecksumsName(t.Name, t.version)); f != nil {
			found.Shasums = f.SHA256.String()
		}
	} else if !t.IsModule() && r.pending() {
		return errPending
	}
	return r.writeTagged(w, Content{Type: textType, Caching: r.revalidate(), Body: []byte(found.String())})
}

// entered returns the addresses under which the transparency log may have the target. If files
// under two of them have a version, those of the last address are offered.
func (t *target) entered() []address.Address {
	addresses := []address.Address{t.resource().Address}
	if t.place.Merged { // the hostname is not configured, or was not yet
		addresses = append(addresses, t.place.Address)
	}
	return addresses
}

// offers reports whether a snapshot offers the version.
func (t *target) offers(s *index.Snapshot) bool {
	return s.Provider(t.place).Release(t.version) != nil || s.Module(t.place).Version(t.version) != nil
}

// writeTagged answers with content and an ETag made of it.
func (r *request) writeTagged(w http.ResponseWriter, c Content) error {
	c.ETag = `"` + shortHash(string(c.Body)) + `"`
	if c.NotModified(w, r.Request) {
		r.answered(r.Request, http.StatusNotModified, 0)
		return nil
	}
	return r.write(w, http.StatusOK, c)
}

// Appearance returns the first entry of a version in the transparency log, for an address that
// the user may see, and the path of its proof, if it is public. ok is false without such an
// entry.
func (v *View) Appearance(a address.Address, version string) (first tlog.Appearance, proof string, ok bool) {
	g := v.registry
	if g.Log == nil {
		return first, "", false
	}
	l := g.Log()
	if l == nil {
		return first, "", false
	}
	t := v.targetOf(a)
	for _, a := range slices.Backward(t.entered()) {
		if first, ok = l.Appearance(a, version); ok {
			return first, v.proofPath(t.resource().Address, version), true
		}
	}
	return first, "", false
}

// proofPath returns the path at which everybody finds the entries of a version with their
// proofs. It is empty if they are not public: a browser that has signed in has no credentials
// for them.
func (v *View) proofPath(a address.Address, version string) string {
	if !v.PublicUnder(a.Hostname) {
		return ""
	}
	kind := "providers"
	if a.IsModule() {
		kind = "modules"
	}
	return v.registry.base + "/tlog/lookup/" + kind + "/" + a.String() + "/" + url.PathEscape(version)
}

// SeesLog reports whether there is a transparency log, and the user may read anything, and so
// its checkpoint.
func (v *View) SeesLog() bool {
	g := v.registry
	if g.Log == nil || g.open {
		return g.Log != nil
	}
	subject, err := v.Subject()
	return err == nil && g.rules.AllowsAny(subject, access.Read)
}

// A SeenLog is the transparency log as a user may see it.
type SeenLog struct {
	tlog.Checkpoint
	Keys []tlog.PublicKey // which sign, the newest first

	// Path is the path of the checkpoint and all else of the log; empty: it is not public.
	Path string

	// Whole reports that the user may read everything, and so all entries.
	Whole bool

	// Looked is the number of the latest entries. Latest are those of them that the user may
	// see, the latest first.
	Looked int64
	Latest []SeenEntry
}

// A SeenEntry is an entry of the log about something that the user may see.
type SeenEntry struct {
	tlog.NumberedLeaf
	Proof string // the path of its proof; empty: it is not public
}

// latestEntries is how many entries of a log are looked at.
const latestEntries = 256

// Log returns the transparency log, for who may read anything. The error is the answer for all
// others, and the same whether there is a log or not.
//
// Of entries about something else than the user may read, it tells what the numbers, times and
// proofs of the others and the size of the log tell: how many there are between two others.
// The same entries are read for all users, and the rules decide by their addresses alone: so
// its time tells nothing.
func (v *View) Log() (seen SeenLog, err error) {
	g, r := v.registry, v.request
	r.target = target{}
	if err := g.authorizeLog(r, false); err != nil {
		return seen, err
	}
	if g.Log == nil {
		return seen, errNotFound
	}
	l := g.Log()
	if l == nil {
		return seen, errNoLog
	}
	var subject access.Subject
	if !g.open {
		if subject, err = g.subject(r); err != nil {
			return seen, err
		}
	}
	h := l.Head()
	seen = SeenLog{Checkpoint: h.Checkpoint, Keys: l.Public(), Looked: min(h.Size, latestEntries), Whole: g.open || g.rules.AllowsAll(subject, access.Read)}
	if g.open || g.rules.AllowsAny(access.Subject{}, access.Read) {
		seen.Path = g.base + "/tlog"
	}
	latest, err := l.Latest(r.Context(), h, latestEntries)
	if err != nil {
		return seen, logUnread(err)
	}
	for _, leaf := range latest {
		// Not named: the name in the request would turn a mirrored address into a hosted one.
		t := g.located(leaf.Address)
		if seen.Whole || g.rules.Decide(subject, access.Read, t.resource()).Allowed {
			seen.Latest = append(seen.Latest, SeenEntry{leaf, v.proofPath(leaf.Address, leaf.Version)})
		}
	}
	return seen, nil
}
