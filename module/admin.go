package module

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/keys"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

func init() {
	caddy.RegisterModule(Admin{})
}

// Admin adds to Caddy's admin API:
//
//   - `GET /terraform_registry/indexes`: the served trees, with numbers of their
//     offers, and the progress of a scan that reads archives;
//   - `GET /terraform_registry/report`: everything that is offered, withheld and
//     ignored, with reasons; with `?root=` for one tree only;
//   - `POST /terraform_registry/rescan`: scans all trees, or the tree of `?root=`, and
//     answers when the scan is complete;
//   - `POST /terraform_registry/keys/forget?namespace=acme`: forgets the keys that a
//     namespace had and whose keys file is gone, so that its releases need no keys any
//     more. For a mirrored namespace, it is `HOSTNAME/NAMESPACE`. With `?root=` in that
//     tree only;
//   - `GET /terraform_registry/usage`: how often everything was downloaded, by the root of
//     the tree; with `?root=` for one tree only. `?days=` is the number of days that it has
//     one by one, 30 by default;
//   - `GET
//     /terraform_registry/access?as=USER&group=GROUP&right=read&address=acme/vpc/aws`:
//     for each registry, whether its rules allow that, and which rule decides. `group`
//     can be repeated; without `as`, the request is anonymous.
type Admin struct{}

// CaddyModule returns the Caddy module information.
func (Admin) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "admin.api.terraform_registry",
		New: func() caddy.Module { return new(Admin) },
	}
}

// Provision adds the metrics of the registry to Caddy's `/metrics`. Caddy provisions the endpoint of the admin API before
// the apps of a configuration.
func (*Admin) Provision(ctx caddy.Context) error { return registerMetrics(ctx) }

// Routes implements caddy.AdminRouter.
func (Admin) Routes() []caddy.AdminRoute {
	route := func(name, method string, serve func(*http.Request, *App) (any, error)) caddy.AdminRoute {
		return caddy.AdminRoute{
			Pattern: "/terraform_registry/" + name,
			Handler: caddy.AdminHandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
				if r.Method != method {
					w.Header().Set("Allow", method)
					return caddy.APIError{HTTPStatus: http.StatusMethodNotAllowed, Err: fmt.Errorf("use %s", method)}
				}
				// Admin routers are created before any configuration is live.
				app, err := ConfiguredApp(caddy.ActiveContext())
				if errors.Is(err, caddy.ErrNotConfigured) {
					app, err = new(App), nil
				}
				if err != nil {
					return caddy.APIError{HTTPStatus: http.StatusInternalServerError, Err: err}
				}
				answer, err := serve(r, app)
				if err != nil {
					return err
				}
				w.Header().Set("Content-Type", "application/json")
				return json.NewEncoder(w).Encode(answer)
			}),
		}
	}
	return []caddy.AdminRoute{
		route("indexes", http.MethodGet, onIndexes(listIndexes)),
		route("report", http.MethodGet, onIndexes(reportIndexes)),
		route("rescan", http.MethodPost, rescanIndexes),
		route("access", http.MethodGet, decideAccess),
		route("usage", http.MethodGet, describeUsage),
		route("keys/forget", http.MethodPost, forgetKeys),
	}
}

// onIndexes serves a request with the index of `?root=`, or with all indexes.
func onIndexes(serve func(*http.Request, map[string]*index.Index) (any, error)) func(*http.Request, *App) (any, error) {
	return func(r *http.Request, app *App) (any, error) {
		found, err := selectIndexes(r, app)
		if err != nil {
			return nil, err
		}
		return serve(r, found)
	}
}

func selectIndexes(r *http.Request, app *App) (map[string]*index.Index, error) {
	found := app.ByRoot()
	root := r.URL.Query().Get("root")
	if root == "" {
		return found, nil
	}
	if found[root] == nil {
		return nil, caddy.APIError{HTTPStatus: http.StatusNotFound, Err: fmt.Errorf("no tree with the root %q is served", root)}
	}
	return map[string]*index.Index{root: found[root]}, nil
}

