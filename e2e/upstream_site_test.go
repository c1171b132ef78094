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

// Outside is what lies beyond a mirror: a network that the mirror's clients are
// not on, and an origin there. The origin is a registry in a process of its own.
type Outside struct {
	Proxy  *Proxy
	Origin *Registry

	trusted string // the authorities of the hosts on that network
}

// newOutside runs an origin, origin.example.com, that publishes a tree.
func newOutside(t *testing.T, published *Tree) *Outside {
	t.Helper()
	proxy := newProxy(t)
	return &Outside{Proxy: proxy, Origin: startRegistryOn(t, proxy, site("origin.example.com", published))}
}

// mirrorOf is a mirror of an origin that fills a tree.
func mirrorOf(hostnames string, tree *Tree, options ...string) Site {
	block := append([]string{"upstream " + hostnames + " {"}, options...)
	return site("mirror.example.com", tree, append(block, "}")...)
}

// StartMirror runs a Caddy that reaches what is outside. Its clients reach the
// Caddy and nothing else: a client that asks for an origin fails the test.
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

// joins has a Caddy reach what is outside, and trust it.
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

// mirrored is a URL of the mirror, below the provider acme/demo of a hostname.
func mirrored(hostname, name string) string {
	return "https://mirror.example.com/v1/mirror/" + hostname + "/acme/demo/" + name
}

// waitAnswers waits until so many requests for a URL have been logged since a
// point in the log, and with them all that was logged on the way.
func (l *Log) waitAnswers(t *testing.T, point, times int, url string) {
	t.Helper()
	l.WaitAfter(t, point, times, url+" was asked for", func(e Entry) bool {
		return e.access() && "https://"+e.Request.Host+e.Request.URI == url
	})
}

// zipOfDemo is the file name of a package of acme/demo.
func zipOfDemo(version, platform string) string {
	return "terraform-provider-demo_" + version + "_" + platform + ".zip"
}

// files are those of a tree, by their paths in it.
func (tree *Tree) files() (names []string) {
	tree.t.Helper()
	err := filepath.WalkDir(tree.Dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it has just got its name
		}
		if err == nil && !d.IsDir() {
			name, _ := filepath.Rel(tree.Dir, path)
			names = append(names, filepath.ToSlash(name))
		}
		return err
	})
	if err != nil {
		tree.t.Fatal(err)
	}
	return names
}

// unfinished are the files that are on their way into a tree, or were. What is
// remembered of origins is not among them.
func (tree *Tree) unfinished() []string {
	tree.t.Helper()
	return slices.DeleteFunc(tree.files(), func(name string) bool {
		base := path.Base(name)
		return !strings.HasPrefix(base, ".") || base == ".versions.json"
	})
}

// size of a file; that of one that is not there is 0.
func size(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}
