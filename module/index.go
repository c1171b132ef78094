package module

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/keys"
	"github.com/caddy-terraform/caddy-terraform-registry/module/storage"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
)

// A servedTree is the tree that a handler serves, with its options.
type servedTree struct {
	source  source.Source
	fsName  string        // of the file system of the source; empty: the local disk
	require bool          // signatures of the publishers
	rescan  time.Duration // 0: no periodic scans
	poll    time.Duration // 0: there are no other instances
	signing signingPolicy
	filled  bool // from upstreams, as clients request packages
}

// identity identifies the files of a tree in the memo of their digests and in
// signed links, regardless of the other options. It is the same at all instances
// that have the tree in the same place.
func (t servedTree) identity() string {
	identity, _ := json.Marshal(struct {
		FileSystem  string
		Directories source.Directories
	}{t.fsName, t.source.Directories}) // strings always encode
	return string(identity)
}

// options returns the options of the tree's index. They must not refer to the
// configuration, except for the file system, which is part of the pool's key.
func (t servedTree) options(signer index.Signer) index.Options {
	o := index.Options{
		Open:              t.source.Open,
		Signer:            signer,
		RequireSignatures: t.require,
		Rescan:            t.rescan,
		Paths:             t.source.Paths(),
		Store:             t.memo(),
		Identity:          t.identity(),
	}
	if listed, ok := t.source.Listed(); ok {
		o.Listed = listed
	} else {
		o.Watch = true
	}
	return o
}

// root returns the root of the tree, for logs and answers.
func (t servedTree) root() string { return t.source.Directories.Root }

var indexPool = newPool[indexKey, *pooledIndex]()

// An indexKey is everything that the result of a scan depends on. Two sites, or two
// successive configurations, share an index if their keys are equal.
type indexKey struct {
	// Caddy creates a new value of a named file system for every configuration. Its
	// module may have been given other credentials, so the index of the previous value
	// is not used any more. A Bucket is the same value for as long as its options are.
	source  source.Source
	require bool
	rescan  time.Duration
	shared  bool   // with other instances
	signer  string // the armored public key; empty without a signer
}

// compare defines an order of keys, so that indexes are numbered the same each time.
func (k indexKey) compare(other indexKey) int {
	return cmp.Or(
		strings.Compare(k.source.Directories.Root, other.source.Directories.Root),
		strings.Compare(fmt.Sprintf("%+v", k), fmt.Sprintf("%+v", other)),
	)
}

// A pooledIndex is an index and the apps that use it. It reports to the newest one.
type pooledIndex struct {
	*index.Index
	users[indexUser]

	identity string // of the tree
}

// detach removes an app. If the newest one goes, it has failed to start: what the index has told it, the log of the
// app that goes on has missed.
func (p *pooledIndex) detach(a *App) {
	last := p.newest()
	p.users.detach(a)
	if next, s := p.newest(), p.Snapshot(); next != last && next != nil && s != nil {
		next.offered(p.Index, s, nil)
	}
}

// tellOthers has the other indexes of the tree in this process look at folders that the process has changed. They
// may have scanned the tree before, with other options: for another site, or for the configuration that replaces
// this one.
func (p *pooledIndex) tellOthers(folders []string) {
	indexPool.uses.Range(func(_, value any) bool {
		if other := value.(*pooledIndex); other != p && other.identity == p.identity {
			other.Refresh(folders...)
		}
		return true
	})
}

// An indexUser has the observer and the ledger that an app gives an index.
type indexUser struct {
	observer *index.Observer
	ledger   index.Ledger // nil: the app has no log of the tree
}

// acquireIndex returns the index of a tree. The app holds one reference to it,
// however many of its handlers use it.
func (a *App) acquireIndex(t servedTree, signer index.Signer) *index.Index {
	key := indexKey{source: t.source, require: t.require, rescan: t.rescan, shared: t.poll > 0}
	if signer != nil {
		key.signer = signer.PublicKey().Armor
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if acquired := a.indexes[key]; acquired != nil {
		return acquired.Index
	}
	pooled, loaded, _ := indexPool.acquire(key, func() (*pooledIndex, error) {
		p := &pooledIndex{identity: t.identity()}
		o := t.options(signer)
		o.KeyCopies = storage.NewKeyCopies(p.storage, t.identity())
		if t.poll > 0 {
			o.Shared = storage.NewDigests(p.storage, p.lock, t.identity())
		}
		p.Index = index.New(o)
		p.use = func(u indexUser) {
			p.Observe(u.observer)
			p.SetLedger(u.ledger)
		}
		return p, nil // never an error
	})
	if loaded {
		// Operators reload to have changes picked up. The scan reads no archive
		// again, and the current snapshot is served meanwhile.
		pooled.Refresh()
	}
	a.indexes[key] = pooled
	announce := pooled.tellOthers
	if t.poll > 0 {
		changes := storage.NewChangeLog(a.storage, t.identity(), pooled.Refresh, a.logger)
		a.changes[pooled.Index] = changes
		announce = func(folders []string) {
			pooled.tellOthers(folders)
			changes.Announce(folders)
		}
		go changes.Run(a.ctx, t.poll)
	}
	pooled.attach(a, indexUser{ledger: a.ledger(t.source), observer: &index.Observer{
		Logger:  a.logger,
		Offered: func(now *index.Snapshot, changed []address.Address) { a.offered(pooled.Index, now, changed) },
		Scanned: func(before, now *index.Snapshot, took time.Duration) {
			a.warnOfRoot(t, before, now)
			a.emitScanned(t, now, took)
		},
		Withheld:    func(p index.Problem) { a.emitWithheld(t, p) },
		KeysChanged: func(c keys.Change) { a.emitKeysChanged(t, c) },
		Rewritten:   func(c index.ChangedVersion) { a.emitRewritten(t, c) },
		Changed:     announce,
	}})
	a.enterOffers(pooled.Index, t)
	if loaded {
		go pooled.Compare() // the log may have told of something before the app had the index
	}
	pooled.Start()
	return pooled.Index
}

// indexesOf returns the indexes of a tree.
func (a *App) indexesOf(from source.Source) (indexes []*index.Index) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	for key, x := range a.indexes {
		if key.source == from {
			indexes = append(indexes, x.Index)
		}
	}
	return indexes
}

// announce tells other instances to look at the whole tree of an index.
func (a *App) announce(x *index.Index) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if changes := a.changes[x]; changes != nil {
		changes.Announce(nil)
	}
}

// ByRoot returns the app's indexes by the root of their tree. Further indexes of
// the same root, with other options, have a number after it: `/srv#2`.
func (a *App) ByRoot() map[string]*index.Index {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	found := make(map[string]*index.Index, len(a.indexes))
	for _, key := range slices.SortedFunc(maps.Keys(a.indexes), indexKey.compare) {
		found[unusedName(key.source.Directories.Root, found)] = a.indexes[key].Index
	}
	return found
}

// unusedName returns a name with a number after it if there is something of that name: `/srv#2`.
func unusedName[T any](name string, named map[string]T) string {
	numbered := name
	for n := 2; ; n++ {
		if _, used := named[numbered]; !used {
			return numbered
		}
		numbered = fmt.Sprintf("%s#%d", name, n)
	}
}
