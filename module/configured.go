package module

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/certmagic"
	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// A configuredRegistry is a handler as it stands in a configuration: nothing is
// provisioned, and no placeholder expanded.
type configuredRegistry struct {
	*Handler
	site []string // the hosts of the innermost route that asks for any; empty: any
}

// configuredRegistries finds all registries of a configuration in JSON, in
// whatever routes they are.
func configuredRegistries(config []byte) ([]configuredRegistry, error) {
	var found []configuredRegistry
	err := findRegistries(config, nil, &found)
	return found, err
}

func findRegistries(raw json.RawMessage, site []string, found *[]configuredRegistry) error {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil {
		for _, element := range list {
			if err := findRegistries(element, site, found); err != nil {
				return err
			}
		}
		return nil
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil {
		return nil
	}
	var name string
	if json.Unmarshal(object["handler"], &name) == nil && name == "terraform_registry" {
		h, err := decodeRegistry(object)
		if err != nil {
			return err
		}
		*found = append(*found, configuredRegistry{h, site})
		return nil
	}
	var matchers []struct {
		Host []string `json:"host"`
	}
	if json.Unmarshal(object["match"], &matchers) == nil {
		var hosts []string
		for _, m := range matchers {
			hosts = append(hosts, m.Host...)
		}
		if hosts != nil {
			site = hosts // the innermost are those that a request has to match
		}
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if err := findRegistries(object[key], site, found); err != nil {
			return err
		}
	}
	return nil
}

// decodeRegistry is what Caddy does when it loads the handler.
func decodeRegistry(object map[string]json.RawMessage) (*Handler, error) {
	delete(object, "handler")
	raw, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	h := new(Handler)
	if err := caddy.StrictUnmarshalJSON(raw, h); err != nil {
		return nil, fmt.Errorf("terraform_registry: %w", err)
	}
	return h, nil
}

// chooseRegistry returns the one that is meant: the only one, that with the
// root, or any if they decide alike. A site that is served by two servers has
// its handler twice, and sites may share one tree and its rules.
func chooseRegistry(found []configuredRegistry, root string) (configuredRegistry, error) {
	if len(found) == 0 {
		return configuredRegistry{}, errors.New("the configuration has no terraform_registry: name another one with --config")
	}
	var chosen []configuredRegistry
	var roots []string
	for _, c := range found {
		roots = append(roots, cmp.Or(c.Root, `""`))
		if root != "" && !c.hasRoot(root) {
			continue
		}
		if i := slices.IndexFunc(chosen, c.decidesLike); i >= 0 {
			chosen[i].site = slices.Concat(chosen[i].site, c.site)
			continue
		}
		chosen = append(chosen, c)
	}
	slices.Sort(roots)
	all := strings.Join(slices.Compact(roots), ", ")
	switch {
	case len(chosen) == 1:
		return chosen[0], nil
	case len(chosen) == 0:
		return configuredRegistry{}, fmt.Errorf("--root: no registry of the configuration has the root %s, these are: %s", root, all)
	case root == "":
		return configuredRegistry{}, fmt.Errorf("the configuration has registries with different rules: choose one by its root with --root: %s", all)
	}
	return configuredRegistry{}, fmt.Errorf("--root: the configuration has registries with the root %s and different rules: copy the one that is meant to a file of its own and name that with --config", root)
}

// hasRoot tells whether root is the registry's, as it is written or expanded.
func (c configuredRegistry) hasRoot(root string) bool {
	root = filepath.Clean(root)
	return root == filepath.Clean(c.Root) || root == filepath.Clean(caddy.NewReplacer().ReplaceKnown(c.Root, ""))
}

// decidesLike tells whether two have the same answer to every question, but for
// the sites they are on.
func (c configuredRegistry) decidesLike(other configuredRegistry) bool {
	deciding := func(c configuredRegistry) string {
		raw, _ := json.Marshal([]any{c.Access, len(c.AuthRaw) > 0, c.Hostnames}) // texts always encode
		return string(raw)
	}
	return deciding(c) == deciding(other)
}

// hostnames are the configured names of the registry.
func (c configuredRegistry) hostnames() ([]svchost.Hostname, error) {
	names := slices.Clone(c.Hostnames)
	repl := caddy.NewReplacer()
	for i := range names {
		var err error
		if names[i], err = repl.ReplaceOrErr(names[i], true, true); err != nil {
			return nil, fmt.Errorf("hostname: %w", err)
		}
	}
	return parseHostnames(names)
}

// named tells whether the configuration has any name of the registry.
func (c configuredRegistry) named() bool { return len(c.Hostnames) > 0 || len(c.site) > 0 }

// onSite tells whether requests to a hostname reach the registry.
func (c configuredRegistry) onSite(hostname string) bool { return onSite(c.site, hostname) }

// onSite reports whether requests to a hostname reach a site of these hosts. On which
// ports its server listens does not matter: a proxy may be in front.
func onSite(site []string, hostname string) bool {
	if host, _, err := net.SplitHostPort(hostname); err == nil {
		hostname = host
	}
	repl := caddy.NewReplacer()
	return slices.ContainsFunc(site, func(pattern string) bool {
		pattern = repl.ReplaceKnown(pattern, "")
		if h, err := address.ParseHostname(pattern); err == nil {
			pattern = string(h) // as addresses have it, in punycode
		}
		return hostname != "" && certmagic.MatchWildcard(hostname, pattern)
	})
}
