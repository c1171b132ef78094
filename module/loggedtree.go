package module

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"sync/atomic"

	"github.com/caddyserver/certmagic"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/mod/sumdb/note"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog/record"
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

// addTlog returns the log of a tree. It is for handlers that are being provisioned.
func (a *App) addTlog(key tlogKey) (*loggedTree, error) {
	for _, other := range a.logged {
		if alike := key; !key.named && !other.key.named {
			if alike.origin = other.key.origin; alike == other.key { // sites with other names
				key = alike
			}
		}
		if other.key != key && other.key.folder == key.folder && other.key.source.FS == key.source.FS {
			return nil, fmt.Errorf("tlog: two registries use the folder %s with different options: use the same tree, hostnames, origin and key, or name another folder", key.folder)
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
			p.Recorder = record.New(record.Options{
				Open: func(ctx context.Context) (*tlog.Log, error) {
					o, err := newTlogFiles(key, p.storage).options(ctx, true)
					if err != nil {
						return nil, err
					}
					return tlog.Open(ctx, o)
				},
				Hostnames: key.names(),
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

// offered tells the log of a tree, if it has one, what is offered.
func (a *App) offered(t servedTree, s *index.Snapshot) {
	a.logging.Lock()
	defer a.logging.Unlock()
	for key, p := range a.logs {
		if key.source == t.source {
			p.Offered(s)
		}
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
	Root    string // of the tree
	Folder  string
	Options func(context.Context) (tlog.Options, error)
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
		files := newTlogFiles(key, a.storageOf())
		all = append(all, TlogFiles{t.key.source.Directories.Root, t.key.folder, func(ctx context.Context) (tlog.Options, error) {
			if t.key.made { // the server makes it
				if _, err := os.Stat(t.key.folder); err != nil {
					return tlog.Options{}, err
				}
			}
			return files.options(ctx, false)
		}})
	}
	return all
}

// tlogFiles are a log in its folder, with what is kept of it in Caddy's storage: the newest
// checkpoint, and the private key.
type tlogFiles struct {
	key    tlogKey
	store  tlog.Store
	origin string
	storageCalls
}

// maxTlogCalls limits the calls that wait for a storage that hangs.
const maxTlogCalls = 4

func newTlogFiles(key tlogKey, storage func() (certmagic.Storage, error)) *tlogFiles {
	return &tlogFiles{key: key, store: tlog.NewFolder(key.open), origin: key.origin, storageCalls: newStorageCalls(storage, maxTlogCalls)}
}

func (f *tlogFiles) name(file string) string {
	return path.Join("terraform_registry", "tlog", url.QueryEscape(f.origin), file)
}

// privateName is the name of a private key. Each key has its own: instances that begin a log
// at the same time generate one each, and the log's folder decides which counts.
func (f *tlogFiles) privateName(v note.Verifier) string {
	return f.name(fmt.Sprintf("key-%08x", v.KeyHash()))
}

// Load implements tlog.Anchor.
func (f *tlogFiles) Load(ctx context.Context) ([]byte, error) {
	return f.load(ctx, f.name("checkpoint"))
}

// Store implements tlog.Anchor.
func (f *tlogFiles) Store(ctx context.Context, checkpoint []byte) error {
	return f.save(ctx, f.name("checkpoint"), checkpoint)
}

func (f *tlogFiles) load(ctx context.Context, name string) ([]byte, error) {
	return call(ctx, f.storageCalls, func(s certmagic.Storage) ([]byte, error) { return s.Load(ctx, name) })
}

func (f *tlogFiles) save(ctx context.Context, name string, value []byte) error {
	_, err := call(ctx, f.storageCalls, func(s certmagic.Storage) (struct{}, error) { return struct{}{}, s.Store(ctx, name, value) })
	return err
}

// options returns the options of the log. If there is no log yet, it begins one, or the error
// is fs.ErrNotExist.
func (f *tlogFiles) options(ctx context.Context, begins bool) (tlog.Options, error) {
	public, verifier, err := tlog.StoredKey(ctx, f.store)
	if errors.Is(err, fs.ErrNotExist) && begins {
		if err := f.begin(ctx); err != nil {
			return tlog.Options{}, err
		}
		public, verifier, err = tlog.StoredKey(ctx, f.store)
	}
	if err != nil {
		return tlog.Options{}, err
	}
	if f.key.named && verifier.Name() != f.key.origin {
		return tlog.Options{}, fmt.Errorf("the log in this folder is called %s, and the configuration calls it %s: the name is fixed when a log is begun", verifier.Name(), f.key.origin)
	}
	f.origin = verifier.Name()
	o := tlog.Options{Origin: f.origin, Public: public, Verifiers: []note.Verifier{verifier}, Store: f.store, Anchor: f}
	if !begins {
		return o, nil // it is only read
	}
	private := []byte(f.key.private)
	if f.key.private == "" {
		private, err = f.load(ctx, f.privateName(verifier))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return tlog.Options{}, fmt.Errorf("the private key of the log is gone: restore %s in Caddy's storage", f.privateName(verifier))
		case err != nil:
			return tlog.Options{}, fmt.Errorf("loading the private key of the log: %w", err)
		}
	}
	k, err := tlog.ReadKey(string(private))
	if err != nil {
		return tlog.Options{}, fmt.Errorf("the private key of the log: %w", err)
	}
	if k.Public != public {
		return tlog.Options{}, errors.New("the log was begun with another key: configure that one")
	}
	o.Signers = []note.Signer{k.Signer}
	return o, nil
}

// begin gives a folder without a log its key, by a file whose creation fails if it exists.
// The private key is stored before.
func (f *tlogFiles) begin(ctx context.Context) error {
	empty, err := tlog.IsEmpty(ctx, f.store)
	if err != nil {
		return fmt.Errorf("reading the log: %w", err)
	}
	_, err = f.Load(ctx)
	switch {
	case err == nil || !empty:
		return fmt.Errorf("%w: its folder has no file key any more", tlog.ErrBehind)
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("reading the newest checkpoint of the log: %w", err)
	}
	private := f.key.private
	if private == "" {
		if private, err = tlog.GenerateKey(f.origin); err != nil {
			return err
		}
	}
	k, err := tlog.ReadKey(private)
	if err != nil {
		return err
	}
	generated := f.key.private == ""
	if generated {
		if err := f.save(ctx, f.privateName(k.Verifier), []byte(private)); err != nil {
			return fmt.Errorf("storing the private key of the log: %w", err)
		}
	}
	err = tlog.StoreKey(ctx, f.store, k.Public)
	if errors.Is(err, fs.ErrExist) && generated {
		_, _ = call(ctx, f.storageCalls, func(s certmagic.Storage) (struct{}, error) {
			return struct{}{}, s.Delete(ctx, f.privateName(k.Verifier)) // another instance was first
		})
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("writing the log: %w", err)
	}
	return nil
}

// Interface guards
var _ tlog.Anchor = (*tlogFiles)(nil)
