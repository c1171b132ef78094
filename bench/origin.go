package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"github.com/caddy-terraform/caddy-terraform-registry/bench/internal/server"
	"github.com/caddy-terraform/caddy-terraform-registry/bench/internal/tree"
)

// An origin is a registry that others mirror: the same program in a process of
// its own, which they ask over TLS.
type origin struct {
	*server.Process
	url string
}

// whileOrigin runs an origin for as long as f takes. The providers are its own.
func (l *lab) whileOrigin(ctx context.Context, root string, providers []tree.Provider, f func(*origin) error) error {
	plain := l.registry("origin", root, "")
	secure := plain
	secure.Name, secure.TLS = "origin-tls", true
	return while(ctx, l.server("origin", plain, secure), func(p *server.Process) error {
		if _, err := indexed(ctx, p, plain.Name, providers); err != nil {
			return err
		}
		return f(&origin{p, "https://" + p.Address(secure.Name)})
	})
}

// mirror is a site that fills its tree with an origin's providers, which it has
// under a hostname.
func (l *lab) mirror(name, root, rescan, hostname string, o *origin) server.Site {
	site := l.registry(name, root, rescan)
	site.Handler = server.Mirror(site.Handler, hostname, o.url)
	return site
}

// ownOf is a provider as its origin has it.
func ownOf(p tree.Provider) tree.Provider {
	p.Hostname = ""
	return p
}

// A bigRelease is a large package that its publisher has signed.
type bigRelease struct {
	tree.Big        // as mirrors have it
	file     string // the origin's
	length   int64
	digest   string
}

// release makes a large package and signs it, in the tree of an origin.
func (l *lab) release(root string, size size) (r bigRelease, err error) {
	r.Big = bigProvider(tree.Program, int64(size))
	own, version := r.Big, r.Versions[0]
	own.Provider = ownOf(own.Provider)
	progress("making a package of %s", bytesText(float64(size)))
	if r.file, err = own.Write(root, version); err != nil {
		return r, err
	}
	if err := own.Sign(root, version, l.publisher); err != nil {
		return r, err
	}
	r.length, r.digest, err = digestFile(r.file)
	return r, err
}

// path of the package in a mirror.
func (r bigRelease) path() string { return mirrorPath(r.Provider, filepath.Base(r.file)) }

// ask has a mirror say what it offers, as clients do before they ask for the
// package: then it knows the release.
func (r bigRelease) ask(ctx context.Context, p *server.Process, site string) error {
	path := mirrorPath(r.Provider, r.Versions[0]+".json")
	answer, err := p.Get(ctx, site, path)
	if err != nil {
		return err
	}
	if a, err := archivesIn(answer); err != nil || len(a) != 1 {
		return fmt.Errorf("%s: the mirror does not offer the package: %d: %s", path, answer.Status, answer.Body)
	}
	return nil
}

// link is where an origin has mirrors get the package from.
func (l *lab) link(ctx context.Context, o *origin, r bigRelease) (string, error) {
	description := fmt.Sprintf("%s/v1/providers/%s/%s/%s/download/linux/amd64", o.url, r.Namespace, r.Type, r.Versions[0])
	file := l.path("description.json")
	defer os.Remove(file)
	if _, err := l.curl(ctx, description, file); err != nil {
		return "", err
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	var answer struct {
		URL string `json:"download_url"`
	}
	if err := json.Unmarshal(content, &answer); err != nil {
		return "", err
	}
	base, err := url.Parse(description)
	if err != nil {
		return "", err
	}
	link, err := base.Parse(answer.URL)
	if err != nil {
		return "", err
	}
	return link.String(), nil
}
