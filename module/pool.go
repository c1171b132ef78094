package module

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/certmagic"
)

// A pool has values that outlive the configurations that use them: a reload reads nothing
// again, and interrupts nothing. The key of a value has everything that the value depends on.
// Each app holds one reference to a value, however many of its handlers use it.
type pool[K comparable, V pooledValue] struct{ uses *caddy.UsagePool }

type pooledValue interface {
	caddy.Destructor
	detach(*App)
}

func newPool[K comparable, V pooledValue]() pool[K, V] { return pool[K, V]{caddy.NewUsagePool()} }

// acquire takes a reference to the value of a key, and creates it if there is none.
func (p pool[K, V]) acquire(key K, create func() (V, error)) (v V, loaded bool, err error) {
	value, loaded, err := p.uses.LoadOrNew(key, func() (caddy.Destructor, error) { return create() })
	if err != nil {
		return v, false, err
	}
	return value.(V), loaded, nil
}

// release gives back the references that an app has. A value that no other app uses is
// destructed before the app is detached: it may still need the storage of the app.
func (p pool[K, V]) release(a *App, acquired map[K]V) error {
	var errs []error
	for key, v := range acquired {
		_, err := p.uses.Delete(key)
		errs = append(errs, err)
		v.detach(a)
	}
	return errors.Join(errs...)
}

var errNoConfiguration = errors.New("the configuration that had the storage has gone")

// users are the apps that use a pooled value, which works with the logger and the storage of
// the newest one. It must not keep the logger or the storage of a configuration that is
// gone: they would keep the whole configuration in memory, and are closed.
type users[T any] struct {
	// use is called with what the newest app has attached with, whenever another app
	// becomes the newest, and with the zero value when there is none any more. May be nil.
	use func(T)

	// standIn returns the app to work with while no app uses the value; nil if there is none.
	// May be nil.
	standIn func() *App

	mutex sync.Mutex
	all   []user[T] // in the order in which they attached
}

type user[T any] struct {
	app  *App
	with T
}

// attach adds an app.
func (u *users[T]) attach(app *App, with T) {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	u.all = append(u.all, user[T]{app, with})
	u.useNewest()
}

// detach removes an app. Usually the older configuration goes, but it is the newer one if
// that failed to start.
func (u *users[T]) detach(app *App) {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	u.all = slices.DeleteFunc(u.all, func(other user[T]) bool { return other.app == app })
	u.useNewest()
}

func (u *users[T]) useNewest() {
	if u.use != nil {
		u.use(u.last().with)
	}
}

func (u *users[T]) last() (last user[T]) {
	if n := len(u.all); n > 0 {
		last = u.all[n-1]
	}
	return last
}

// newest returns the app that has attached last, or the one that stands in; nil if there is
// none.
func (u *users[T]) newest() *App {
	u.mutex.Lock()
	last := u.last().app
	u.mutex.Unlock()
	if last == nil && u.standIn != nil {
		return u.standIn()
	}
	return last
}

// liveApp returns the app of the live configuration; nil if that has no registry.
func liveApp() *App {
	app, err := ConfiguredApp(caddy.ActiveContext())
	if err != nil {
		return nil
	}
	return app
}

// successor returns the app of the live configuration once ctx has ended, which is the context of a
// configuration or of what some configurations have used. Before, and if the live configuration
// has no registry, it returns nil. Caddy makes a configuration live before it ends the last one.
func successor(ctx context.Context) *App {
	if ctx.Err() == nil {
		return nil
	}
	return liveApp()
}

// usable returns the app whose storage and handlers of events can be used: this one, or its
// successor. Requests outlive their configuration, and its storage may be closed before they end.
func (a *App) usable() *App {
	if next := successor(a.ctx); next != nil {
		return next
	}
	return a
}

// storage returns the storage of the newest app.
func (u *users[T]) storage() (certmagic.Storage, error) {
	app := u.newest()
	if app == nil {
		return nil, errNoConfiguration
	}
	return app.storage()
}

// storage returns the storage of the app's configuration, or of its successor.
func (a *App) storage() (certmagic.Storage, error) { return a.usable().ctx.Storage(), nil }

// lock waits for a lock that all instances of a cluster share. If a reload closes the storage
// meanwhile, it goes on in the storage of the next configuration.
func (a *App) lock(ctx context.Context, name string) (unlock func(), err error) {
	for {
		app := a.usable()
		unlock, err = app.locks.Lock(ctx, app.storage, app.logger, name)
		if err == nil || ctx.Err() != nil || a.usable() == app {
			return unlock, err
		}
	}
}

// lock is App.lock of the newest app.
func (u *users[T]) lock(ctx context.Context, name string) (unlock func(), err error) {
	app := u.newest()
	if app == nil {
		return nil, errNoConfiguration
	}
	return app.lock(ctx, name)
}