// decideAccess returns the decisions of the rules of each registry.
func decideAccess(r *http.Request, app *App) (any, error) {
	query := r.URL.Query()
	right, err := access.ParseRight(query.Get("right"))
	if err != nil {
		return nil, caddy.APIError{HTTPStatus: http.StatusBadRequest, Err: err}
	}
	address, err := access.ParseResource(query.Get("address"))
	if err != nil {
		return nil, caddy.APIError{HTTPStatus: http.StatusBadRequest, Err: err}
	}
	return app.Decide(access.Subject{ID: query.Get("as"), Groups: query["group"]}, right, address), nil
}

// An indexState describes an index in numbers.
type indexState struct {
	Offered  map[string]int      `json:"offered"`
	Withheld map[tree.Reason]int `json:"withheld"`
	Ignored  int                 `json:"ignored"`
	Pending  int                 `json:"pending"`

	Taken        time.Time `json:"taken"`
	ScanDuration float64   `json:"scan_duration_seconds"`
	Scans        uint64    `json:"scans"`
	Failed       uint64    `json:"failed"`

	Progress *progressState `json:"progress,omitempty"`
}

// A progressState is the progress of a scan that reads archives.
type progressState struct {
	Done           int     `json:"done"`
	Total          int     `json:"total"`
	Bytes          int64   `json:"bytes"`
	TotalBytes     int64   `json:"total_bytes"`
	BytesPerSecond int64   `json:"bytes_per_second"`
	Remaining      float64 `json:"remaining_seconds"`
}

func listIndexes(_ *http.Request, found map[string]*index.Index) (any, error) {
	states := make(map[string]indexState, len(found))
	for root, x := range found {
		stats := x.Stats()
		state := indexState{ScanDuration: stats.LastScan.Seconds(), Scans: stats.Scans, Failed: stats.Failed}
		if s := x.Snapshot(); s != nil {
			state.Offered, state.Withheld = s.Totals.Offered, s.Totals.Withheld
			state.Ignored, state.Pending, state.Taken = s.Totals.Ignored, s.Totals.Pending, s.Taken
		}
		if p := x.Progress(); p != nil {
			now := time.Now()
			state.Progress = &progressState{
				Done: p.Done, Total: p.Total, Bytes: p.DoneBytes, TotalBytes: p.TotalBytes,
				BytesPerSecond: p.Rate(now), Remaining: p.Remaining(now).Seconds(),
			}
		}
		states[root] = state
	}
	return states, nil
}

func reportIndexes(_ *http.Request, found map[string]*index.Index) (any, error) {
	reports := make(map[string]*index.Report, len(found))
	for root, x := range found {
		if s := x.Snapshot(); s != nil {
			reports[root] = s.Report()
		}
	}
	return reports, nil
}

// rescanIndexes scans, and announces changes to other instances, since the event of an
// object store reaches only one of them.
func rescanIndexes(r *http.Request, app *App) (any, error) {
	found, err := selectIndexes(r, app)
	if err != nil {
		return nil, err
	}
	var failed []error
	for _, root := range slices.Sorted(maps.Keys(found)) {
		x := found[root]
		before := digestOfOffers(x.Snapshot())
		now, err := x.Rescan(r.Context())
		switch {
		case err != nil: // the other trees are scanned all the same
			failed = append(failed, fmt.Errorf("scanning %s: %w", root, err))
		case before != nil && !bytes.Equal(before, digestOfOffers(now)):
			app.announce(x)
		}
	}
	if len(failed) > 0 {
		return nil, caddy.APIError{HTTPStatus: http.StatusServiceUnavailable, Err: errors.Join(failed...)}
	}
	return listIndexes(r, found)
}

// digestOfOffers returns a digest of the versions that a snapshot offers, and nil without a
// snapshot. The snapshot itself must not stay in memory while a large tree is read: it
// keeps all that was known of the tree at its time.
func digestOfOffers(s *index.Snapshot) []byte {
	if s == nil {
		return nil
	}
	h := sha256.New()
	json.NewEncoder(h).Encode(s.Report().Offered) // a hash accepts everything, and offers consist of text
	return h.Sum(nil)
}

