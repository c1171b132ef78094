package module

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/module/option"
	"github.com/caddy-terraform/caddy-terraform-registry/module/storage"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
)

// Tlog puts on record what the registry offers, in a transparency log: a list to which
// entries can be added and in which none can be changed unnoticed. Whoever may read a
// provider or module can check that it has not changed since it was first
// offered, with the entries of its versions and their proofs at:
//
//	PREFIX/tlog/lookup/modules/[HOSTNAME/]NAMESPACE/NAME/SYSTEM/VERSION
//	PREFIX/tlog/lookup/providers/[HOSTNAME/]NAMESPACE/TYPE/VERSION
//
// The formats are those of [C2SP](https://c2sp.org/tlog-tiles). Versions are entered in the
// background, and a log that fails keeps nothing from being offered, unless it is required.
type Tlog struct {
	// The folder of the log, which must exist and lie outside of the served folder.
	// Instances that share the served folder share this one too, and Caddy's storage. If
	// `fs` is a file system of `caddy.fs.blob`, it is a folder there. Default: a folder in
	// Caddy's data directory; with such a file system, `tlog` beside `providers`.
	Folder string `json:"folder,omitempty"`

	// The name of the log, a URL without its scheme. It is fixed when the log is begun.
	// Default: the hostname of the registry with the path of the log, such as
	// `registry.example.com/v1/tlog`.
	Origin string `json:"origin,omitempty"`

	// Whether a version is offered only when it is on record. While nothing can be entered,
	// or the log cannot be read after a start, what is not known to be on record is not
	// offered. Default: it is offered, and entered as soon as possible.
	Require bool `json:"require,omitempty"`

	// A file with the private key that signs the log, in the form `PRIVATE+KEY+ORIGIN+…`
	// of golang.org/x/mod/sumdb/note, as `tlog key --new` prints it. It has one key a line:
	// those that sign, and the next one before `tlog rotate`. Default: the registry generates
	// a key, once, and keeps it in Caddy's storage.
	Key string `json:"key,omitempty"`
}

// A tlogKey is everything that the log of a tree depends on. It must not be logged, as it
// has a private key.
type tlogKey struct {
	source  source.Source
	require bool   // signatures of the publishers
	folder  string // on the local disk, or in the file system of the source
	onDisk  bool   // although the source has a file system
	made    bool   // the folder is made if it is missing

	recorded  bool   // only what is on record is offered
	origin    string // of a new log
	named     bool   // the configuration names it
	private   string // a private key; empty: it is in Caddy's storage
	hostnames string // of the registry, with a space between two
	ofSite    bool   // the configuration has no hostnames: they are those of the site, or none
}

// provisionTlog returns what the log depends on. It changes nothing. With rules, what lies under a hostname
// that is not configured is mirrored.
func (h *Handler) provisionTlog(repl *caddy.Replacer, t servedTree, hostnames []svchost.Hostname, rules bool) (key tlogKey, err error) {
	o := *h.Tlog
	if err := option.Expand(repl, option.Scalar("tlog", &o.Folder), option.Scalar("tlog: origin", &o.Origin), option.Scalar("tlog: key", &o.Key)); err != nil {
		return key, err
	}
	key.source, key.require, key.recorded = t.source, t.require, o.Require
	names := hostnames
	if key.ofSite = len(names) == 0; key.ofSite && !rules {
		names = h.siteNames(0)
	}
	for _, name := range names {
		key.hostnames = strings.TrimSpace(key.hostnames + " " + string(name))
	}
	key.onDisk = t.source.FS != nil && !t.source.IsWritable()
	if err := key.locate(o.Folder, t); err != nil {
		return key, fmt.Errorf("tlog: %w", err)
	}
	if o.Key != "" {
		content, err := os.ReadFile(o.Key)
		if err != nil {
			return key, fmt.Errorf("tlog: key: %w", err)
		}
		keys, err := tlog.ReadKeys(string(content))
		if err != nil {
			return key, fmt.Errorf("tlog: key: %s: %w", o.Key, err)
		}
		key.private = string(content)
		name := keys[0].Verifier.Name()
		if o.Origin == "" {
			o.Origin = name
		}
		if o.Origin != name {
			return key, fmt.Errorf("tlog: the key is the key of %s, and origin is %s: they must be the same", name, o.Origin)
		}
	}
	key.origin, key.named = o.Origin, o.Origin != ""
	if !key.named {
		host := h.ownHost(hostnames)
		if host == "" {
			return key, errors.New("tlog: the log needs a name: add origin, such as registry.example.com/v1/tlog")
		}
		key.origin = host + h.Prefix + "/tlog"
	}
	if err := tlog.CheckOrigin(key.origin); err != nil {
		return key, fmt.Errorf("tlog: origin: %w", err)
	}
	return key, nil
}

// locate sets the folder.
func (k *tlogKey) locate(folder string, t servedTree) (err error) {
	inStore := t.source.FS != nil && !k.onDisk
	switch {
	case folder == "" && inStore:
		k.folder = "tlog"
		if root := t.root(); root != "." {
			k.folder = root + "/tlog"
		}
	case folder == "":
		k.made = true
		k.folder = filepath.Join(caddy.AppDataDir(), filepath.FromSlash(storage.Folder("tlog", t.identity())))
	case inStore:
		k.folder = folder
	default:
		if k.folder, err = filepath.Abs(folder); err != nil {
			return err
		}
		info, err := os.Stat(k.folder)
		switch {
		case errors.Is(err, os.ErrNotExist):
			return fmt.Errorf("there is no folder %s: make it, or name another", k.folder)
		case err != nil:
			return err
		case !info.IsDir():
			return fmt.Errorf("%s is not a folder", k.folder)
		}
	}
	if !k.onDisk && t.source.Covers(k.folder) {
		return fmt.Errorf("%s lies in the served folder: name one outside of it", k.folder)
	}
	return nil
}

// open opens the folder.
func (k *tlogKey) open() (tree.Part, error) {
	if k.made {
		if err := os.MkdirAll(k.folder, 0o700); err != nil {
			return tree.Part{}, err
		}
	}
	if k.onDisk {
		return source.Source{}.OpenFolder(k.folder)
	}
	return k.source.OpenFolder(k.folder)
}

// names returns the hostnames of the registry.
func (k *tlogKey) names() (names []svchost.Hostname) {
	for _, name := range strings.Fields(k.hostnames) {
		names = append(names, svchost.Hostname(name))
	}
	return names
}

// ownHost returns a name of the registry; empty if the configuration has none.
func (h *Handler) ownHost(hostnames []svchost.Hostname) string {
	if len(hostnames) > 0 {
		return string(hostnames[0])
	}
	if _, rest, ok := strings.Cut(h.PublicURL, "://"); ok {
		host, _, _ := strings.Cut(rest, "/")
		return host
	}
	if i := slices.IndexFunc(h.site, func(host string) bool { return !strings.ContainsAny(host, "*{") }); i >= 0 {
		return h.site[i]
	}
	return ""
}
