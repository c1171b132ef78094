package module

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/caddyauth"

	"github.com/caddy-terraform/caddy-terraform-registry/access/signin"
	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/pages"
)

func init() {
	caddy.RegisterModule(new(Handler))
}

// Handler serves a folder as a registry for Terraform and OpenTofu: as a
// provider registry, a module registry and a network mirror, with the discovery
// document that leads clients there, and with pages for people.
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
// An address without HOSTNAME is hosted: it belongs to this registry, under all of
// its hostnames. An address with HOSTNAME is mirrored; the output of `terraform
// providers mirror` can be copied into `providers` as it is.
//
// Only verified releases are offered: the package is readable, its checksum is the
// one in SHA256SUMS, and the signature is by one of the publisher's keys. A release
// that fails verification is withheld, with a reason in the log; `caddy
// terraform-registry check` lists all of them. Releases that their publisher did
// not sign are signed by the registry.
//
// The access log describes requests in the field `terraform_registry`, and so do
// these placeholders once a request is answered:
//
// Placeholder | Description
// ------------|------------
// `{http.terraform_registry.kind}` | what was requested, such as `provider_versions`, `provider_file` or `page`
// `{http.terraform_registry.address}` | the provider or module, such as `acme/demo`
// `{http.terraform_registry.version}` | its version
// `{http.terraform_registry.platform}` | its platform, such as `linux_amd64`
// `{http.terraform_registry.outcome}` | the result for a file that was sent to be published, such as `staged` or `refused`
//
// Requests for other paths go to the next handler; if none answers, the answer is 404. With
// `publish`, so is that to requests for other paths below the prefix which would change
// something. Clients require HTTPS, and send no credentials with requests for discovery.
//
// All options are fixed when the configuration is loaded. Placeholders that are
// known at that time, such as `{env.*}` and `{file.*}`, are replaced in all of them.
// Placeholders of requests work only in the subject and groups of `access`.
type Handler struct {
	// The folder to serve. Required, unless a handler `vars` before this one, in a route
	// without matchers, sets the variable `root`, as the directive `root` does. It must
	// exist when the configuration is loaded. A relative path is relative to the working
	// directory of Caddy.
	//
	// Symbolic links are followed inside the folder, and refused if they lead out
	// of it.
	Root string `json:"root,omitempty"`

	// The folder with the providers: a path relative to the root, or an absolute path,
	// which may be anywhere, such as the path of an existing mirror. Default:
	// `providers`.
	Providers string `json:"providers,omitempty"`

	// The folder with the modules, like `providers`. Default: `modules`.
	Modules string `json:"modules,omitempty"`

	// The folder with the publishers' public keys, like `providers`. Default:
	// `keys`.
	Keys string `json:"keys,omitempty"`

	// The name of a file system that is configured in the
	// [`caddy.filesystems`](/docs/json/apps/caddy.filesystems/) app, to serve
	// from instead of the local disk. All folders are then paths on it. Its
	// files must be able to seek, as for `file_server`. Default: the local disk.
	FileSystem string `json:"fs,omitempty"`

	// The hostnames of the registry, as they are before the first slash of an
	// address, with a port if it is not 443. Example: `registry.example.com`.
	// Providers and modules in the folder of one of these hostnames are hosted, not
	// mirrored. Default: the host and port of each request, which is right unless a
	// proxy in front changes them. With `tlog`, the folder of such a hostname is hosted
	// only if it is a name of the site, or of `public_url`.
	Hostnames []string `json:"hostname,omitempty"`

	// The path under which the registry answers, except for discovery, which is
	// always at `/.well-known/terraform.json`. It starts with a slash and does not
	// end in one. Default: `/v1`.
	Prefix string `json:"prefix,omitempty"`

	// The URL at which clients reach this site, such as
	// `https://registry.example.com`. With it every URL in an answer is absolute.
	// Without it, URLs in answers are paths, which are right behind any proxy, except
	// for those that some tools, such as Renovate, tfsec and tfupdate, do not resolve:
	// the URLs of modules and of the provider registry's packages. These are absolute
	// if the connection is TLS or the server's trusted proxies tell the scheme and
	// host. Default: none.
	PublicURL string `json:"public_url,omitempty"`

	// The key for signing releases that their publisher did not sign. Default: the
	// registry generates a key, once, and keeps it in Caddy's storage, which all
	// instances of a cluster share. Examples:
	// `{"file": "/etc/caddy/registry.asc", "passphrase": "{env.PASSPHRASE}"}`,
	// `{"off": true}`.
	SigningKey *SigningKey `json:"signing_key,omitempty"`

	// What to do with releases whose publisher did not sign them, or signed them
	// with a key that `keys` does not have:
	//
	// - `prefer`: the registry signs them;
	// - `require`: they are withheld.
	//
	// Default: `prefer`.
	Signatures string `json:"signatures,omitempty"`

	// The longest time between two scans of the whole tree. Folders on the local disk
	// are watched, so changes are served within a second, and only the folders that
	// have changed are scanned. Where changes raise no events, as on network file
	// systems, on named file systems, and when a volume is mounted over an empty root,
	// the whole tree is scanned again after fifty times the duration of a scan, but not
	// more often than every 2 seconds. Only new and changed files are read. With a
	// negative value, `off` in a Caddyfile, the tree is scanned only at the start, on
	// reload and when a change is noticed. Default: `5m`.
	Rescan caddy.Duration `json:"rescan,omitempty"`

	// How often the instance looks in Caddy's storage for what other instances with
	// the same tree have published or fetched. Each look reads one small value. With a
	// negative value, `off` in a Caddyfile, it neither looks nor tells others, which is
	// for a registry that runs once. Default: `500ms`.
	Poll caddy.Duration `json:"poll,omitempty"`

	// Authentication providers, tried in turn until one of them authenticates the
	// request. They are asked only about requests for what is not public: discovery
	// always is. Terraform and OpenTofu send a bearer token, for which there are
	// `terraform_tokens` and `terraform_oidc`; any provider of the `authentication`
	// handler works. With `auth` and without `access`, anyone with valid credentials
	// may read everything.
	AuthRaw []json.RawMessage `json:"auth,omitempty" caddy:"namespace=http.authentication.providers inline_key=provider"`

	// Who may read and publish what. Default: without `auth`, anyone may read
	// everything.
	//
	// A request without credentials that is denied is answered with 401, whether or
	// not what it requests exists. A request with credentials that is denied is
	// answered with 404, as if it did not exist.
	Access *Access `json:"access,omitempty"`

	// How long links to files are valid. Clients do not send their token when they
	// download, so files that are not public are downloaded by signed links. These
	// are signed with a key in Caddy's storage, which all instances of a cluster
	// share. Between 1s and 12h. Default: `15m`.
	Links caddy.Duration `json:"links,omitempty"`

	// Have clients download packages from the object store that the file system `fs`
	// lies on: they are answered with a redirect to a URL that the store accepts for this
	// long. Documents still come from here, and so do answers to HEAD requests. Rules and
	// links are checked before. Clients must be able to reach the store by the name that
	// is in the file system's URL. Between 1s and 12h. Default: downloads are passed on.
	Redirect caddy.Duration `json:"redirect,omitempty"`

	// Where `terraform login` gets a token for its user. The tokens are checked by a
	// provider in `auth`, such as `terraform_oidc`. Default: no login is offered.
	Login *Login `json:"login,omitempty"`

	// Registries whose providers the mirror fetches when clients request them, and
	// keeps. Default: none; the mirror has what is in the tree.
	Upstreams []*Upstream `json:"upstream,omitempty"`

	// Git repositories whose tags are versions of hosted modules, as `registry.hcl` names
	// them. Default: none is followed.
	Git *Git `json:"git,omitempty"`

	// The pages of the registry, on which people find, read and compare what it
	// offers. Requests for other paths go to the next handler, so that a site can be
	// shared. Default: none.
	UI *UI `json:"ui,omitempty"`

	// Publishing by PUT requests. Requires rules of `access` with the right `publish`.
	// Default: off; files are published by copying them into the folder.
	Publish *Publish `json:"publish,omitempty"`

	// The transparency log: a record of all offered versions, with which clients can check
	// later what they got. Default: none.
	Tlog *Tlog `json:"tlog,omitempty"`

	// Counts of downloads, by day, version and platform, which are kept in Caddy's storage
	// and shared by all instances of a cluster. Default: nothing is counted.
	Usage *Usage `json:"usage,omitempty"`

	logger   *slog.Logger
	app      *App
	source   *snapshotSource
	logged   *loggedTree // nil: there is no log
	traffic  *traffic
	registry *handlers.Registry
	pages    *pages.Site    // nil: no pages
	signIn   *signin.SignIn // to the pages; nil: people cannot sign in with the issuer of login

	site            []string          // its hosts, for Decide and ClientSites; empty: any
	server          *caddyhttp.Server // server of the handler; nil if it has none
	log             *accessLog        // nil: no links are signed
	login           *login
	authenticators  []caddyauth.Authenticator
	subject, groups string       // with placeholders
	outage          *atomic.Bool // the last credentials could not be checked
	refused         *refusedSubjects
}

// CaddyModule returns the Caddy module information.
func (*Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.terraform_registry",
		New: func() caddy.Module { return new(Handler) },
	}
}

// ServeHTTP answers requests to the registry and passes other requests on.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	// With publish, the registry answers every POST below its prefix, where the pages may be.
	signsOut := h.pages != nil && h.pages.SignsOut(r)
	if !signsOut && h.log.serve(w, r, h.registry.ServeHTTP) {
		return nil
	}
	if h.pages != nil && h.log.serve(w, r, h.pages.ServeHTTP) {
		return nil
	}
	if h.signIn != nil {
		signin.RemoveCookies(r.Header) // other handlers must not receive the session
	}
	return serveNext(w, r, next)
}

// Cleanup releases the resources of Provision.
func (h *Handler) Cleanup() error { return h.login.close() }

// Interface guards
var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddy.CleanerUpper          = (*Handler)(nil)
	_ caddy.Validator             = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
)
