package module

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/module/storage"
	"github.com/caddy-terraform/caddy-terraform-registry/pull/versionlist"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog/record"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog/vault"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

var tlogPool = newPool[tlogKey, *pooledTlog]()

// A pooledTlog is the log of a tree and the apps that use it.
type pooledTlog struct {
	*record.Recorder
	users[struct{}]
}

// A loggedTree gives the handlers of a tree its log, as soon as the app has started.
type loggedTree struct {
	key tlogKey
	log atomic.Pointer[pooledTlog]
}

// Log returns the log; nil if it cannot be read yet.
func (t *loggedTree) Log() *tlog.Log {
	if p := t.log.Load(); p != nil {
		return p.Log()
	}
	return nil
}

// addTlog returns the log of a tree, which handlers with the same options share. It is for handlers that
// are being provisioned.
func (a *App) addTlog(key tlogKey) (*loggedTree, error) {
	for _, other := range a.logged {
		alike := key // sites with other names
		if !key.named && !other.key.named {
			alike.origin = other.key.origin
		}
		if key.ofSite && other.key.ofSite {
			alike.hostnames = other.key.hostnames
		}
		if alike == other.key {
			key = alike
		}
		if other.key == key {
			return other, nil
		}
		sameFolder := other.key.folder == key.folder && other.key.source.FS == key.source.FS
		if other.key.origin == key.origin && !sameFolder {
			return nil, fmt.Errorf("tlog: two logs are called %s, in the folders %s and %s: give one another origin", key.origin, other.key.folder, key.folder)
		}
		if other.key.source == key.source && !sameFolder {
			return nil, fmt.Errorf("tlog: the tree has two logs, in the folders %s and %s: a tree has one", other.key.folder, key.folder)
		}
		if sameFolder {
			return nil, fmt.Errorf("tlog: two registries use the folder %s with different options: use the same tree, hostnames, signatures, origin, key and require, or name another folder", key.folder)
		}
	}
	t := &loggedTree{key: key}
	a.logged = append(a.logged, t)
	return t, nil
}

// acquireTlog takes the log of a tree from the pool, and begins to read it if it is new.
func (a *App) acquireTlog(t *loggedTree) error {
	key := t.key
	a.logging.Lock()
	defer a.logging.Unlock()
	pooled, _, err := tlogPool.acquire(key, func() (*pooledTlog, error) {
		p := new(pooledTlog)
		p.attach(a, struct{}{}) // its storage is needed at once
		var opening tlog.Opening
		p.Recorder = record.New(record.Options{
			Open: func(ctx context.Context) (*tlog.Log, error) {
				o, err := logOf(key, p.storage).Open(ctx)
				if err != nil {
					return nil, err
				}
				o.Memo = tlogMemo{storage.MemoOf("log " + key.origin + " " + key.folder), p}
				return opening.Open(ctx, o)
			},
			Hostnames: key.names(),
			Require:   key.recorded,
			Dates:     func(folder address.Address) map[string]time.Time { return datesIn(key.source, folder) },
			Unread: func() (n int) {
				for _, x := range p.indexes(key) {
					n += x.Unread()
				}
				return n
			},
			Learned: func(addresses ...address.Address) {
				for _, x := range p.indexes(key) {
					x.Compare(addresses...)
				}
			},
			Changed: func(s record.State) { p.tell(key, s) },
		})
		return p, nil
	})
	if err != nil {
		return err
	}
	if pooled.newest() != a {
		pooled.attach(a, struct{}{})
	}
	a.logs[key] = pooled
	t.log.Store(pooled)
	return nil
}

// datesIn returns when versions in a folder were published at their origin. Without a date, the
// age of a version counts from its entry, so an error makes none older than it is.
func datesIn(from source.Source, folder address.Address) map[string]time.Time {
	files, err := from.Open()
	if err != nil {
		return nil
	}
	dates, _ := versionlist.Dates(files, folder)
	return dates
}

// A tlogMemo logs that it cannot be saved.
type tlogMemo struct {
	storage.MemoFile
	log *pooledTlog
}

