package module

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/caddyauth"

	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
)

func init() {
	caddy.RegisterModule(new(Handler))
}

// Handler serves a folder as a registry for Terraform and OpenTofu: as a
// provider registry, a module registry and a network mirror, with the discovery
// document that leads clients there.
//
// The folder is the registry. The path of a file is its address, and copying a
// file in publishes it:
//
//	ROOT/
//	  providers/[HOSTNAME/]NAMESPACE/TYPE/
//	    terraform-provider-TYPE_VERSION_OS_ARCH.zip      the package
//	    terraform-provider-TYPE_VERSION_SHA256SUMS       optional, as released
//	    terraform-provider-TYPE_VERSION_SHA256SUMS.sig   optional, as released
//	    terraform-provider-TYPE_VERSION_manifest.json    optional, as released
//	    VERSION/…                                        optional: a folder a version
//	  modules/[HOSTNAME/]NAMESPACE/NAME/SYSTEM/
//	    VERSION.tar.gz | VERSION.tgz | VERSION.zip       a package
//	    VERSION/…                                        or a plain folder
//	  keys/[HOSTNAME/]NAMESPACE.asc                      the publisher's public keys
//
// Without HOSTNAME an address belongs to this registry, whatever name it is
// asked by. With HOSTNAME it is a mirrored one; the output of `terraform
// providers mirror` can be dropped into `providers` as it is.
//
// What is offered has been verified: that a package can be read, that its
// checksum is the one in SHA256SUMS, that the signature is by one of the
// publisher's keys. What fails is withheld, with a reason in the log; `caddy
// terraform-registry check` lists them all. Releases that their publisher did
// not sign are signed by the registry.
//
// What a request was about is in the field `terraform_registry` of the access
// log, and in these placeholders once it is answered:
//
// Placeholder | Description
// ------------|------------
// `{http.terraform_registry.kind}` | what was asked for, such as `provider_versions` or `provider_file`
// `{http.terraform_registry.address}` | the provider or module, such as `acme/demo`
// `{http.terraform_registry.version}` | its version
// `{http.terraform_registry.platform}` | its platform, such as `linux_amd64`
//
// Paths that are not the registry's go to the next handler. Clients insist on
// HTTPS, and ask for discovery without credentials.
//
// All options are fixed when the configuration is loaded. Placeholders that are
// known then, such as `{env.*}` and `{file.*}`, work in all of them; those of a
// request do not, but for the subject and groups of `access`.
type Handler struct {
	// The folder to serve. Required. It must exist when the configuration is
	// loaded. A relative path is relative to the working directory of Caddy.
	//
	// Symbolic links are followed inside the folder, and refused where they lead
	// out of it.
	Root string `json:"root,omitempty"`

	// The folder with the providers, if it is not `providers` under the root:
	// a relative path under the root, or an absolute one anywhere. This is for a
	// mirror that exists already. Default: `providers`.
	Providers string `json:"providers,omitempty"`

	// The folder with the modules, like `providers`. Default: `modules`.
	Modules string `json:"modules,omitempty"`

	// The folder with the publishers' public keys, like `providers`. Default:
	// `keys`.
	Keys string `json:"keys,omitempty"`

	// The name of a file system that is configured in the
	// [`caddy.filesystems`](/docs/json/apps/caddy.filesystems/) app, to serve
	// from instead of the local disk. All folders are then paths on it. Its
	// files must be able to seek, as `file_server` needs it too. Default: the
	// local disk.
	FileSystem string `json:"fs,omitempty"`

	// The registry's own names, with a port if it is not 443: what stands before
	// the first slash of an address. Example: `registry.example.com`. Providers
	// and modules found under one of these names are this registry's, not
	// mirrored ones. Default: the name and port a request was made to, which is
	// right unless a proxy in front changes them.
	Hostnames []string `json:"hostname,omitempty"`

	// The path under which the registry answers, but for discovery, which clients
	// look for in `/.well-known/terraform.json`. It starts with a slash and does
	// not end in one. Default: `/v1`.
	Prefix string `json:"prefix,omitempty"`

	// The URL clients reach this site at, such as `https://registry.example.com`.
	// With it every URL in an answer is absolute. Without, those are that some tools
	// do not resolve, such as Renovate, tfsec and tfupdate: the URLs of the provider
	// registry's packages and of modules; they have the name that the client asks by,
	// if it asks by TLS, or what one of the server's trusted proxies says that it
	// asks by. All others, and these elsewhere, are paths, which are right behind any
	// proxy. Default: none.
	PublicURL string `json:"public_url,omitempty"`

	// The key to sign releases with which their publisher did not sign. Without
	// it the registry generates one of its own, once, and keeps it in Caddy's
	// storage, where all instances of a cluster find it. Examples:
	// `{"file": "/etc/caddy/registry.asc", "passphrase": "{env.PASSPHRASE}"}`,
	// `{"off": true}`.
	SigningKey *SigningKey `json:"signing_key,omitempty"`

	// What to do with releases whose publisher did not sign them, or signed them
	// with a key that `keys` does not have:
	//
	// - `prefer` has the registry sign them;
	// - `require` withholds them.
	//
	// Default: `prefer`.
	Signatures string `json:"signatures,omitempty"`

	// The time between two scans of the whole tree. Folders on the local disk are
	// watched, so a change is served within a second; scans find what no event
	// tells of, on network file systems and file systems by name all there is.
	// Only new and changed files are read again. A negative value, `off` in a
	// Caddyfile, means that there are only scans at the start, on reload and when
	// something changes. Default: `5m`.
	Rescan caddy.Duration `json:"rescan,omitempty"`

	// Authentication providers, tried in turn until one knows who asks. They see
	// requests for what not everybody may read, and no others: discovery has to
	// be everybody's. Terraform and OpenTofu send a bearer token, for which there
	// are `terraform_tokens` and `terraform_oidc`; any provider of the
	// `authentication` handler works. With `auth` and without `access`, everybody
	// who is authenticated may read everything.
	AuthRaw []json.RawMessage `json:"auth,omitempty" caddy:"namespace=http.authentication.providers inline_key=provider"`

	// Who may read and publish what. Default: without `auth`, everybody may read
	// everything.
	//
	// Who has no credentials and may not read something is told so with 401,
	// whether it exists or not. Who has some, but not the right, is told with 404
	// that there is nothing.
	Access *Access `json:"access,omitempty"`

	// How long links to files are good. Clients do not send their token when they
	// download, so what not everybody may read is downloaded by links that are
	// signed, for that time. They are signed with a key in Caddy's storage that
	// all instances of a cluster share. Between 1s and 12h. Default: `15m`.
	Links caddy.Duration `json:"links,omitempty"`

	// What `terraform login` needs to know to get a token for its user. The tokens
	// it gets are checked by a provider in `auth`, such as `terraform_oidc`.
	// Default: clients are not told of a login.
	Login *Login `json:"login,omitempty"`

	// Registries whose providers the mirror gets as clients ask for them, and
	// keeps. Default: none, the mirror has what lies in the tree.
	Upstreams []*Upstream `json:"upstream,omitempty"`

	logger   *slog.Logger
	source   *Source
	traffic  *traffic
	registry *handlers.Registry

	site            []string   // hosts of the site, for Decide; empty: any
	log             *accessLog // nil: there are no links to keep out of it
	login           *login
	guests          []caddyauth.Authenticator
	subject, groups string       // templates
	outage          *atomic.Bool // credentials could not be checked the last time
}

// CaddyModule returns the Caddy module information.
func (*Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.terraform_registry",
		New: func() caddy.Module { return new(Handler) },
	}
}

// ServeHTTP answers requests for the registry and passes on all others.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if h.log.serve(w, r, h.registry.ServeHTTP) {
		return nil
	}
	return next.ServeHTTP(w, r)
}

// Cleanup gives back what Provision took.
func (h *Handler) Cleanup() error { return h.login.close() }

// Interface guards
var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddy.CleanerUpper          = (*Handler)(nil)
	_ caddy.Validator             = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
)
