package module

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

// What Signatures can be.
const (
	PreferSignatures  = "prefer"
	RequireSignatures = "require"
)

// DefaultRescan is the time between two scans.
const DefaultRescan = caddy.Duration(5 * time.Minute)

// Provision sets up the handler and asks the app for its tree. Nothing of the
// tree is read but whether it is there.
func (h *Handler) Provision(ctx caddy.Context) error {
	h.logger = ctx.Slogger()
	repl := caddy.NewReplacer()
	if err := h.replace(repl); err != nil {
		return err
	}
	h.Prefix = cmp.Or(h.Prefix, handlers.DefaultPrefix)
	h.PublicURL = strings.TrimSuffix(h.PublicURL, "/")
	h.Signatures = cmp.Or(h.Signatures, PreferSignatures)
	h.Rescan = cmp.Or(h.Rescan, DefaultRescan)

	hostnames, err := parseHostnames(h.Hostnames)
	if err != nil {
		return err
	}
	fsys, err := h.fileSystem(ctx)
	if err != nil {
		return err
	}
	directories, err := index.Directories{
		Root: h.Root, Providers: h.Providers, Modules: h.Modules, Keys: h.Keys,
	}.Locate(fsys)
	if err != nil {
		return err
	}
	policy, err := h.SigningKey.read(repl)
	if err != nil {
		return err
	}
	app, err := ctx.App("terraform_registry")
	if err != nil {
		return err
	}
	rules, err := h.provisionAccess(ctx)
	if err != nil {
		return err
	}
	h.site = siteHosts(ctx)
	if len(hostnames) == 0 {
		if _, err := checkRuleNames(rules, h.PublicURL, h.site); err != nil {
			return err
		}
	}
	if h.login, err = h.Login.read(repl, h.logger); err != nil {
		return err
	}
	h.traffic = &app.(*App).traffic
	t := tree{
		fsys:        fsys,
		fsName:      h.FileSystem,
		directories: directories,
		require:     h.Signatures == RequireSignatures,
		rescan:      max(time.Duration(h.Rescan), 0),
		signing:     policy,
	}
	filler, err := h.provisionUpstreams(app.(*App), repl, t)
	if err != nil {
		return err
	}
	t.filled = filler != nil
	h.source = app.(*App).Acquire(t)
	h.registry = &handlers.Registry{
		Snapshot:  h.source.Snapshot,
		Hostnames: hostnames,
		Prefix:    h.Prefix,
		PublicURL: h.PublicURL,
		Next:      h.source.Next,
		BaseURL:   baseURL,
		Tree:      t.identity(),
		Changed:   h.source.Changed,
		Answered:  h.answered,
		Logger:    h.logger,
	}
	if filler != nil {
		h.registry.Upstream = filler
		h.registry.ClientAddress = clientAddress
	}
	if h.login != nil {
		h.registry.Login = h.login.document
	}
	if rules != nil {
		keys := app.(*App).signsLinks()
		h.log = newAccessLog(ctx)
		h.registry.Rules = rules
		h.registry.Authenticate = h.authenticate
		h.registry.Links = &access.Links{Life: time.Duration(h.Links), Keys: keys.Keys, Reload: keys.Reload}
	}
	app.(*App).registries = append(app.(*App).registries, h)
	return nil
}

// replace expands the placeholders of all options. One that is only known
// within a request is an error: what is served is decided before.
func (h *Handler) replace(repl *caddy.Replacer) error {
	options := []struct {
		name  string
		value *string
	}{
		{"root", &h.Root},
		{"providers", &h.Providers},
		{"modules", &h.Modules},
		{"keys", &h.Keys},
		{"fs", &h.FileSystem},
		{"prefix", &h.Prefix},
		{"public_url", &h.PublicURL},
		{"signatures", &h.Signatures},
	}
	for i := range h.Hostnames {
		options = append(options, struct {
			name  string
			value *string
		}{"hostname", &h.Hostnames[i]})
	}
	for _, o := range options {
		value, err := repl.ReplaceOrErr(*o.value, true, true)
		if err != nil {
			return fmt.Errorf("%s: %w", o.name, err)
		}
		*o.value = value
	}
	return nil
}

func parseHostnames(names []string) ([]svchost.Hostname, error) {
	var hostnames []svchost.Hostname
	for _, name := range names {
		hostname, err := address.ParseHostname(name)
		if err != nil {
			return nil, fmt.Errorf("hostname: %q is not one that clients can use: %w", name, err)
		}
		hostnames = append(hostnames, hostname)
	}
	return hostnames, nil
}

// fileSystem returns the named file system, nil for the local disk.
func (h *Handler) fileSystem(ctx caddy.Context) (fs.FS, error) {
	if h.FileSystem == "" {
		return nil, nil
	}
	// Caddy provisions apps in no particular order. Asked for, the app that
	// registers the file systems is provisioned first.
	if _, err := ctx.AppIfConfigured("caddy.filesystems"); err != nil && !errors.Is(err, caddy.ErrNotConfigured) {
		return nil, fmt.Errorf("fs: %w", err)
	}
	fsys, ok := ctx.FileSystems().Get(h.FileSystem)
	if !ok {
		return nil, fmt.Errorf("fs: there is no file system named %q: configure it with the global option `filesystem`", h.FileSystem)
	}
	if fsys == new(caddy.Context).FileSystems().Default() {
		return nil, nil // the local disk by its name
	}
	return fsys, nil
}

// Validate checks the options that Provision did not have to understand.
func (h *Handler) Validate() error {
	if err := validatePrefix(h.Prefix); err != nil {
		return err
	}
	if err := validatePublicURL(h.PublicURL); err != nil {
		return err
	}
	return validateSignatures(h.Signatures)
}

func validateSignatures(s string) error {
	if s != PreferSignatures && s != RequireSignatures {
		return fmt.Errorf("signatures: %q is neither %s nor %s", s, PreferSignatures, RequireSignatures)
	}
	return nil
}

// validatePrefix makes sure that a path appended to the prefix is a URL path
// as it is, without escaping and without parts that clients resolve away.
func validatePrefix(prefix string) error {
	switch {
	case !strings.HasPrefix(prefix, "/"):
		return fmt.Errorf("prefix: %q does not start with a slash", prefix)
	case strings.HasSuffix(prefix, "/"):
		return fmt.Errorf("prefix: %q must not end in a slash", prefix)
	case path.Clean(prefix) != prefix:
		return fmt.Errorf("prefix: %q has empty or dot segments", prefix)
	case (&url.URL{Path: prefix}).EscapedPath() != prefix:
		return fmt.Errorf("prefix: %q has characters that need escaping in a URL", prefix)
	}
	return nil
}

func validatePublicURL(s string) error {
	if s == "" {
		return nil
	}
	u, err := url.Parse(s)
	if err != nil {
		return fmt.Errorf("public_url: %w", err)
	}
	switch {
	case u.Scheme != "https" && u.Scheme != "http":
		return fmt.Errorf("public_url: %q does not begin with https:// or http://", s)
	case u.Hostname() == "":
		return fmt.Errorf("public_url: %q has no host", s)
	case u.User != nil:
		// Clients refuse such URLs. They are not shown, they may hold a password.
		return errors.New("public_url: it must not have a user name or password")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.HasSuffix(s, "#"):
		return fmt.Errorf("public_url: %q must not have a query or a fragment", s)
	}
	return nil
}
