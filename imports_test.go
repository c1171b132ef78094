package terraformregistry_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

const modulePath = "github.com/caddy-terraform/caddy-terraform-registry"

// A layer is a package that may import the packages before it.
type layer struct {
	name        string
	http, caddy bool
	only        []string // the packages before it that it may import; nil: all
}

// layers are the packages from the bottom up. The core, up to pages, does not know
// Caddy. Packages that only read and verify files do not know HTTP.
var layers = []layer{
	{name: "address"},
	{name: "wire"},
	{name: "clientconfig", only: []string{"address"}}, // pages and command print it
	{name: "signing", only: []string{}},
	{name: "cache", only: []string{}},
	{name: "index/moduledoc", only: []string{"address"}}, // archive keeps its short form
	{name: "tree", only: []string{"address", "wire"}},    // the files
	{name: "tree/disk", only: []string{"tree"}},
	{name: "tree/bucket", only: []string{"address", "wire", "tree"}},
	{name: "tree/iofs", only: []string{"tree"}},
	{name: "tree/source", only: []string{"address", "tree", "tree/disk", "tree/bucket", "tree/iofs"}}, // opens them
	{name: "tree/treetest", only: []string{"address", "tree", "tree/disk", "tree/bucket"}},
	{name: "tlog", only: []string{"address", "wire", "cache", "tree"}}, // the log of what was offered
	{name: "tlog/tlogtest", http: true},
	{name: "tlog/vault", only: []string{"tlog"}},
	{name: "archive", only: []string{"address", "wire", "tree", "tree/disk", "index/moduledoc"}},
	{name: "registryhcl", only: []string{"address", "tree"}},
	{name: "index/changes", only: []string{"tree"}},
	{name: "index/watch", only: []string{"tree", "tree/disk", "archive"}},
	{name: "index/memo", only: []string{"wire", "signing", "cache", "tree", "archive"}},
	{name: "index/content", only: []string{"address", "wire", "cache", "tree", "archive", "index/moduledoc"}},
	{name: "index/report", only: []string{"address", "registryhcl", "tree"}},
	{name: "index/layout", only: []string{"address", "tree", "archive", "index/moduledoc", "index/report"}},
	{name: "index/keys", only: []string{"address", "wire", "signing", "tree", "archive", "index/memo", "index/report", "index/layout"}},
	{name: "index/metadata", only: []string{"wire", "tree", "archive", "registryhcl", "index/memo", "index/layout"}},
	{name: "index/queue", only: []string{"address"}},
	{name: "index/sharded"},
	{name: "index/offer", only: []string{"address", "wire", "signing", "cache", "tree", "archive", "registryhcl", "index/moduledoc", "index/memo", "index/content", "index/report"}},
	{name: "index/release", only: []string{"address", "wire", "signing", "tree", "archive", "index/memo", "index/report", "index/keys", "index/offer"}},
	{name: "index/ledger", only: []string{"address", "tree", "index/report", "index/layout", "index/offer"}},
	{name: "index/scanlog", only: []string{"address", "tree", "registryhcl", "index/report", "index/keys", "index/queue", "index/offer"}},
	{name: "index"},
	{name: "tlog/record", only: []string{"address", "wire", "tree", "index", "index/offer", "tlog"}}, // enters what is offered
	{name: "index/catalog", only: []string{"address", "registryhcl", "index/content", "index/moduledoc", "index"}},
	{name: "index/indextest"},
	{name: "access", http: true, only: []string{"address"}},
	{name: "access/tokenfile", only: []string{"tree/disk", "access"}}, // how a file is locked and replaced
	{name: "access/oidc", http: true, only: []string{"cache", "access", "address"}},
	{name: "access/oidc/oidctest", http: true, only: []string{}},
	{name: "access/signin", http: true, only: []string{"access", "access/oidc"}},
	{name: "upstream/git", only: []string{}},
	{name: "upstream", http: true, only: []string{"address", "wire", "signing", "index/moduledoc", "tree", "archive", "upstream/git"}}, // moduledoc says which folders a module calls, archive opens zips
	{name: "pull/flight", only: []string{"upstream"}},
	{name: "pull/scratch", only: []string{"tree"}},
	{name: "pull/checkout", only: []string{"address", "cache", "tree", "upstream", "pull/flight", "pull/scratch"}}, // tags and a commit for several modules
	{name: "pull/quota", only: []string{"address", "tree"}},
	{name: "pull/versionlist", only: []string{"address", "wire", "tree"}}, // a file beside the packages
	{name: "pull", http: true, only: []string{"address", "wire", "signing", "cache", "tree", "archive", "registryhcl", "index/layout", "index/keys", "index/offer", "index", "upstream", "pull/flight", "pull/scratch", "pull/checkout", "pull/quota", "pull/versionlist"}},
	{name: "pull/follow", only: []string{"address", "registryhcl", "index", "upstream", "pull"}}, // has the repositories of modules looked at
	{name: "upstream/lockfile", only: []string{"address", "wire"}},
	{name: "tlog/verify", http: true, only: []string{"address", "wire", "clientconfig", "tree", "tree/disk", "tlog", "archive", "upstream/lockfile"}}, // reads the logs of others
	{name: "publish", only: []string{"address", "wire", "signing", "cache", "tree", "archive", "registryhcl", "index/layout", "index/keys", "index", "pull/flight"}},
	{name: "usage", only: []string{"address", "wire"}},
	{name: "handlers/mapping", only: []string{"tree"}}, // its error for a file that changes
	{name: "handlers/webhook", http: true, only: []string{}},
	{name: "handlers", http: true},
	{name: "pages/markdown", only: []string{}}, // a text in, HTML out, and back
	{name: "pages/accept", only: []string{}},
	{name: "pages/assets", only: []string{}},
	{name: "pages/feed", only: []string{"address", "registryhcl"}},
	{name: "pages/changes", only: []string{"pages/markdown", "address", "index/content", "index/moduledoc"}},
	{name: "pages/docsmenu", only: []string{"index/content"}},
	{name: "pages/route", only: []string{"pages/assets", "address"}},
	{name: "pages/snippet", only: []string{"pages/markdown", "address", "clientconfig", "index/moduledoc"}},
	{name: "pages", http: true, only: []string{"pages/markdown", "pages/accept", "pages/assets", "pages/feed", "pages/changes", "pages/docsmenu", "pages/route", "pages/snippet", "address", "signing", "cache", "archive", "registryhcl", "index", "index/catalog", "index/content", "index/moduledoc", "access", "access/oidc", "access/signin", "usage", "pull/follow", "handlers", "clientconfig"}}, // shows what handlers let it see
	{name: "module/storage", caddy: true, only: []string{"index/keys", "index/memo", "usage", "tree/disk"}},
	{name: "module/baseurl", http: true, caddy: true, only: []string{}},
	{name: "module/option", caddy: true, only: []string{}},
	{name: "module/authenticate", http: true, caddy: true, only: []string{"cache", "access", "access/tokenfile", "access/oidc", "module/option"}},
	{name: "module", http: true, caddy: true},
	{name: "command/cli", caddy: true, only: []string{"address", "tree", "tree/source", "index"}},
	{name: "command/commandtest", http: true, caddy: true},
	{name: "command/remote", http: true, caddy: true, only: []string{"address", "wire", "clientconfig", "cache", "handlers", "command/cli"}},
	{name: "command/verify", caddy: true, only: []string{"tlog/verify", "command/cli", "command/remote"}},
	{name: "command/publish", http: true, caddy: true, only: []string{"address", "wire", "tree", "archive", "index", "index/moduledoc", "upstream/git", "publish", "command/cli", "command/remote"}},
	{name: "command/mirror", caddy: true, only: []string{"address", "wire", "tree", "tree/source", "registryhcl", "index", "upstream", "pull", "upstream/lockfile", "module", "command/cli", "command/remote"}},
	{name: "command", http: true, caddy: true},
	{name: "caddyfile", http: true, caddy: true, only: []string{"module"}},
}

