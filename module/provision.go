package module

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/module/baseurl"
	"github.com/caddy-terraform/caddy-terraform-registry/module/option"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
)

// Values of the option signatures.
const (
	PreferSignatures  = "prefer"  // the registry signs releases without a publisher's signature
	RequireSignatures = "require" // releases without a publisher's signature are withheld
)

// Default intervals. A change made by another instance is served within a second, and
// the scan needs a part of this time.
const (
	defaultRescan = caddy.Duration(5 * time.Minute)
	defaultPoll   = caddy.Duration(500 * time.Millisecond)
)

// Provision sets up the handler and registers its tree with the app. It does not read
// the tree, but checks that its directories exist.
func (h *Handler) Provision(ctx caddy.Context) error {
	h.logger = ctx.Slogger()
	repl := caddy.NewReplacer()
	h.Root = cmp.Or(h.Root, siteRoot(ctx))
	if err := h.expand(repl); err != nil {
		return err
	}
	h.Prefix = cmp.Or(h.Prefix, handlers.DefaultPrefix)
	h.PublicURL = strings.TrimSuffix(h.PublicURL, "/")
	h.Signatures = cmp.Or(h.Signatures, PreferSignatures)
	h.Rescan = cmp.Or(h.Rescan, defaultRescan)
	h.Poll = cmp.Or(h.Poll, defaultPoll)

	hostnames, err := parseHostnames("hostname", h.Hostnames)
	if err != nil {
		return err
	}
	t, err := h.provisionTree(ctx, repl)
	if err != nil {
		return err
	}
	value, err := ctx.App("terraform_registry")
	if err != nil {
		return err
	}
	app := value.(*App)
	rules, err := h.provisionAccess(ctx, app)
	if err != nil {
		return err
	}
	h.site = siteHosts(ctx)
	h.server, _ = ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	if len(hostnames) == 0 {
		if _, err := checkRuleHostnames(rules, h.PublicURL, h.site); err != nil {
			return err
		}
	}
	if h.login, err = h.Login.read(repl, h.logger); err != nil {
		return err
	}
	filler, err := h.provisionUpstreams(app, repl, t)
	if err != nil {
		return err
	}
	t.filled = filler != nil
	if err := h.checkRedirect(ctx, t); err != nil {
		return err
	}

	h.app, h.traffic = app, &app.traffic
	h.source = app.addSource(t)
	h.registry = &handlers.Registry{
		Snapshot:   h.source.snapshot,
		SnapshotOf: h.source.snapshotOf,
		Ready:      h.source.ready,
		Redirect:   time.Duration(h.Redirect),
		Hostnames:  hostnames,
		Prefix:     h.Prefix,
		PublicURL:  h.PublicURL,
		Next:       h.source.next,
		BaseURL:    baseurl.FromRequest,
		Tree:       t.identity(),
		Changed:    h.source.changed,
		Answered:   h.answered,
		Logger:     h.logger,
	}
	if filler != nil {
		h.registry.Upstream = filler
		h.registry.ClientAddress = clientAddress
		if h.Git != nil {
			h.registry.Follower, h.registry.WebhookSecrets = filler.follower, h.Git.secrets()
		}
	}
	if h.Tlog != nil {
		key, err := h.provisionTlog(repl, t, hostnames, rules != nil)
		if err != nil {
			return err
		}
		if h.logged, err = app.addTlog(key); err != nil {
			return err
		}
		h.registry.Log, h.registry.LogNames, h.registry.RequireLog = h.logged.Log, h.logged.key.names(), key.recorded
	}
	if err := h.provisionUsage(app, repl, t); err != nil {
		return err
	}
	if h.login != nil {
		h.registry.Login = h.login.document
	}
	if rules != nil {
		keys := app.linkKeys()
		h.registry.Rules = rules
		h.registry.Authenticate = h.authenticate
		h.registry.Links = &access.Links{Life: time.Duration(h.Links), Keys: keys.Keys, Reload: keys.Reload}
		h.provisionSignIn(&access.Sealer{Keys: keys.Keys, Reload: keys.Reload})
	}
	if rules != nil || h.Redirect != 0 {
		h.log = newAccessLog(ctx, h.Redirect != 0)
	}
	h.warnOfManaging()
	if err := h.provisionPublish(app, hostnames); err != nil {
		return err
	}
	if err := h.provisionPages(); err != nil {
		return err
	}
	app.handlers = append(app.handlers, h)
	return nil
}

