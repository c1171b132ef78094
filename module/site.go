package module

import (
	"encoding/json"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// routesAround returns the lists of routes around the handler that is being provisioned, the innermost last.
func routesAround(ctx caddy.Context) (lists []caddyhttp.RouteList) {
	if server, ok := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server); ok {
		lists = append(lists, server.Routes)
	}
	for _, m := range ctx.Modules() {
		if s, ok := m.(*caddyhttp.Subroute); ok {
			lists = append(lists, s.Routes)
		}
	}
	return lists
}

// beingProvisioned returns the route whose handlers Caddy is provisioning, and the routes before it; nil if there is no
// such route. Caddy sets up the matchers of all routes first, then the handlers of one route after the other, and sets
// HandlersRaw to nil when a route is done.
func beingProvisioned(routes caddyhttp.RouteList) (route *caddyhttp.Route, before caddyhttp.RouteList) {
	for i := range routes {
		if routes[i].HandlersRaw != nil {
			return &routes[i], routes[:i]
		}
	}
	return nil, nil
}

// siteHosts returns the hosts of the innermost route that matches hosts, around the
// handler that is being provisioned. It leaves out the hosts of other sites, which may
// be mirrored here.
func siteHosts(ctx caddy.Context) (hosts []string) {
	for _, routes := range routesAround(ctx) {
		if inner := hostsBeingProvisioned(routes); inner != nil {
			hosts = inner
		}
	}
	return hosts
}

// hostsBeingProvisioned returns the hosts of the route whose handlers Caddy is provisioning.
func hostsBeingProvisioned(routes caddyhttp.RouteList) (hosts []string) {
	route, _ := beingProvisioned(routes)
	if route == nil {
		return nil
	}
	for _, set := range route.MatcherSets {
		for _, matcher := range set {
			if m, ok := matcher.(*caddyhttp.MatchHost); ok {
				hosts = append(hosts, *m...)
			}
		}
	}
	return hosts
}

// siteRoot returns the folder that a `root` directive without a matcher sets around the handler that is being provisioned;
// empty if there is none. The adapter of Caddyfiles cannot tell: what it knows of a `root` may be of a site
// before this one, which may be private.
func siteRoot(ctx caddy.Context) (root string) {
	for _, routes := range routesAround(ctx) {
		if inner, ok := rootBeingProvisioned(routes); ok {
			root = inner
		}
	}
	return root
}

// rootBeingProvisioned returns the root that a list of routes sets for the route whose handlers Caddy is provisioning, and
// whether it sets one. If that route itself has several, one of them may be set later than the handler is asked, and none
// of them counts.
func rootBeingProvisioned(routes caddyhttp.RouteList) (root string, ok bool) {
	route, before := beingProvisioned(routes)
	if route == nil {
		return "", false
	}
	for _, r := range before {
		if len(r.MatcherSets) > 0 {
			continue // it is for some requests only
		}
		for _, handler := range r.Handlers {
			if vars, isVars := handler.(*caddyhttp.VarsMiddleware); isVars {
				if set, isText := (*vars)["root"].(string); isText {
					root, ok = set, true
				}
			}
		}
	}
	own := make(map[string]bool)
	for _, raw := range route.HandlersRaw {
		var vars struct{ Handler, Root string }
		if json.Unmarshal(raw, &vars) == nil && vars.Handler == "vars" && vars.Root != "" {
			own[vars.Root] = true
			root, ok = vars.Root, true
		}
	}
	if len(own) > 1 {
		root = ""
	}
	return root, ok
}
