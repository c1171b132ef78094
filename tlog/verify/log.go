package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"golang.org/x/mod/sumdb/note"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
)

// Bounds of answers, in bytes.
const (
	maxCheckpoint  = 64 << 10
	maxConsistency = 64 << 10
	maxLookup      = 8 << 20
)

// A Log is a transparency log of a registry, as its readers see it.
type Log struct {
	client *Client
	base   *url.URL // ends in a slash
	hosts  []svchost.Hostname
	pins   []Pin
	trust  []string // keys that the user has named, of any log

	foundBy  []string // hosts whose discovery led to it, and whose log the user has named
	update   bool     // the user accepts another key, and a log that continues another one
	replaces []string // names of the logs that it continues, and that the repository has seen

	once     sync.Once
	beginErr error
	origin   string
	pin      *Pin // nil: this is the first use
	keys     []string
	taken    []string        // further keys, which an update takes over
	verify   []note.Verifier // of both
	head     seen

	mu      sync.Mutex
	seen    map[tlog.Checkpoint][]byte // the signed checkpoints of this run
	raised  *Alarm                     // the first one
	omitted *Alarm                     // raised if there is no other one
}

// seen is a checkpoint with its signatures.
type seen struct {
	tlog.Checkpoint
	signed []byte
}

// URL is where the log is.
func (l *Log) URL() string { return l.base.String() }

func (l *Log) question(path string, limit int64) question {
	u := l.base.JoinPath(path)
	return question{url: u, hosts: l.hosts, limit: limit}
}

// begin reads the newest checkpoint and finds the keys, once.
func (l *Log) begin(ctx context.Context) error {
	l.once.Do(func() { l.beginErr = l.read(ctx) })
	return l.beginErr
}

func (l *Log) read(ctx context.Context) error {
	l.seen = make(map[tlog.Checkpoint][]byte)
	before := l.seenHere()
	q := l.question("checkpoint", maxCheckpoint)
	a, err := l.client.ask(ctx, q)
	switch {
	case err != nil:
		return err
	case a.status != http.StatusOK && len(before) > 0:
		return l.alarm(Gone, before[0].Signed, nil, "it answers %d %s where the log was", a.status, http.StatusText(a.status))
	case a.status != http.StatusOK:
		return unanswered(q.url, "it has no checkpoint of a log here: it answered %d", a.status)
	}
	origin, _, _ := strings.Cut(string(a.body), "\n")
	if err := tlog.CheckOrigin(origin); err != nil || len(origin) > maxKeyLine {
		return unanswered(q.url, "its answer is no checkpoint of a log")
	}
	l.origin, l.pin = origin, pinOf(l.pins, origin)
	for _, p := range before {
		if p.Origin == origin {
			continue
		}
		says := l.continues(ctx, p)
		if says != "" && l.update {
			l.replaces = append(l.replaces, p.Origin)
			continue
		}
		return l.alarm(Renamed, p.Signed, a.body, "the log here was %s, and is %s%s", p.Origin, shortened(origin, maxReason), says)
	}
	if err := l.findKeys(ctx); err != nil {
		return err
	}
	c, err := l.open(a.body, l.pinned())
	if err != nil {
		return err
	}
	l.head = seen{c, a.body}
	return l.takeKeys(ctx, a.body)
}

// seenHere returns the pins of the logs that were here: at its URL, or where the discovery of
// a host led that leads here now.
func (l *Log) seenHere() (before []*Pin) {
	for i := range l.pins {
		p := &l.pins[i]
		if p.URL == l.URL() || slices.ContainsFunc(l.foundBy, func(host string) bool { return slices.Contains(p.Hosts, host) }) {
			before = append(before, p)
		}
	}
	return before
}

// pinned returns the checkpoint that the repository has; nil: none.
func (l *Log) pinned() []byte {
	if l.pin == nil {
		return nil
	}
	return l.pin.Signed
}

// findKeys finds the keys by which the log is known: those that the user has named, those
// that the repository has, or at the first use the one that the registry tells.
func (l *Log) findKeys(ctx context.Context) (err error) {
	l.keys = l.trustedKeys()
	switch {
	case len(l.keys) > 0:
	case len(l.trust) > 0:
		return unanswered(l.base, "none of the keys given is of the log %s", shortened(l.origin, maxReason))
	case l.pin != nil:
		l.keys = l.pin.Keys
	default:
		if l.keys, err = l.toldKeys(ctx); err != nil {
			return err
		}
	}
	if l.verify, err = verifiersOf(l.origin, l.keys); err != nil {
		return unanswered(l.base, "%s", err)
	}
	return nil
}

