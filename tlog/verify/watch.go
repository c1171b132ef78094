package verify

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	svchost "github.com/hashicorp/terraform-svchost"
	sumdb "golang.org/x/mod/sumdb/tlog"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// An Entry is an entry of a log. Its Leaf is zero if a later version of the registry has
// written it, in a form that is not known.
type Entry struct {
	Index int64
	Text  string
	Leaf  tlog.Leaf

	// Succession is the first entry of a log that was begun in place of another one; else nil.
	Succession *tlog.Succession
}

// A Conflict means that a log has two packages of one version with other files or bytes, which may be
// in a single entry.
type Conflict struct {
	First  int64 `json:"first"` // numbers of the entries
	Second Entry `json:"-"`
}

// A Watcher reads all entries of a log as they come. It must be allowed to read everything.
type Watcher struct {
	log   *Log
	peaks peaks
	size  int64
	last  *Pin // nil: nothing has been seen before
	first map[[16]byte]firstPackage
	names map[svchost.Hostname]bool // of the registry of the log
}

// A firstPackage is the first entry of a package, with the beginnings of the hash of all its "h1:"
// and of its "zh:". They are so long that nobody finds two packages with the same.
type firstPackage struct {
	index  int64
	h1, zh [20]byte
	packed bool // of a folder, by the registry
}

// isSame reports whether a later entry is of the same package. Its bytes count, unless the registry
// packs its folder. All its "h1:" count: a further one would be of other files.
func (p firstPackage) isSame(later firstPackage) bool {
	return p.h1 == later.h1 && (p.zh == later.zh || p.packed && later.packed)
}

// Watch returns a watcher of the log at a URL, or of the registry at a hostname. If there is no
// answer, it may be called again.
func (f *Finder) Watch(ctx context.Context, text string) (*Watcher, error) {
	l, err := f.logAt(ctx, text)
	if err == nil {
		err = l.begin(ctx)
	}
	if err != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.logs, f.hosts = nil, nil // they have the error
		f.Client.askAgain()
		return nil, err
	}
	return &Watcher{log: l, last: l.pin, first: make(map[[16]byte]firstPackage), names: l.names()}, nil
}

// logAt returns the log at a URL, or of the registry at a hostname.
func (f *Finder) logAt(ctx context.Context, text string) (*Log, error) {
	u, isLog, err := parseLogURL(text)
	switch {
	case err != nil:
		return nil, err
	case isLog:
		return f.log(u), nil
	}
	d := f.discover(ctx, u)
	if d.err != nil {
		return nil, d.err
	}
	if d.log == nil {
		return nil, unanswered(u, "it has no log")
	}
	f.foundBy(d.log, u.Host)
	return f.log(d.log), nil
}

// Next reads what is new. It returns the entries after those that were seen before, and the
// conflicts among all. At the first use, none are new.
func (w *Watcher) Next(ctx context.Context) (news []Entry, conflicts []Conflict, pin Pin, err error) {
	head, err := w.newest(ctx)
	if err == nil {
		err = w.log.takeKeys(ctx, head.signed)
	}
	if err != nil {
		return nil, nil, pin, err
	}
	state := *w
	state.peaks = slices.Clone(w.peaks)
	for _, kept := range []bool{true, false} {
		w.peaks, w.size = slices.Clone(state.peaks), state.size
		var fromCache bool
		if news, conflicts, fromCache, err = w.read(ctx, head, kept); err == nil || !fromCache {
			break
		}
		w.log.raised = nil // the cache is damaged
		maps.DeleteFunc(w.first, func(_ [16]byte, p firstPackage) bool { return p.index >= state.size })
	}
	if err != nil {
		w.peaks, w.size = state.peaks, state.size
		return nil, nil, pin, err
	}
	pin = Pin{URL: w.log.URL(), Hosts: w.log.ledBy(), Keys: w.log.allKeys(), Signed: head.signed, Checkpoint: head.Checkpoint, Replaces: w.log.replaces}
	w.last = &pin
	return news, conflicts, pin, nil
}

// MoreKeys returns the hashes of other keys that sign what was seen last. An update takes them
// over.
func (w *Watcher) MoreKeys() []string { return w.log.moreKeys(w.last.Signed) }

// newest returns the newest checkpoint, which is not older than the one that was seen last.
func (w *Watcher) newest(ctx context.Context) (head seen, err error) {
	q := w.log.question("checkpoint", maxCheckpoint)
	q.fresh = true // an old one would mean that nothing has been added
	var before []byte
	if w.last != nil {
		before = w.last.Signed
	}
	a, err := w.log.client.ask(ctx, q)
	switch {
	case err != nil:
		return head, err
	case a.status != http.StatusOK:
		return head, unanswered(q.url, "it answered %d for the checkpoint", a.status)
	}
	if head.Checkpoint, err = w.log.open(a.body, before); err != nil {
		return head, err
	}
	if w.last != nil && head.Size < w.last.Size { // it may be of an instance that is behind
		return w.log.follow(ctx, seen{w.last.Checkpoint, w.last.Signed})
	}
	head.signed = a.body
	return head, nil
}

