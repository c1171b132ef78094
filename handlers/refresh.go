package handlers

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/handlers/webhook"
	"github.com/caddy-terraform/caddy-terraform-registry/pull/follow"
	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
)

// A Follower looks at the git repositories of hosted modules. Usually it is a *follow.Follower.
type Follower interface {
	// Ready reports whether modules are known.
	Ready() bool

	// Tell has modules looked at, and returns at once.
	Tell(modules ...address.Address)

	// Has returns the repository of a module, and whether it has one.
	Has(module address.Address) (registryhcl.Git, bool)

	// ModulesIn returns the modules that are in one of the repositories with these URLs.
	ModulesIn(repositories ...string) []address.Address

	// Connections returns all modules that have a repository, in order.
	Connections() []follow.Connection
}

// Connections returns the modules with their repositories, and whether repositories are followed. It is
// for operators.
func (v *View) Connections() (all []follow.Connection, followed bool) {
	if v.registry.Follower == nil || !v.Operator() {
		return nil, false
	}
	return v.registry.Follower.Connections(), true
}

// Connection looks up a hosted module like Module, and returns it with its repository, and whether it
// has one that is followed. What came of the last look at the repository is for operators.
func (v *View) Connection(a address.Address) (c follow.Connection, connected bool) {
	g := v.registry
	if g.Follower == nil || v.resolve(a) != nil || !v.request.target.place.Hosted {
		return c, false
	}
	c.Module = v.request.target.WithHostname("")
	if c.Repository, connected = g.Follower.Has(c.Module); !connected {
		return c, false
	}
	all, _ := v.Connections()
	if i := slices.IndexFunc(all, func(other follow.Connection) bool { return other.Module == c.Module }); i >= 0 {
		return all[i], true
	}
	return c, true
}

// refreshName is the last segment of the paths that take webhooks: one for a module, and one for all
// modules of the repository that the webhook names.
const refreshName = "refresh"

// namesRefresh reports whether a path takes webhooks. module is the address in it, escaped; empty for
// the path of all modules.
func (g *Registry) namesRefresh(service servicePath) (module string, ok bool) {
	if g.Follower == nil || service.original != "" {
		return "", false
	}
	if service.protocol == "modules" {
		module, ok = strings.CutSuffix(service.rest, "/"+refreshName)
		return module, ok && strings.Count(module, "/") == 2
	}
	return "", service.protocol == refreshName
}

// refresh has repositories looked at for new tags, and answers before that is done. It takes the webhook
// of a code host, by the secret that the host shares with the registry, and requests of users who may
// publish the modules.
func (g *Registry) refresh(w http.ResponseWriter, r *request, module string) error {
	r.Kind = KindRefresh
	if r.snapshot = g.Snapshot(); r.snapshot == nil || !g.Follower.Ready() { // the first waits for the tree to be read
		return errStarting
	}
	body := newUploadBody(w, r.Request)
	defer body.release()
	body.until = time.Now().Add(webhookTime)
	var modules []address.Address
	var err error
	if module != "" {
		modules, err = g.refreshedModule(r, module, body)
	} else {
		modules, err = g.refreshedRepository(r, body)
	}
	if err != nil {
		return err
	}
	g.Follower.Tell(modules...)
	answer, _ := json.Marshal(map[string]int{"modules": len(modules)}) // numbers always encode
	return r.write(w, http.StatusAccepted, Content{Type: jsonType, Body: append(answer, '\n'), Caching: "no-store"})
}