// forgetKeys forgets the keys that a namespace had, and tells other instances. The
// answer has the roots of the trees in which the namespace had keys. Indexes of one
// tree share the copies of its keys.
func forgetKeys(r *http.Request, app *App) (any, error) {
	namespace, err := keys.ParseNamespace(r.URL.Query().Get("namespace"))
	if err != nil {
		return nil, caddy.APIError{HTTPStatus: http.StatusBadRequest, Err: err}
	}
	found, err := selectIndexes(r, app)
	if err != nil {
		return nil, err
	}
	forgotten := []string{}
	var refused error // the refusal of a tree
	for _, root := range slices.Sorted(maps.Keys(found)) {
		x := found[root]
		switch err := x.ForgetKeys(r.Context(), namespace); {
		case errors.Is(err, keys.ErrNoCopy):
			continue
		case errors.Is(err, keys.ErrNotGone):
			refused = caddy.APIError{HTTPStatus: http.StatusConflict, Err: fmt.Errorf("%s: %w", root, err)}
			continue
		case err != nil:
			return nil, caddy.APIError{HTTPStatus: http.StatusServiceUnavailable, Err: fmt.Errorf("%s: %w", root, err)}
		}
		app.announce(x)
		forgotten = append(forgotten, root)
	}
	switch {
	case len(forgotten) == 0 && refused != nil:
		return nil, refused
	case len(forgotten) == 0:
		return nil, caddy.APIError{HTTPStatus: http.StatusNotFound, Err: fmt.Errorf("%s: %w", r.URL.Query().Get("namespace"), keys.ErrNoCopy)}
	}
	app.logger.Info("forgot the keys of "+r.URL.Query().Get("namespace"), "roots", forgotten)
	return forgotten, nil
}

// An AccessDecision is the decision of the rules of one registry.
type AccessDecision struct {
	// Root is the root of the registry, absolute on the local disk.
	Root string `json:"root"`

	Allowed bool `json:"allowed"`

	// Text is the decision as a sentence, with the rule that decides.
	Text string `json:"text"`

	// Hosted reports whether the address is hosted by the registry, not mirrored.
	Hosted bool `json:"hosted"`

	// Note is a warning about the interpretation of the address, or empty.
	Note string `json:"note,omitempty"`
}

// Decide asks the rules of every registry of the configuration whether s has the right
// to the address, in the order in which Caddy provisions the registries. It
// authenticates nothing: the subject is assumed to be authenticated.
//
// An address with the hostname of a site is hosted there even without the option
// hostname, as for clients that use this hostname.
func (a *App) Decide(s access.Subject, right access.Right, address access.Resource) []AccessDecision {
	decisions := make([]AccessDecision, len(a.handlers))
	for i, h := range a.handlers {
		decisions[i] = h.decide(s, right, address)
	}
	return decisions
}

func (h *Handler) decide(s access.Subject, right access.Right, a access.Resource) AccessDecision {
	names := h.registry.Hostnames
	if slices.Contains(names, a.Hostname) || len(names) == 0 && matchesHost(h.site, string(a.Hostname)) {
		a.Hosted, a.Hostname = true, ""
	}
	d := AccessDecision{Root: h.source.tree.root(), Hosted: a.Hosted}
	if h.registry.Rules == nil {
		d.Allowed, d.Text = right == access.Read, "denied: there are no access rules, and publishing and managing require one"
		if d.Allowed {
			d.Text = "allowed: there are no access rules, so everything is readable by anyone"
		}
		return d
	}
	if !a.Hosted && len(names) == 0 && len(h.site) == 0 {
		d.Note = fmt.Sprintf("%s is taken for the hostname of another registry: if it is one of this registry's, leave it out", a.Hostname.ForDisplay())
	}
	rules := h.registry.Rules.WithHostnames(names)
	decision := rules.Decide(s, right, a)
	verdict, why := "denied", ": no rule allows it"
	if decision.Allowed {
		verdict = "allowed"
	}
	switch {
	case decision.Rule == nil:
	case h.Access == nil:
		why = fmt.Sprintf(" by the rule that auth implies without access: %s", decision.Rule)
	default:
		number := slices.Index(slices.Collect(rules.All()), decision.Rule) + 1
		why = fmt.Sprintf(" by rule %d: %s", number, decision.Rule)
	}
	d.Allowed, d.Text = decision.Allowed, verdict+why
	return d
}

// Interface guards
var (
	_ caddy.AdminRouter = Admin{}
	_ caddy.Provisioner = (*Admin)(nil)
)
