package module

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/fill"
)

// fillers are the ones in use, by fillerKey. They outlive the configurations
// that use them: a reload neither cuts off what is being fetched nor forgets
// what is known of origins.
var fillers = caddy.NewUsagePool()

// A fillerKey is everything that a filler depends on. The options hold tokens,
// so it is never logged.
type fillerKey struct {
	directories index.Directories
	options     string // in JSON
}

// retirement is how long what nobody uses any more may go on fetching: requests
// outlive the configuration they came to.
const retirement = 10 * time.Minute

// A pooledFiller is a filler and the apps that use it. It works with the logger
// and the storage of the newest: a configuration that is gone has closed its own.
type pooledFiller struct {
	*fill.Filler

	tidying  sync.Once
	mutex    sync.Mutex // guards what follows
	users    []*App
	counters map[fillCount]*fillCounter
}

// fill returns the filler with a key, which this app then holds one reference to
// however many of its handlers ask.
func (a *App) fill(key fillerKey, options func() (fill.Options, error)) (*pooledFiller, error) {
	a.holding.Lock()
	defer a.holding.Unlock()
	if held := a.filling[key]; held != nil {
		return held, nil
	}
	value, _, err := fillers.LoadOrNew(key, func() (caddy.Destructor, error) {
		o, err := options()
		if err != nil {
			return nil, err
		}
		p := &pooledFiller{counters: make(map[fillCount]*fillCounter)}
		o.Lock, o.Observe, o.Logger = p.lock, p.observe, slog.New(fillLog{p})
		p.Filler, err = fill.New(o)
		return p, err
	})
	if err != nil {
		return nil, err
	}
	pooled := value.(*pooledFiller)
	a.filling[key] = pooled
	return pooled, nil
}

// attach has the filler use this app from now on, and tidies up after an earlier
// process that was killed.
func (p *pooledFiller) attach(a *App) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.users = append(p.users, a)
	p.tidying.Do(func() { go p.RemoveLeftovers(context.Background()) })
}

// detach has it use the newest that remains: not always an older configuration
// goes, but the newer one if that failed to start.
func (p *pooledFiller) detach(a *App) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.users = slices.DeleteFunc(p.users, func(user *App) bool { return user == a })
}

// newest is the app it works for; nil if there is none.
func (p *pooledFiller) newest() *App {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if len(p.users) == 0 {
		return nil
	}
	return p.users[len(p.users)-1]
}

// Destruct implements caddy.Destructor. What is being fetched may come to its
// end.
func (p *pooledFiller) Destruct() error {
	time.AfterFunc(retirement, p.Close)
	return nil
}

var errNoConfiguration = errors.New("the configuration that had the storage has gone")

// lock has one instance of a cluster fetch what several are asked for.
func (p *pooledFiller) lock(ctx context.Context, name string) (unlock func(), err error) {
	app := p.newest()
	if app == nil {
		return nil, errNoConfiguration
	}
	storage := app.ctx.Storage()
	if err := storage.Lock(ctx, name); err != nil {
		return nil, err
	}
	return func() {
		// A lock that is left behind is found to be stale in time.
		if err := storage.Unlock(context.WithoutCancel(ctx), name); err != nil {
			app.logger.Warn("unlocking what an upstream fills", "lock", name, "error", err.Error())
		}
	}, nil
}

// A fillLog writes to the log of the newest configuration.
type fillLog struct{ *pooledFiller }

func (l fillLog) handler() slog.Handler {
	if app := l.newest(); app != nil {
		return app.logger.Handler()
	}
	return slog.DiscardHandler
}

// Enabled implements slog.Handler.
func (l fillLog) Enabled(ctx context.Context, level slog.Level) bool {
	return l.handler().Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (l fillLog) Handle(ctx context.Context, r slog.Record) error { return l.handler().Handle(ctx, r) }

// WithAttrs implements slog.Handler.
func (l fillLog) WithAttrs(attrs []slog.Attr) slog.Handler { return l.handler().WithAttrs(attrs) }

// WithGroup implements slog.Handler.
func (l fillLog) WithGroup(name string) slog.Handler { return l.handler().WithGroup(name) }

// Interface guards
var (
	_ caddy.Destructor = (*pooledFiller)(nil)
	_ slog.Handler     = fillLog{}
)