// read reads the entries up to a checkpoint, and compares their roots with all that was
// signed.
func (w *Watcher) read(ctx context.Context, head seen, kept bool) (news []Entry, conflicts []Conflict, fromCache bool, err error) {
	forked := func(before []byte, what string) error { return w.log.alarm(Forked, before, head.signed, "%s", what) }
	for w.size < head.Size {
		n := w.size / tlog.BundleSize
		width := min(head.Size-n*tlog.BundleSize, tlog.BundleSize)
		entries, cached, err := w.bundle(ctx, n, int(width), kept)
		fromCache = fromCache || cached
		if err != nil {
			return nil, nil, fromCache, err
		}
		for _, text := range entries[w.size-n*tlog.BundleSize:] {
			e := Entry{Index: w.size, Text: text}
			w.peaks = w.peaks.add(sumdb.RecordHash([]byte(text)))
			w.size++
			if l, err := tlog.ParseLeaf(text); err == nil {
				e.Leaf = l
			}
			if s, err := tlog.ParseSuccession(text); err == nil && e.Index == 0 {
				e.Succession = &s
			}
			if first, ok := w.conflicts(e); ok {
				conflicts = append(conflicts, Conflict{first, e})
			}
			if w.last != nil && e.Index >= w.last.Size {
				news = append(news, e)
			}
			if w.last != nil && w.size == w.last.Size && w.peaks.root() != w.last.Root {
				return nil, nil, fromCache, forked(w.last.Signed, fmt.Sprintf("its first %d entries are not those that were seen before", w.size))
			}
		}
	}
	if w.last != nil && head.Size == w.last.Size && head.Root != w.last.Root {
		return nil, nil, fromCache, forked(w.last.Signed, fmt.Sprintf("there are two logs with %d entries", head.Size))
	}
	if head.Size > 0 && w.peaks.root() != head.Root {
		return nil, nil, fromCache, forked(nil, "its entries do not make up its checkpoint")
	}
	return news, conflicts, fromCache, nil
}

// maxBundle bounds a bundle, in bytes.
const maxBundle = tlog.BundleSize * (2 + tlog.MaxLeaf)

// bundle returns the first entries of a bundle. Full bundles never change.
func (w *Watcher) bundle(ctx context.Context, n int64, width int, kept bool) (entries []string, cached bool, err error) {
	t := sumdb.Tile{H: 8, L: -1, N: n, W: width}
	q := question{url: w.log.base.ResolveReference(&url.URL{Path: tlog.TilePath(t)}), hosts: w.log.hosts, limit: maxBundle}
	body, cached := w.log.client.answered(q)
	if cached = cached && kept && width == tlog.BundleSize; !cached {
		a, err := w.log.client.ask(ctx, q)
		switch {
		case err != nil:
			return nil, false, err
		case a.status != http.StatusOK:
			return nil, false, unanswered(q.url, "it answered %d for %s: who watches a log must be allowed to read everything", a.status, q.url.Path)
		}
		body = a.body
	}
	entries, err = tlog.DecodeBundle(body)
	if err != nil || len(entries) != width {
		return nil, cached, unanswered(q.url, "its answer for %s does not have %d entries", q.url.Path, width)
	}
	return entries, cached, nil
}

// hosted returns an address without a name of the registry: clients of the registry get the one for
// the other.
func (w *Watcher) hosted(a address.Address) address.Address {
	if w.names[a.Hostname] {
		return a.WithHostname("")
	}
	return a
}

// conflicts returns the number of the first entry of a package that has other files, which may be
// the entry itself.
func (w *Watcher) conflicts(e Entry) (first int64, ok bool) {
	l := e.Leaf
	if !l.Event.HasPackage() {
		return 0, false
	}
	var key [16]byte
	sum := sha256.Sum256([]byte(strings.Join([]string{w.hosted(l.Address).String(), l.Version, l.Platform.String()}, " ")))
	copy(key[:], sum[:])
	last := len(l.Hashes) - 1
	p := firstPackage{index: e.Index, packed: l.Pack > 0}
	h1 := sha256.Sum256([]byte(strings.Join(l.Hashes[:last], " ")))
	copy(p.h1[:], h1[:])
	zh, _ := wire.ParseZH(l.Hashes[last])
	copy(p.zh[:], zh[:])
	known, seen := w.first[key]
	if !seen || known.index == e.Index { // or it is read again
		w.first[key] = p
		return e.Index, l.IsAmbiguous()
	}
	return known.index, !known.isSame(p)
}

// peaks are the roots of the full subtrees of a tree, the largest first.
type peaks []peak

type peak struct {
	size int64
	hash sumdb.Hash
}

func (p peaks) add(h sumdb.Hash) peaks {
	next := peak{1, h}
	for len(p) > 0 && p[len(p)-1].size == next.size {
		last := p[len(p)-1]
		p, next = p[:len(p)-1], peak{2 * next.size, sumdb.NodeHash(last.hash, next.hash)}
	}
	return append(p, next)
}

func (p peaks) root() sumdb.Hash {
	if len(p) == 0 {
		return sumdb.Hash{}
	}
	h := p[len(p)-1].hash
	for _, q := range slices.Backward(p[:len(p)-1]) {
		h = sumdb.NodeHash(q.hash, h)
	}
	return h
}
