package storage

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"
)

// Instances that share a tree announce the files that they have published or fetched:
// each adds an entry to a document in Caddy's storage, and polls the document for the
// entries of others. This replaces events, which network file systems and object stores
// do not have.
//
// Entries are added without a lock. If two instances add one at the same moment, the
// later write replaces the earlier. The other instance does not find its entry at a later
// look, and adds it again. The later write may be much later, in a storage that hangs: an
// instance looks for its entry until newer ones have pushed it out of the document.

// A change is an entry of the document.
type change struct {
	// ID is unique.
	ID string `json:"id"`

	// Folders are the folders with changes, in the form of index.ReportedFolder. None
	// means the whole tree.
	Folders []string `json:"folders"`
}

// Limits of the document.
const (
	maxChanges       = 64   // entries; the oldest are dropped
	maxChangeFolders = 64   // of an entry; an entry with more is announced without any
	maxChangeFolder  = 1024 // bytes of a folder's path
)

// An ownChange is a change of this instance.
type ownChange struct {
	change
	seen bool // in the document, at the last look
}

// A ChangeLog is the view of one instance on the document of one tree. It is safe for
// concurrent use.
type ChangeLog struct {
	calls   Calls
	key     string
	refresh func(folders ...string) // method of the index; without folders it refreshes everything
	logger  *slog.Logger

	announced chan struct{} // has an element when there is something to add
	ended     chan struct{} // closed when run has returned

	mutex sync.Mutex
	own   []ownChange // oldest first, until the document has dropped them

	looking chan struct{}  // has an element during a look, which uses what follows
	last    []byte         // the document at the last look
	known   map[string]int // the IDs in it, with their places; nil before the first look
	failing bool           // a failure of the storage has been logged
}

// maxChangeCalls limits the calls that wait for a storage that hangs.
const maxChangeCalls = 2

// NewChangeLog returns the view of the tree with an identity. refresh is called with the folders
// that others have changed, and without folders for the whole tree.
func NewChangeLog(storage func() (certmagic.Storage, error), identity string, refresh func(...string), logger *slog.Logger) *ChangeLog {
	return &ChangeLog{
		calls: NewCalls(storage, maxChangeCalls), key: Folder("changes", identity) + ".json", refresh: refresh, logger: logger,
		announced: make(chan struct{}, 1),
		looking:   make(chan struct{}, 1),
		ended:     make(chan struct{}),
	}
}

// Announce announces a change to the other instances. It returns at once, so that a
// publisher does not wait for a slow storage.
func (l *ChangeLog) Announce(folders []string) {
	if len(folders) > maxChangeFolders {
		folders = nil
	}
	l.mutex.Lock()
	l.own = append(l.own, ownChange{change: change{ID: rand.Text(), Folders: slices.Clone(folders)}})
	if len(l.unseen()) > maxChanges { // the storage has failed for long: replace them by one change of everything
		l.own = slices.DeleteFunc(l.own, func(c ownChange) bool { return !c.seen })
		l.own = append(l.own, ownChange{change: change{ID: rand.Text()}})
	}
	l.mutex.Unlock()
	select {
	case l.announced <- struct{}{}:
	default:
	}
}

// Run looks at the document at every interval, until ctx ends.
func (l *ChangeLog) Run(ctx context.Context, interval time.Duration) {
	defer close(l.ended)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		l.look(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-l.announced:
		}
	}
}

// closePatience is how long Flush and Close wait for a storage that is slow or hangs.
const closePatience = 2 * time.Second

// Flush adds the changes that Run has not added yet, while Run goes on. Other instances
// would otherwise find them only at their next periodic scan, if the process ends.
func (l *ChangeLog) Flush() { l.addRest(func() {}) }

// Close is called when the context of Run has ended. It adds the changes that Run has
// not added.
func (l *ChangeLog) Close() { l.addRest(func() { <-l.ended }) }

// maxLastLooks is how often the document is looked at: once to add changes, and once to see
// that they are there.
const maxLastLooks = 2

// addRest adds the remaining changes after wait.
func (l *ChangeLog) addRest(wait func()) {
	added := make(chan struct{})
	go func() {
		defer close(added)
		wait()
		for n := 0; n < maxLastLooks && l.hasUnseen(); n++ {
			l.look(context.Background())
		}
	}()
	select {
	case <-added:
	case <-time.After(closePatience):
	}
}

func (l *ChangeLog) hasUnseen() bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return len(l.unseen()) > 0
}

// unseen returns the changes of this instance that are not in the document. The mutex is
// locked.
func (l *ChangeLog) unseen() (changes []change) {
	for _, c := range l.own {
		if !c.seen {
			changes = append(changes, c.change)
		}
	}
	return changes
}

