package module

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-terraform/caddy-terraform-registry/module/option"
	"github.com/caddy-terraform/caddy-terraform-registry/module/storage"
	"github.com/caddy-terraform/caddy-terraform-registry/usage"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// Usage counts downloads of packages. Neither IP addresses nor names of clients are kept.
type Usage struct {
	// What else to count of private providers and modules: who was told where their packages
	// are, by `subject`, the name of the user, or by `group`, the groups of the user that
	// `access` names. Only those who may manage an address are shown that. Default: neither.
	By string `json:"by,omitempty"`

	// How long counts are kept, in whole days. Between `1d` and `3660d`. Default: `400d`.
	Keep caddy.Duration `json:"keep,omitempty"`
}

const (
	defaultUsageKeep = caddy.Duration(400 * 24 * time.Hour)
	maxUsageKeep     = 3660 * 24 * time.Hour
)

// Validate checks the options.
func (u *Usage) Validate() error {
	if u.By != "" && u.By != usage.BySubject && u.By != usage.ByGroup {
		return fmt.Errorf("usage: by is either %s or %s, not %q", usage.BySubject, usage.ByGroup, u.By)
	}
	if keep := time.Duration(u.Keep); keep != 0 && (keep < 24*time.Hour || keep > maxUsageKeep) {
		return fmt.Errorf("usage: keep is %s, which is not between 1d and %dd", keep, maxUsageKeep/(24*time.Hour))
	}
	return nil
}

var usagePool = newPool[usageKey, *pooledUsage]()

// A usageKey is everything that the counts of a tree depend on. For how long they are kept is not in
// it: after a reload, downloads end that began before, and are counted too.
type usageKey struct {
	identity string // of the tree
	root     string
}

// A pooledUsage counts the downloads from a tree, for the apps that use it. They are kept for as long
// as the newest one wants.
type pooledUsage struct {
	*usage.Counter
	users[time.Duration]
}

// provisionUsage has the handler count downloads. Nothing is read or written before the app
// starts.
func (h *Handler) provisionUsage(app *App, repl *caddy.Replacer, t servedTree) error {
	if h.Usage == nil {
		return nil
	}
	if err := option.Expand(repl, option.Scalar("usage: by", &h.Usage.By)); err != nil {
		return err
	}
	if err := h.Usage.Validate(); err != nil {
		return err
	}
	pooled, err := app.acquireUsage(usageKey{t.identity(), t.root()}, time.Duration(cmp.Or(h.Usage.Keep, defaultUsageKeep)))
	if err != nil {
		return err
	}
	h.registry.Usage, h.registry.UsageBy = pooled.Counter, h.Usage.By
	return nil
}

// acquireUsage returns the counts of a tree. The app holds one reference to them, however many
// of its handlers use them.
func (a *App) acquireUsage(key usageKey, keep time.Duration) (*pooledUsage, error) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if acquired := a.usage[key]; acquired != nil {
		if other := a.keepUsage[key]; other != keep {
			return nil, fmt.Errorf("usage: two registries with the root %s keep counts for %s and for %s: choose one", key.root, other, keep)
		}
		return acquired, nil
	}
	pooled, _, err := usagePool.acquire(key, func() (*pooledUsage, error) {
		p := new(pooledUsage)
		p.standIn = liveApp // a download may end after its configuration
		p.Counter = usage.NewCounter(usage.Options{
			Storage: storage.NewUsage(p.storage, p.lock, key.identity),
			Keep:    keep,
			Warn:    func(message string, err error) { p.warn(key, message, err) },
		})
		p.use = func(keep time.Duration) {
			if keep > 0 {
				p.Keep(keep)
			}
		}
		return p, nil
	})
	if err != nil {
		return nil, err
	}
	a.usage[key], a.keepUsage[key] = pooled, keep
	return pooled, nil
}

// attach has the counts use the storage of this app from now on, and keeps them for as long as it wants.
func (p *pooledUsage) attach(a *App, keep time.Duration) {
	p.users.attach(a, keep)
	p.Run()
}

// Destruct implements caddy.Destructor.
func (p *pooledUsage) Destruct() error { return p.Close() }

func (p *pooledUsage) warn(key usageKey, message string, err error) {
	app := p.newest()
	if app == nil {
		return
	}
	fields := []any{"root", key.root}
	if err != nil {
		fields = append(fields, "error", err.Error())
	}
	app.logger.Warn(message, fields...)
}

var (
	errNothingCounted = errors.New("no registry with such a root counts downloads: turn that on with the option usage")
	errNoDays         = errors.New("days is a number, or 0 for none")
)

// describeUsage returns the usage of all trees, by their root.
func describeUsage(r *http.Request, app *App) (any, error) {
	root, days := r.URL.Query().Get("root"), usage.RecentDays
	if asked := r.URL.Query().Get("days"); asked != "" {
		n, err := strconv.Atoi(asked)
		if err != nil || n < 0 {
			return nil, caddy.APIError{HTTPStatus: http.StatusBadRequest, Err: errNoDays}
		}
		days = n
	}
	app.mutex.Lock()
	counters := make(map[string]*usage.Counter)
	for _, key := range slices.SortedFunc(maps.Keys(app.usage), func(a, b usageKey) int { return strings.Compare(a.identity, b.identity) }) {
		if root == "" || root == key.root {
			counters[unusedName(key.root, counters)] = app.usage[key].Counter // as of indexes: other folders of the same root
		}
	}
	app.mutex.Unlock()
	if len(counters) == 0 {
		return nil, caddy.APIError{HTTPStatus: http.StatusNotFound, Err: errNothingCounted}
	}
	all := make(map[string]*wire.TreeUsage)
	for root, c := range counters {
		all[root] = c.All(days)
	}
	return all, nil
}