// directDependencies are the dependencies of the core and the glue. A further one is a
// decision, with its reason in the commit that makes it.
var directDependencies = []string{
	"github.com/JohannesKaufmann/html-to-markdown/v2", // pages as Markdown
	"github.com/ProtonMail/go-crypto",
	"github.com/alecthomas/chroma/v2", // highlighted code, in Caddy already
	"github.com/caddyserver/caddy/v2",
	"github.com/caddyserver/certmagic",
	"github.com/coreos/go-oidc/v3",
	"github.com/dustin/go-humanize",
	"github.com/fsnotify/fsnotify",
	"github.com/go-jose/go-jose/v4",
	"github.com/gofrs/flock",
	"github.com/hashicorp/go-retryablehttp",
	"github.com/hashicorp/go-version",
	"github.com/hashicorp/golang-lru/v2",
	"github.com/hashicorp/hcl/v2",
	"github.com/hashicorp/terraform-registry-address",
	"github.com/hashicorp/terraform-svchost",
	"github.com/klauspost/compress",      // zips are unpacked faster, in Caddy already
	"github.com/microcosm-cc/bluemonday", // HTML in READMEs
	"github.com/moby/patternmatcher",     // .terraformignore
	"github.com/prometheus/client_golang",
	"github.com/rogpeppe/go-internal", // a diff of two texts, in memory that is bounded
	"github.com/sony/gobreaker/v2",
	"github.com/zclconf/go-cty",
	"github.com/spf13/afero",
	"github.com/spf13/cobra",
	"github.com/spf13/pflag",
	"github.com/yuin/goldmark", // Markdown, in Caddy already
	"go.uber.org/zap",
	"golang.org/x/mod",
	"golang.org/x/net",
	"golang.org/x/oauth2", // the authorization code grant, in go-oidc already
	"golang.org/x/sync",
	"golang.org/x/sys",  // the free space of a disk, and its file system
	"golang.org/x/text", // accents in searches, in Caddy already
	"golang.org/x/time", // rates
}

