package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/bench/internal/load"
	"github.com/caddy-terraform/caddy-terraform-registry/bench/internal/server"
	"github.com/caddy-terraform/caddy-terraform-registry/bench/internal/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
)

// A lab is what the experiments share.
type lab struct {
	*settings
	dir         string
	binary      string
	pinning     pinning
	publisher   *signing.Key
	signingKey  string // file
	certificate server.Certificate
	trees       map[int]*tree.Tree
}

func newLab(ctx context.Context, s *settings) (l *lab, err error) {
	for _, tool := range []string{"find", "sha256sum", "unzip", "curl", "sync", "sh", "df"} {
		if _, err := exec.LookPath(tool); err != nil {
			return nil, err
		}
	}
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, err
	}
	l = &lab{settings: s, dir: dir, pinning: newPinning(), trees: make(map[int]*tree.Tree)}
	defer func() {
		if err != nil {
			l.close()
		}
	}()
	if err := l.checkDisk(ctx); err != nil {
		return nil, err
	}
	if l.certificate, err = server.NewCertificate(dir); err != nil {
		return nil, err
	}
	if err := l.makeKeys(); err != nil {
		return nil, err
	}
	return l, l.build(ctx)
}

func (l *lab) close() { os.RemoveAll(l.dir) }

// build makes the binary that users have.
func (l *lab) build(ctx context.Context) error {
	if l.caddy != "" {
		binary, err := filepath.Abs(l.caddy)
		l.binary = binary
		return err
	}
	progress("building Caddy with the registry")
	module, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return err
	}
	l.binary = filepath.Join(l.dir, "caddy")
	build := exec.CommandContext(ctx, "go", "build", "-C", filepath.Dir(strings.TrimSpace(string(module))),
		"-tags", "nobadger,nomysql,nopgx", "-o", l.binary, "./xcaddy")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	return build.Run()
}

// makeKeys makes the registry's key and a publisher's.
func (l *lab) makeKeys() error {
	progress("generating keys")
	own, err := signing.Generate()
	if err != nil {
		return err
	}
	armored, err := own.Armor()
	if err != nil {
		return err
	}
	l.signingKey = l.path("signing_key.asc")
	if err := os.WriteFile(l.signingKey, armored, 0o600); err != nil {
		return err
	}
	l.publisher, err = signing.Generate()
	return err
}

// path of something in the lab's folder.
func (l *lab) path(name ...string) string { return filepath.Join(append([]string{l.dir}, name...)...) }

// tree is the one of a size, made when it is first needed.
func (l *lab) tree(ctx context.Context, packages int) (*tree.Tree, error) {
	if t := l.trees[packages]; t != nil {
		return t, nil
	}
	progress("making a tree of %d packages", packages)
	t, err := tree.Make(ctx, l.path("tree"+strconv.Itoa(packages)), packages, l.publisher)
	if err != nil {
		return nil, err
	}
	l.trees[packages] = t
	return t, nil
}

// server are the options of a process that has all cores and keeps what it
// stores under a name.
func (l *lab) server(name string, sites ...server.Site) server.Options {
	return server.Options{Binary: l.binary, Dir: l.path("server-" + name), Sites: sites, Certificate: l.certificate}
}

// pinned are the same with one core.
func (l *lab) pinned(name string, sites ...server.Site) server.Options {
	o := l.server(name, sites...)
	o.Prefix, o.Cores = l.pinning.server, 1
	return o
}

// registry is a site that serves a tree.
func (l *lab) registry(name, root, rescan string) server.Site {
	return server.Site{Name: name, Handler: server.Registry(root, l.signingKey, rescan)}
}

// client starts the client process.
func (l *lab) client(ctx context.Context) (*load.Client, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return load.Start(ctx, append(append([]string(nil), l.pinning.client...), self, client)...)
}

// checkDisk makes sure that everything fits, with room to spare.
func (l *lab) checkDisk(ctx context.Context) error {
	const perPackage, spare = 10_000, 1e9
	needed := int64(spare)
	for _, packages := range l.packages.values {
		needed += int64(packages) * perPackage
	}
	var most int64
	for _, e := range l.selected() {
		most = max(most, e.disk(l.settings))
	}
	needed += most
	out, err := exec.CommandContext(ctx, "df", "-Pk", l.dir).Output()
	if err != nil {
		return err
	}
	fields := strings.Fields(string(out))
	const available = 3 // from the last: available, capacity, mounted on
	if len(fields) < available {
		return errors.New("df does not tell the free space")
	}
	free, err := strconv.ParseInt(fields[len(fields)-available], 10, 64)
	if err != nil {
		return err
	}
	if free*1024 < needed {
		return fmt.Errorf("%s are needed and %s are free: set TMPDIR to another disk", bytesText(float64(needed)), bytesText(float64(free*1024)))
	}
	return nil
}