// lookTimeout limits one look at the document. A slow storage only delays
// announcements.
const lookTimeout = 10 * time.Second

// look refreshes the folders that other instances have changed, and adds the changes of
// this one.
func (l *ChangeLog) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	select {
	case l.looking <- struct{}{}:
		defer func() { <-l.looking }()
	case <-ctx.Done():
		return
	}
	content, err := l.calls.Load(ctx, l.key)
	if errors.Is(err, fs.ErrNotExist) {
		content, err = nil, nil
	}
	if err == nil {
		err = l.add(ctx, l.read(content))
	}
	l.report(ctx, err)
}

// read refreshes the folders of new entries, and returns all entries. A document that
// cannot be decoded has none: the next change replaces it.
func (l *ChangeLog) read(content []byte) []change {
	changes := decodeChanges(content)
	if l.known != nil && bytes.Equal(content, l.last) {
		return changes
	}
	first := l.known == nil
	before := l.known
	l.last, l.known = content, make(map[string]int, len(changes))
	var folders []string
	everything, missed := false, !first
	for i, c := range changes {
		l.known[c.ID] = i
		_, wasKnown := before[c.ID]
		switch {
		case wasKnown, l.isOwn(c.ID):
			missed = false // nothing between the last look and this one was dropped
		default:
			everything = everything || len(c.Folders) == 0
			folders = append(folders, c.Folders...)
		}
	}
	l.findOwn(before)
	// At the first look, the first scan may have been too early for any of the entries.
	switch slices.Sort(folders); {
	case everything, missed && len(changes) == maxChanges:
		l.refresh()
	case len(folders) > 0:
		l.refresh(slices.Compact(folders)...)
	}
	return changes
}

func (l *ChangeLog) isOwn(id string) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return slices.ContainsFunc(l.own, func(c ownChange) bool { return c.ID == id })
}

// findOwn notes which changes of this instance are in the document, and forgets changes that
// the document has dropped. before has the places of the entries at the last look.
func (l *ChangeLog) findOwn(before map[string]int) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.own = slices.DeleteFunc(l.own, func(c ownChange) bool {
		_, isThere := l.known[c.ID]
		return c.seen && !isThere && l.isFull() && !l.hasOlder(before, before[c.ID])
	})
	for i := range l.own {
		_, l.own[i].seen = l.known[l.own[i].ID]
	}
}

// isFull reports whether the document drops an entry for each new one.
func (l *ChangeLog) isFull() bool { return len(l.known) >= maxChanges }

// hasOlder reports whether the document has an entry that was before a place. The document
// drops its oldest entries first: an entry that is missing, while an older one is there, was
// replaced by the write of another instance.
func (l *ChangeLog) hasOlder(before map[string]int, place int) bool {
	for id, at := range before {
		if _, isThere := l.known[id]; isThere && at < place {
			return true
		}
	}
	return false
}

// add writes the document with the changes added that are not in it.
func (l *ChangeLog) add(ctx context.Context, changes []change) error {
	l.mutex.Lock()
	unseen := l.unseen()
	l.mutex.Unlock()
	if len(unseen) == 0 {
		return nil
	}
	changes = append(changes, unseen...)
	changes = changes[max(0, len(changes)-maxChanges):]
	content, err := json.Marshal(changes)
	if err != nil {
		return err
	}
	return l.calls.Store(ctx, l.key, content)
}

// report logs when the storage begins to fail, and when it works again.
func (l *ChangeLog) report(ctx context.Context, err error) {
	switch {
	case err == nil && l.failing:
		l.failing = false
		l.logger.Info("Caddy's storage works again: changes made by other instances are noticed at once")
	case err != nil && !l.failing && !errors.Is(ctx.Err(), context.Canceled):
		l.failing = true
		l.logger.Warn("Caddy's storage fails: changes made by other instances are noticed by the periodic scan only", "error", err.Error())
	}
}

// decodeChanges returns the valid entries of a document. An entry only says where to
// look, and the periodic scan finds the changes of missing ones.
func decodeChanges(content []byte) []change {
	var changes []change
	if json.Unmarshal(content, &changes) != nil {
		return nil
	}
	changes = slices.DeleteFunc(changes, func(c change) bool {
		return c.ID == "" || len(c.ID) > maxChangeFolder || len(c.Folders) > maxChangeFolders ||
			slices.ContainsFunc(c.Folders, func(folder string) bool { return len(folder) > maxChangeFolder || !fs.ValidPath(folder) })
	})
	return changes[max(0, len(changes)-maxChanges):]
}
