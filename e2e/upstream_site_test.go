package e2e_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Outside is a network that only the mirror can reach, not its clients, with an
// origin on it. The origin is a registry in a separate process.
type Outside struct {
	Proxy  *Proxy
	Origin *Registry

	trusted string // the authorities of the hosts on that network
}

// newOutside runs an origin, origin.example.com, that publishes a tree.
func newOutside(t *testing.T, published *Tree) *Outside {
	t.Helper()
	return newOutsideWith(t, site("origin.example.com", published))
}

// newOutsideWith runs an origin with several sites.
func newOutsideWith(t *testing.T, sites ...Site) *Outside {
	t.Helper()
	proxy := newProxy(t)
	return &Outside{Proxy: proxy, Origin: startRegistryOn(t, proxy, sites...)}
}

// mirrorOf returns the site of a mirror that fills a tree from an origin.
func mirrorOf(hostnames string, files *Tree, options ...string) Site {
	block := append([]string{"upstream " + hostnames + " {"}, options...)
	return site("mirror.example.com", files, append(block, "}")...)
}

// StartMirror runs a Caddy that can reach the outside. Its clients can reach
// only the Caddy: a client that requests an origin fails the test.
func (o *Outside) StartMirror(t *testing.T, sites ...Site) *Registry {
	t.Helper()
	mirror := o.newMirror(t)
	mirror.start(t, sites)
	return mirror
}

func (o *Outside) newMirror(t *testing.T) *Registry {
	t.Helper()
	mirror := newRegistry(t, newProxy(t))
	mirror.onSocket()
	mirror.run = o.joins(t, mirror)
	return mirror
}

// joins makes a Caddy reach the outside, and trust it.
func (o *Outside) joins(t *testing.T, mirror *Registry) func(*exec.Cmd) {
	t.Helper()
	ca, err := os.ReadFile(o.Origin.CA)
	if err != nil {
		t.Fatal(err)
	}
	authorities := mirror.path("outside.crt")
	writeFile(t, authorities, string(ca)+o.trusted)
	return func(cmd *exec.Cmd) {
		cmd.Env = append(cmd.Env, "HTTPS_PROXY="+o.Proxy.URL, "HTTP_PROXY="+o.Proxy.URL,
			"SSL_CERT_FILE="+authorities, "SSL_CERT_DIR="+mirror.path())
	}
}

// mirrored returns a URL of the mirror, below the provider acme/demo of a
// hostname.
func mirrored(hostname, name string) string {
	return "https://mirror.example.com/v1/mirror/" + hostname + "/acme/demo/" + name
}

// waitAnswers waits until a number of requests for a URL have been logged since
// a point in the log. All entries that precede them are then in the log, too.
func (l *Log) waitAnswers(t *testing.T, point, times int, url string) {
	t.Helper()
	l.WaitAfter(t, point, times, url+" was asked for", func(e Entry) bool {
		return e.access() && "https://"+e.Request.Host+e.Request.URI == url
	})
}

// zipOfDemo returns the file name of a package of acme/demo.
func zipOfDemo(version, platform string) string {
	return "terraform-provider-demo_" + version + "_" + platform + ".zip"
}

// files returns the paths of all files in the tree.
func (files *Tree) files() (names []string) {
	files.t.Helper()
	err := filepath.WalkDir(files.Dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it has just been renamed
		}
		if err == nil && !d.IsDir() {
			name, _ := filepath.Rel(files.Dir, path)
			names = append(names, filepath.ToSlash(name))
		}
		return err
	})
	if err != nil {
		files.t.Fatal(err)
	}
	return names
}

// unfinished returns the temporary files in the tree, without the records of
// origins.
func (files *Tree) unfinished() []string {
	files.t.Helper()
	return slices.DeleteFunc(files.files(), func(name string) bool {
		return !strings.HasPrefix(path.Base(name), ".") || isRecord(name)
	})
}

// isRecord reports whether a file of a tree is a record of an origin.
func isRecord(name string) bool {
	base := path.Base(name)
	for _, suffix := range []string{".versions.json", ".packages.json", ".source.json"} {
		if strings.HasPrefix(base, ".") && strings.HasSuffix(base, suffix) {
			return true
		}
	}
	return false
}

// size returns the size of a file, 0 if it does not exist.
func size(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}