// refreshedModule returns the module at a path, if r may have it looked at.
func (g *Registry) refreshedModule(r *request, module string, body io.Reader) ([]address.Address, error) {
	var array [3]string
	s, err := split(module, array[:0])
	if err != nil {
		return nil, err
	}
	a, err := address.ParseModule("", s[0], s[1], s[2])
	if err != nil {
		return nil, fail(http.StatusNotFound, "that is not the address of a module: use NAMESPACE/NAME/SYSTEM")
	}
	r.target = g.targetOf(r.self, a)
	if !webhook.Is(r.Header) {
		if err := g.authorizeChange(r, access.Publish); err != nil {
			return nil, err
		}
		r.about(a)
		if _, ok := g.Follower.Has(a); !ok {
			if g.unknown(r) { // a registry.hcl that cannot be read may name a repository
				return nil, errPending
			}
			return nil, fail(http.StatusNotFound, "%s has no git repository: name it in its registry.hcl", a)
		}
		return []address.Address{a}, nil
	}
	hosts, _, err := g.senders(r, body)
	if err != nil {
		return nil, err
	}
	git, ok := g.Follower.Has(a)
	if !ok && g.unknown(r) {
		return nil, errPending
	}
	u, err := url.Parse(git.URL)
	if !ok || err != nil || !webhook.IsOf(u.Host, hosts) {
		return nil, fail(http.StatusNotFound, "there is no such module of a repository of %s", strings.Join(hosts, " or "))
	}
	r.about(a)
	return []address.Address{a}, nil
}

// refreshedRepository returns the modules of the repository that the body names, as far as r may have
// them looked at.
func (g *Registry) refreshedRepository(r *request, body io.Reader) ([]address.Address, error) {
	if webhook.Is(r.Header) {
		hosts, content, err := g.senders(r, body)
		if err != nil {
			return nil, err
		}
		return g.Follower.ModulesIn(webhook.Repositories(content, hosts...)...), nil
	}
	if g.Rules == nil {
		return nil, fail(http.StatusForbidden, "this path takes the webhook of a code host: configure its secret here, as `webhook` of its host in `git`, and there")
	}
	subject, err := g.subject(r)
	if err != nil {
		return nil, err
	}
	if subject.Anonymous() {
		return nil, fail(http.StatusUnauthorized, "it requires the secret of a code host or credentials to have repositories looked at: send a token as `Authorization: Bearer TOKEN`")
	}
	content, err := g.readWebhook(body)
	if err != nil {
		return nil, err
	}
	var modules []address.Address
	for _, a := range g.Follower.ModulesIn(webhook.Repositories(content)...) {
		if g.rules.Decide(subject, access.Publish, access.Resource{Address: a, Hosted: true}).Allowed {
			modules = append(modules, a)
		}
	}
	return modules, nil
}

// senders returns the code hosts that may have sent a webhook, and its body.
func (g *Registry) senders(r *request, body io.Reader) (hosts []string, content []byte, err error) {
	if content, err = g.readWebhook(body); err != nil {
		return nil, nil, err
	}
	if hosts, err = webhook.Senders(r.Header, content, g.WebhookSecrets); err != nil {
		return nil, nil, fail(http.StatusForbidden, "%v: compare it with `webhook` of the host in `git`", err)
	}
	return hosts, content, nil
}

// Nobody is known before all of a webhook has been read, so these limit what anyone may have the registry
// keep in memory meanwhile.
const (
	webhookTime   = 30 * time.Second // for all of it; code hosts wait ten seconds for the answer
	usualWebhook  = 64 << 10         // bytes; one about a tag has some kilobytes
	largeWebhooks = 16               // larger ones at a time
)

// readWebhook reads the body of a webhook.
func (g *Registry) readWebhook(body io.Reader) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(body, usualWebhook+1))
	if err == nil && len(content) > usualWebhook {
		select {
		case g.largeWebhooks <- struct{}{}:
			defer func() { <-g.largeWebhooks }()
		default:
			return nil, unavailable("too many large webhooks arrive at the same time: send it again in a moment", nil)
		}
		content, err = io.ReadAll(io.MultiReader(bytes.NewReader(content), io.LimitReader(body, webhook.MaxBody+1-int64(len(content)))))
	}
	limit, limited := serverLimit(err)
	switch {
	case limited:
		return nil, webhookTooLarge(limit)
	case err != nil:
		return nil, fail(http.StatusBadRequest, "the webhook broke off, or took too long: send it again")
	case len(content) > webhook.MaxBody:
		return nil, webhookTooLarge(webhook.MaxBody)
	}
	return content, nil
}

func webhookTooLarge(limit int64) error {
	return fail(http.StatusRequestEntityTooLarge, "a webhook is at most %d bytes large: leave events about code out of it", limit)
}
