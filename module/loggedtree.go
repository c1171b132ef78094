package module

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/caddyserver/certmagic"
	svchost "github.com/hashicorp/terraform-svchost"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/module/storage"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog/record"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog/vault"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

var tlogPool = newPool[tlogKey, *pooledTlog]()

// A pooledTlog is the log of a tree and the apps that use it.
type pooledTlog struct {
	*record.Recorder
	users[struct{}]
}

// A loggedTree gives a handler the log of its tree, as soon as the app has started.
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

// Replaces implements publish.Record.
func (t *loggedTree) Replaces(a address.Address, version string, on address.Platform, h1 string, sum wire.SHA256) time.Time {
	if p := t.log.Load(); p != nil {
		return p.Replaces(a, version, on, h1, sum)
	}
	return time.Time{}
}

// Await implements publish.Record.
func (t *loggedTree) Await(ctx context.Context, a address.Address, version string, on address.Platform) (recorded bool) {
	p := t.log.Load()
	return p != nil && p.Await(ctx, a, version, on)
}

// addTlog returns the log of a tree. It is for handlers that are being provisioned.
func (a *App) addTlog(key tlogKey) (*loggedTree, error) {
	for _, other := range a.logged {
		if alike := key; !key.named && !other.key.named {
			if alike.origin = other.key.origin; alike == other.key { // sites with other names
				key = alike
			}
		}
		sameFolder := other.key.folder == key.folder && other.key.source.FS == key.source.FS
		if other.key.origin == key.origin && !sameFolder {
			return nil, fmt.Errorf("tlog: two logs are called %s, in the folders %s and %s: give one another origin", key.origin, other.key.folder, key.folder)
		}
		if other.key != key && sameFolder {
			return nil, fmt.Errorf("tlog: two registries use the folder %s with different options: use the same tree, hostnames, signatures, origin and key, or name another folder", key.folder)
		}
	}
	t := &loggedTree{key: key}
	a.logged = append(a.logged, t)
	return t, nil
}

// acquireTlog takes the log of a tree from the pool, and begins to read it if it is new.
func (a *App) acquireTlog(t *loggedTree) error {
	a.logging.Lock()
	defer a.logging.Unlock()
	pooled := a.logs[t.key]
	if pooled == nil {
		key := t.key
		var err error
		pooled, _, err = tlogPool.acquire(key, func() (*pooledTlog, error) {
			p := new(pooledTlog)
			p.attach(a, struct{}{}) // its storage is needed at once
			var opening tlog.Opening
			p.Recorder = record.New(record.Options{
				Open: func(ctx context.Context) (*tlog.Log, error) {
					o, err := logOf(key, p.storage).Open(ctx)
					if err != nil {
						return nil, err
					}
					return opening.Open(ctx, o)
				},
				Hostnames: key.names(),
				Learned:   func(addresses ...address.Address) { p.compare(key.source, addresses) },
				Changed:   func(s record.State) { p.tell(key, s) },
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
	}
	t.log.Store(pooled)
	return nil
}

// Destruct implements caddy.Destructor.
func (p *pooledTlog) Destruct() error {
	p.Close()
	return nil
}

// compare has the indexes of a tree compare addresses with the log, or everything.
func (p *pooledTlog) compare(source tree.Source, addresses []address.Address) {
	app := p.newest()
	if app == nil {
		return
	}
	for _, x := range app.indexesOf(source) {
		x.Compare(addresses...)
	}
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

// replaces returns since when a log of a tree has a package with other bytes only; zero if none
// has.
func (a *App) replaces(source tree.Source, about address.Address, version string, on address.Platform, h1 string, sum wire.SHA256) time.Time {
	a.logging.Lock()
	defer a.logging.Unlock()
	for key, p := range a.logs {
		if key.source == source {
			return p.Replaces(about, version, on, h1, sum)
		}
	}
	return time.Time{}
}

// ledger returns what the offers of a tree are compared with; nil: they are not.
func (a *App) ledger(source tree.Source) index.Ledger {
	a.logging.Lock()
	defer a.logging.Unlock()
	for key, p := range a.logs {
		if key.source == source {
			return p
		}
	}
	return nil
}

// log has the log of a handler's tree enter what an index offers. Of several indexes of the
// tree, which may offer the same, one counts.
func (a *App) log(x *index.Index, t servedTree) {
	a.logging.Lock()
	defer a.logging.Unlock()
	for key, p := range a.logs {
		if key.source != t.source || key.require != t.require || a.logOf[x] == p {
			continue
		}
		if slices.Contains(slices.Collect(maps.Values(a.logOf)), p) {
			continue
		}
		a.logOf[x] = p
		if s := x.Snapshot(); s != nil {
			p.Offered(s, nil)
		}
	}
}

// offered tells the log, if the index has one, what is offered.
func (a *App) offered(x *index.Index, s *index.Snapshot, changed []address.Address) {
	a.logging.Lock()
	p := a.logOf[x]
	a.logging.Unlock()
	if p != nil {
		p.Offered(s, changed)
	}
}

var (
	metricTlogEntries = prometheus.NewDesc("caddy_terraform_registry_tlog_entries",
		"Entries of the transparency log, as it was signed last.", []string{"folder"}, nil)
	metricTlogWaiting = prometheus.NewDesc("caddy_terraform_registry_tlog_waiting",
		"Providers and modules with something that may have to be entered in the transparency log.", []string{"folder"}, nil)
	metricTlogFailing = prometheus.NewDesc("caddy_terraform_registry_tlog_failing",
		"Whether nothing can be added to the transparency log, by reason.", []string{"folder", "reason"}, nil)
)

// collectTlogs adds the metrics of all logs.
func (a *App) collectTlogs(gauge func(d *prometheus.Desc, value float64, labels ...string)) {
	a.logging.Lock()
	logs := make(map[string]*pooledTlog, len(a.logs))
	for _, t := range a.logged { // in the order of the configuration
		p, folder := a.logs[t.key], t.key.folder
		for n := 2; logs[folder] != nil && logs[folder] != p; n++ {
			folder = fmt.Sprintf("%s#%d", t.key.folder, n)
		}
		if p != nil {
			logs[folder] = p
		}
	}
	a.logging.Unlock()
	for folder, p := range logs {
		if l := p.Log(); l != nil {
			gauge(metricTlogEntries, float64(l.Head().Size), folder)
		}
		state := p.State()
		gauge(metricTlogWaiting, float64(state.Waiting), folder)
		for _, reason := range []record.Trouble{record.Behind, record.Forked, record.Failed} {
			value := 0.0
			if state.Trouble == reason {
				value = 1
			}
			gauge(metricTlogFailing, value, folder, string(reason))
		}
	}
}

// A TlogFiles are the files of a log, for commands that read them.
type TlogFiles struct {
	Root      string // of the tree
	Folder    string
	Hostnames []svchost.Hostname // of the registry
	Options   func(context.Context) (tlog.Options, error)
}

// Tlogs returns the logs of the configuration. It changes nothing in them.
func (a *App) Tlogs() (all []TlogFiles) {
	seen := make(map[tlogKey]bool)
	for _, t := range a.logged {
		if seen[t.key] {
			continue
		}
		seen[t.key] = true
		key := t.key
		key.made = false
		files := logOf(key, a.storageOf())
		all = append(all, TlogFiles{t.key.source.Directories.Root, t.key.folder, t.key.names(), func(ctx context.Context) (tlog.Options, error) {
			if t.key.made { // the server makes it
				if _, err := os.Stat(t.key.folder); err != nil {
					return tlog.Options{}, err
				}
			}
			return files.Read(ctx)
		}})
	}
	return all
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
