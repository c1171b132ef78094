package module

import (
	"cmp"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

// indexes are the ones in use, by poolKey. They outlive the configurations
// that use them, which is what makes a reload free.
var indexes = caddy.NewUsagePool()

// A poolKey is everything that what a scan finds depends on. Two sites, or two
// configurations one after the other, share an index if their keys are equal.
type poolKey struct {
	// fsys is a named file system, nil for the local disk. Caddy hands out a
	// new value with every configuration: the module behind it may have been
	// given other credentials, so its index is not carried over either.
	fsys        fs.FS
	directories index.Directories
	require     bool
	rescan      time.Duration
	signer      string // the public key in armor, empty without
}

// compare orders keys, so that what is told of indexes has an order.
func (k poolKey) compare(other poolKey) int {
	return cmp.Or(
		strings.Compare(k.directories.Root, other.directories.Root),
		strings.Compare(fmt.Sprintf("%+v", k), fmt.Sprintf("%+v", other)),
	)
}

// A pooledIndex is an index and the apps that use it. Apps are of one
// configuration: an index that kept the logger of one that is gone would pin
// all of it and write to closed outputs.
type pooledIndex struct {
	*index.Index

	mu    sync.Mutex
	users []user
}

type user struct {
	app      *App
	observer *index.Observer
}

// attach makes the index tell a further app what it does, until it is detached.
func (p *pooledIndex) attach(app *App, observer *index.Observer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.users = append(p.users, user{app, observer})
	p.Observe(observer)
}

// detach makes the index forget the app, and tell the newest that remains.
// The order is not that of attaching: usually the older configuration goes, but
// it is the newer one if that failed to start.
func (p *pooledIndex) detach(app *App) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.users = slices.DeleteFunc(p.users, func(u user) bool { return u.app == app })
	if len(p.users) == 0 {
		p.Observe(nil)
		return
	}
	p.Observe(p.users[len(p.users)-1].observer)
}

// Interface guards
var _ caddy.Destructor = (*pooledIndex)(nil)