// provisionTree returns the tree to serve.
func (h *Handler) provisionTree(ctx caddy.Context, repl *caddy.Replacer) (servedTree, error) {
	fsys, err := h.fileSystem(ctx)
	if err != nil {
		return servedTree{}, err
	}
	directories, err := source.Directories{
		Root: h.Root, Providers: h.Providers, Modules: h.Modules, Keys: h.Keys,
	}.Locate(fsys)
	if err != nil {
		return servedTree{}, err
	}
	policy, err := h.SigningKey.read(repl)
	if err != nil {
		return servedTree{}, err
	}
	name := h.FileSystem
	if fsys == nil {
		name = "" // the local disk is one place, whether or not it is named
	}
	return servedTree{
		source:  source.Source{Directories: directories, FS: fsys},
		fsName:  name,
		require: h.Signatures == RequireSignatures,
		rescan:  max(time.Duration(h.Rescan), 0),
		poll:    max(time.Duration(h.Poll), 0),
		signing: policy,
	}, nil
}

// checkRedirect checks that the tree is in a store that can sign URLs. A store that
// does not answer at the moment does not prevent the start.
func (h *Handler) checkRedirect(ctx context.Context, t servedTree) error {
	life := time.Duration(h.Redirect)
	if life == 0 {
		return nil
	}
	if life < time.Second || life > access.MaxLinkLife {
		return fmt.Errorf("redirect: %s is not between 1s and %s", life, access.MaxLinkLife)
	}
	ctx, cancel := context.WithTimeout(ctx, signTimeout)
	defer cancel()
	switch inStore, signs := t.source.SignsURLs(ctx, life); {
	case !inStore:
		return errors.New("redirect: only a tree on an object store can be downloaded from there: set fs to a file system of caddy.fs.blob, or remove redirect")
	case !signs:
		return errors.New("redirect: this store, or these credentials, cannot sign URLs: remove redirect, or use credentials that have a key")
	}
	return nil
}

// signTimeout limits the wait for the credentials of a store when a configuration is
// loaded.
const signTimeout = 5 * time.Second

// expand replaces the placeholders of all options. A placeholder that is only known
// within a request is an error, since the options are needed before.
func (h *Handler) expand(repl *caddy.Replacer) error {
	if h.UI != nil {
		if err := option.Expand(repl, option.Scalar("ui", &h.UI.Path), option.Scalar("ui", &h.UI.Name), option.Scalar("ui", &h.UI.Logo)); err != nil {
			return err
		}
		for i := range h.UI.Links {
			if err := option.Expand(repl, option.Scalar("ui", &h.UI.Links[i].Text), option.Scalar("ui", &h.UI.Links[i].URL)); err != nil {
				return err
			}
		}
	}
	return option.Expand(repl,
		option.Scalar("root", &h.Root),
		option.Scalar("providers", &h.Providers),
		option.Scalar("modules", &h.Modules),
		option.Scalar("keys", &h.Keys),
		option.Scalar("fs", &h.FileSystem),
		option.List("hostname", h.Hostnames),
		option.Scalar("prefix", &h.Prefix),
		option.Scalar("public_url", &h.PublicURL),
		option.Scalar("signatures", &h.Signatures),
	)
}

// fileSystem returns the named file system; nil for the local disk.
func (h *Handler) fileSystem(ctx caddy.Context) (fs.FS, error) {
	if h.FileSystem == "" {
		return nil, nil
	}
	// Caddy provisions apps in no particular order. Requesting the app that registers
	// the file systems makes Caddy provision it first.
	if _, err := ctx.AppIfConfigured("caddy.filesystems"); err != nil && !errors.Is(err, caddy.ErrNotConfigured) {
		return nil, fmt.Errorf("fs: %w", err)
	}
	fsys, ok := ctx.FileSystems().Get(h.FileSystem)
	if !ok {
		return nil, fmt.Errorf("fs: there is no file system named %q: configure it with the global option `filesystem`", h.FileSystem)
	}
	if fsys == new(caddy.Context).FileSystems().Default() {
		return nil, nil // the local disk under its name
	}
	return source.Unwrapped(fsys), nil
}

// Validate checks the options that Provision does not parse.
func (h *Handler) Validate() error {
	if err := validatePrefix(h.Prefix); err != nil {
		return err
	}
	if err := validatePublicURL(h.PublicURL); err != nil {
		return err
	}
	if err := h.UI.validate(h.Prefix); err != nil {
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

// validatePrefix makes sure that appending a path to the prefix yields a URL path that
// needs no escaping and has no segments that clients would remove.
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
		// Clients refuse such URLs. The message does not quote the URL, as it may
		// contain a password.
		return errors.New("public_url: it must not have a user name or password")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.HasSuffix(s, "#"):
		return fmt.Errorf("public_url: %q must not have a query or a fragment", s)
	}
	return nil
}