func TestImportsGoOneWay(t *testing.T) {
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, modulePath+"/")
		at := slices.IndexFunc(layers, func(l layer) bool { return l.name == name })
		if at < 0 {
			continue // the custom build, tests and their helpers
		}
		l := layers[at]
		for _, i := range p.Imports {
			below, ours := strings.CutPrefix(i, modulePath+"/")
			switch {
			case ours && !slices.ContainsFunc(layers[:at], func(l layer) bool { return l.name == below }):
				t.Errorf("%s must not import %s", name, below)
			case ours && l.only != nil && !slices.Contains(l.only, below):
				t.Errorf("%s imports %s past %v", name, below, l.only)
			case !l.caddy && strings.HasPrefix(i, "github.com/caddyserver/"):
				t.Errorf("%s must not know Caddy, and imports %s", name, i)
			case !l.http && strings.HasPrefix(i, "net/http"):
				t.Errorf("%s must not know HTTP, and imports %s", name, i)
			}
		}
	}
}

// Somebody new has to find their way in a package. The sizes are those of code without
// tests.
const (
	maxLines = 6000
	maxFiles = 35
)

// own limits of packages: these may be as large as this, and no larger.
var own = map[string]struct{ lines, files int }{
	"index": {5000, 35}, // what everything else stands on
}

func TestPackagesAreSmall(t *testing.T) {
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, modulePath+"/")
		limit := struct{ lines, files int }{maxLines, maxFiles}
		if l, ok := own[name]; ok {
			limit = l
		}
		lines, files := 0, p.filesOfAllSystems()
		for _, file := range files {
			lines += strings.Count(read(t, filepath.Join(p.Dir, file)), "\n")
		}
		if lines > limit.lines || len(files) > limit.files {
			t.Errorf("%s has %d lines in %d files, more than %d in %d: move a concept to a package of its own", name, lines, len(files), limit.lines, limit.files)
		}
	}
}

// storages are the packages for the places where a tree may lie, with the packages above tree
// that know them.
var storages = map[string][]string{
	"tree/disk": {
		"index/watch",      // watches directories of the disk
		"archive",          // packs a folder that lies in no tree
		"access/tokenfile", // locks and replaces a file that lies in no tree
		"tlog/verify",      // replaces such a file
		"module/storage",   // replaces such a file
	},
	"tree/bucket": nil,
	"tree/iofs":   nil,
}

// whereFilesLie are the names by which package tree tells storages apart.
var whereFilesLie = regexp.MustCompile(`\btree\.(Storage|Writer|Local|Signer|ReadOnly)\b`)

// Code above package tree is the same for the disk and for a bucket. tree/source picks one when
// it opens a tree.
func TestOnlyTreeKnowsWhereFilesLie(t *testing.T) {
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, modulePath+"/")
		if strings.HasPrefix(name, "tree/") {
			continue
		}
		for storage, known := range storages {
			if slices.Contains(p.Imports, modulePath+"/"+storage) && !slices.Contains(known, name) {
				t.Errorf("%s imports %s: give package tree a verb for what it wants", name, storage)
			}
		}
		for _, file := range p.filesOfAllSystems() {
			if asks := whereFilesLie.FindString(read(t, filepath.Join(p.Dir, file))); asks != "" {
				t.Errorf("%s/%s asks for %s: give package tree a verb for what it wants", p.ImportPath, file, asks)
			}
		}
	}
}

func TestDependenciesAreChosen(t *testing.T) {
	for _, p := range packages(t) {
		for _, i := range p.Imports {
			if first, _, _ := strings.Cut(i, "/"); !strings.Contains(first, ".") || strings.HasPrefix(i, modulePath) {
				continue // the standard library, ourselves
			}
			if !slices.ContainsFunc(directDependencies, func(d string) bool { return i == d || strings.HasPrefix(i, d+"/") }) {
				t.Errorf("%s imports %s, which is not among the chosen dependencies", p.ImportPath, i)
			}
		}
	}
}

type listedPackage struct {
	ImportPath, Dir string
	GoFiles         []string
	IgnoredGoFiles  []string // files for other systems
	Imports         []string
}

// filesOfAllSystems returns the package's files without tests.
func (p *listedPackage) filesOfAllSystems() []string {
	return slices.DeleteFunc(slices.Concat(p.GoFiles, p.IgnoredGoFiles), func(file string) bool {
		return strings.HasSuffix(file, "_test.go")
	})
}

// packages returns the module's packages with their imports, without tests.
func packages(t *testing.T) []listedPackage {
	t.Helper()
	list, err := listPackages()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

var listPackages = sync.OnceValues(func() (list []listedPackage, err error) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Dir,GoFiles,IgnoredGoFiles,Imports", "./...").Output()
	for d := json.NewDecoder(bytes.NewReader(out)); err == nil; {
		var p listedPackage
		if err = d.Decode(&p); errors.Is(err, io.EOF) {
			return list, nil
		}
		list = append(list, p)
	}
	return nil, err
})