// Save implements tlog.Memo.
func (m tlogMemo) Save(content []byte) error {
	err := m.MemoFile.Save(func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
	if app := m.log.newest(); app != nil && err != nil {
		app.logger.Warn("what is known of the transparency log cannot be kept: the next start reads all of its entries", "error", tree.WithoutPath(err).Error())
	}
	return err
}

// Destruct implements caddy.Destructor.
func (p *pooledTlog) Destruct() error {
	p.Close()
	return nil
}

// indexes returns the indexes of the log's tree.
func (p *pooledTlog) indexes(key tlogKey) []*index.Index {
	if app := p.newest(); app != nil {
		return app.indexesOf(key.source)
	}
	return nil
}

// tell logs whether something can be added to a log.
func (p *pooledTlog) tell(key tlogKey, s record.State) {
	app := p.newest()
	if app == nil {
		return
	}
	fields := []any{"folder", key.folder}
	if s.Err != nil {
		fields = append(fields, "reason", string(s.Trouble), "error", s.Err.Error())
	}
	switch s.Trouble {
	case record.None:
		app.logger.Info("the transparency log can be added to again", fields...)
	case record.Failed:
		app.logger.Warn("nothing can be added to the transparency log, it is tried again", fields...)
	default:
		app.logger.Error("nothing is added to the transparency log, which is not as it was signed", fields...)
	}
}

// logOn returns the log of a tree; nil: it has none.
func (a *App) logOn(from source.Source) (of tlogKey, log *pooledTlog) {
	a.logging.Lock()
	defer a.logging.Unlock()
	for key, p := range a.logs {
		if key.source == from {
			return key, p
		}
	}
	return tlogKey{}, nil
}

// replaces returns since when the log of a tree has a package with other bytes only; zero if it
// has not.
func (a *App) replaces(from source.Source, about address.Address, version string, on address.Platform, h1 string, sum wire.SHA256) time.Time {
	if _, p := a.logOn(from); p != nil {
		return p.Replaces(about, version, on, h1, sum)
	}
	return time.Time{}
}

// awaitRecord waits until a package in a tree is on record, or for the end of ctx. It reports
// whether the package may be handed out. If it need not be on record, it does not wait for a log
// to which nothing can be added.
func (a *App) awaitRecord(ctx context.Context, from source.Source, about address.Address, version string, on address.Platform) bool {
	key, p := a.logOn(from)
	if p == nil || !key.recorded && (p.Log() == nil || p.State().Trouble != record.None) {
		return true
	}
	for _, x := range a.indexesOf(from) {
		x.Refresh(tree.ReportedFolder(about), tree.ReportedKeys)
	}
	return p.Await(ctx, about, version, on) || !key.recorded
}

// A treeRecord is what is published in a tree compared with and waits for: the log of the tree, of whichever handler it is
// an option.
type treeRecord struct {
	app  *App
	tree servedTree
}

// Replaces implements publish.Record.
func (r treeRecord) Replaces(about address.Address, version string, on address.Platform, h1 string, sum wire.SHA256) time.Time {
	return r.app.usable().replaces(r.tree.source, about, version, on, h1, sum)
}

// Await implements publish.Record.
func (r treeRecord) Await(ctx context.Context, about address.Address, version string, on address.Platform) bool {
	key, p := r.app.usable().logOn(r.tree.source)
	if p == nil || key.require != r.tree.require {
		return true // nothing that is offered here is entered
	}
	return p.Await(ctx, about, version, on)
}

// ledger returns what the offers of a tree are compared with; nil: they are not.
func (a *App) ledger(from source.Source) index.Ledger {
	if _, p := a.logOn(from); p != nil {
		return p
	}
	return nil // not a nil *pooledTlog
}

// enterOffers has the log of a handler's tree enter what an index offers. Of several indexes of
// the tree, which offer the same, one counts.
func (a *App) enterOffers(x *index.Index, t servedTree) {
	key, p := a.logOn(t.source)
	if p == nil || key.require != t.require {
		return
	}
	a.logging.Lock()
	for _, entering := range a.entered {
		if entering == p {
			a.logging.Unlock()
			return
		}
	}
	a.entered[x] = p
	a.logging.Unlock()
	if s := x.Snapshot(); s != nil {
		p.Offered(s, nil)
	}
}

// offered hands the newest snapshot of an index to its log, if it has one.
func (a *App) offered(x *index.Index, s *index.Snapshot, changed []address.Address) {
	a.logging.Lock()
	p := a.entered[x]
	a.logging.Unlock()
	if p != nil {
		p.Offered(s, changed)
	}
}

// localLogs returns the folders of the logs on the local disk.
func (a *App) localLogs() (folders []string) {
	for _, t := range a.logged {
		if (t.key.source.FS == nil || t.key.onDisk) && !slices.Contains(folders, t.key.folder) {
			folders = append(folders, t.key.folder)
		}
	}
	return folders
}

// maxTlogCalls limits the calls that wait for a storage that hangs.
const maxTlogCalls = 4

// logOf returns the log in its folder, with its key and checkpoint in Caddy's storage.
func logOf(key tlogKey, newest func() (certmagic.Storage, error)) vault.Log {
	return vault.Log{
		Files: tlog.NewFolder(key.open), Storage: storage.NewCalls(newest, maxTlogCalls),
		Origin: key.origin, Fixed: key.named, Private: key.private,
	}
}