// trustedKeys returns the keys of the log that the user has named.
func (l *Log) trustedKeys() (keys []string) {
	for _, key := range l.trust {
		if name, _, _ := strings.Cut(key, "+"); name == l.origin {
			keys = append(keys, key)
		}
	}
	return keys
}

// toldKeys returns the keys that the registry says are the log's.
func (l *Log) toldKeys(ctx context.Context) (keys []string, err error) {
	q := l.question("key", maxKeys*maxKeyLine)
	a, err := l.client.ask(ctx, q)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(a.body)) {
		if line = strings.TrimSpace(line); line != "" && len(keys) < maxKeys {
			keys = append(keys, line)
		}
	}
	if a.status != http.StatusOK || len(keys) == 0 {
		return nil, unanswered(q.url, "it does not tell the key of its log")
	}
	return keys, nil
}

// open checks the signature of a checkpoint, and notes it. before is a checkpoint that the
// log had.
func (l *Log) open(signed, before []byte) (tlog.Checkpoint, error) {
	c, err := tlog.OpenCheckpoint(signed, l.origin, l.verify...)
	if _, other := errors.AsType[*note.UnverifiedNoteError](err); other {
		return c, l.alarm(OtherKey, before, signed, "the checkpoint is not signed by %s", strings.Join(l.keyHashes(), " or "))
	}
	if err != nil {
		return c, unanswered(l.base, "%s", shortened(err.Error(), maxReason))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.seen[c]; !known && !(Pin{URL: l.URL(), Keys: l.allKeys(), Signed: signed, Checkpoint: c}).holds() {
		return c, unanswered(l.base, "its checkpoint has more in it than can be kept")
	}
	if _, known := l.seen[c]; !known {
		l.seen[c] = bytes.Clone(signed)
	}
	return c, nil
}

// ledBy returns the hosts of foundBy, in this run or before.
func (l *Log) ledBy() []string {
	hosts := slices.Clone(l.foundBy)
	if l.pin != nil {
		hosts = append(hosts, l.pin.Hosts...)
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// names returns the hostnames by which clients may know the registry of the log.
func (l *Log) names() map[svchost.Hostname]bool {
	origin, _, _ := strings.Cut(l.origin, "/")
	names := map[svchost.Hostname]bool{hostnameOf(l.base): true}
	for _, host := range append(l.ledBy(), origin) {
		names[hostnameOf(&url.URL{Scheme: "https", Host: host})] = true
	}
	return names
}

// keyHashes returns the keys in short.
func (l *Log) keyHashes() (hashes []string) {
	for _, v := range l.verify {
		hashes = append(hashes, fmt.Sprintf("the key %08x", v.KeyHash()))
	}
	return hashes
}

// moreKeys returns which other keys sign a checkpoint in the name of the log: keys rotate.
func (l *Log) moreKeys(signed []byte) (hashes []string) {
	n, err := note.Open(signed, note.VerifierList(l.verify...))
	if err != nil {
		return nil
	}
	for _, s := range n.UnverifiedSigs {
		if s.Name == l.origin {
			hashes = append(hashes, fmt.Sprintf("%08x", s.Hash))
		}
	}
	return hashes
}

// takeKeys takes over the keys that also sign a checkpoint, if the user has said that the file is to be
// updated, and has not named the keys. The registry tells their lines. Answers that follow may be signed
// by them alone.
func (l *Log) takeKeys(ctx context.Context, signed []byte) error {
	if !l.update || len(l.trust) > 0 || len(l.moreKeys(signed)) == 0 {
		return nil
	}
	told, err := l.toldKeys(ctx)
	if err != nil {
		return err
	}
	for _, key := range told {
		v, err := note.NewVerifier(key)
		if known := l.allKeys(); err != nil || v.Name() != l.origin || slices.Contains(known, key) || len(known) >= maxKeys {
			continue
		}
		if _, err := tlog.OpenCheckpoint(signed, l.origin, v); err == nil {
			l.taken, l.verify = append(l.taken, key), append(l.verify, v)
		}
	}
	return nil
}

// allKeys returns the keys by which the log is known, and those that were taken over.
func (l *Log) allKeys() []string { return slices.Concat(l.keys, l.taken) }

// lookup returns all that the log has of a version, with the proofs checked. found is false if
// it has nothing, or nothing that this user may see.
//
// An answer that has been kept counts if nothing has been entered since, unless it is to be
// fresh: the rest of the answer may have changed. Entries that it has must be in a new answer:
// no proof shows that an answer has them all.
func (l *Log) lookup(ctx context.Context, path string, fresh bool) (found tlog.Lookup, ok bool, err error) {
	if err := l.begin(ctx); err != nil {
		return found, false, err
	}
	q := l.question("lookup/"+path, maxLookup)
	before := l.keptLookup(q)
	if !fresh && bytes.Equal(before.Signed, l.head.signed) {
		return before, true, nil
	}
	for attempt := 0; ; attempt++ {
		a, err := l.client.ask(ctx, q)
		switch {
		case err != nil:
			return found, false, err
		case a.status != http.StatusOK:
			return found, false, nil
		}
		if found, err = tlog.ParseLookup(string(a.body)); err != nil {
			err = unanswered(q.url, "its answer about %s is no look-up: %s", path, shortened(err.Error(), maxReason))
		} else {
			ok = true
			err = l.check(found)
		}
		missing := missingEntries(before, found)
		if len(before.Entries) > 0 && (err != nil || len(missing) > 0) {
			l.client.Cache.keepAnswer(q.url.String(), q.url.String(), []byte(before.String())) // for the next run
		}
		if err != nil || len(missing) == 0 {
			return found, ok, err
		}
		for _, e := range missing {
			if l.reaches(found.Signed, e.Proof.Index) {
				l.leavesOut(before.Signed, found.Signed, fmt.Sprintf("it has told entry %d of %s, and does not tell it any more", e.Proof.Index, path))
				return found, ok, nil
			}
		}
		if attempt == patience {
			return found, false, unanswered(q.url, "its answer about %s is older than an earlier one", path)
		}
		if err := l.catchUp(ctx, before.Signed); err != nil {
			return found, false, err
		}
	}
}

// catchUp has an instance that is behind look for what others have entered: it does so when it is asked
// for a proof that the log continues an earlier checkpoint. If the log was rolled back, there is none.
func (l *Log) catchUp(ctx context.Context, earlier []byte) error {
	c, err := l.open(earlier, l.head.signed)
	if err == nil {
		_, err = l.follow(ctx, seen{c, earlier})
	}
	if err != nil {
		return err
	}
	return l.client.wait(ctx)
}

// missingEntries returns the entries of an earlier answer that a later one lacks.
func missingEntries(earlier, later tlog.Lookup) (missing []tlog.ProvenEntry) {
	for _, e := range earlier.Entries {
		if !slices.ContainsFunc(later.Entries, func(other tlog.ProvenEntry) bool {
			return other.Text == e.Text && other.Proof.Index == e.Proof.Index
		}) {
			missing = append(missing, e)
		}
	}
	return missing
}

// reaches reports whether a checkpoint that was checked covers an entry.
func (l *Log) reaches(signed []byte, index int64) bool {
	c, err := l.open(signed, nil)
	return err == nil && index < c.Size
}

// leavesOut notes that a look-up lacks an entry. What else is wrong with the log, as that it is
// another one, says more.
func (l *Log) leavesOut(before, now []byte, detail string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.omitted == nil {
		l.omitted = &Alarm{Shrank, l.URL(), detail, string(before), string(now)}
	}
}

// keptLookup returns the last answer to a look-up, if the log has proved it.
func (l *Log) keptLookup(q question) tlog.Lookup {
	body, ok := l.client.answered(q)
	if !ok {
		return tlog.Lookup{}
	}
	found, err := tlog.ParseLookup(string(body))
	if err == nil {
		_, err = found.Check(l.origin, l.verify...)
	}
	if err != nil {
		return tlog.Lookup{}
	}
	return found
}

// errUnproven means that an entry is not where its proof says.
var errUnproven = errors.New("the proof of an entry is wrong")

func (l *Log) check(found tlog.Lookup) error {
	c, err := l.open(found.Signed, l.head.signed)
	if err != nil {
		return err
	}
	for _, e := range found.Entries {
		if err := e.Proof.Check(e.Text, c); err != nil {
			return fmt.Errorf("%w: %w", errUnproven, err)
		}
	}
	return nil
}
