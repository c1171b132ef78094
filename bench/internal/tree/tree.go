// Package tree makes folders like those a registry serves. What is in them is
// a function of the numbers they are asked for, so that two runs measure the
// same; only keys, and what is signed with them, are new each time.
package tree

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

// A Tree is a folder and what to ask a registry for that serves it.
type Tree struct {
	// Root is the folder.
	Root string

	// Packages is the number of provider packages in it.
	Packages int

	// Providers has all of them: the first is one of the registry itself, the
	// second is one that it mirrors.
	Providers []Provider

	// Module is a module of the registry itself.
	Module Module
}

const (
	versionsEach = 10 // of a provider or module, but for the last provider

	// perProvider is the number of packages that one provider has.
	perProvider = versionsEach * 10

	// modulesShare: for so many packages there is one version of a module.
	modulesShare = 100
)

// platforms are those that most providers are released for.
var platforms = []address.Platform{
	{OS: "darwin", Arch: "amd64"}, {OS: "darwin", Arch: "arm64"},
	{OS: "freebsd", Arch: "amd64"},
	{OS: "linux", Arch: "386"}, {OS: "linux", Arch: "amd64"}, {OS: "linux", Arch: "arm"}, {OS: "linux", Arch: "arm64"},
	{OS: "windows", Arch: "386"}, {OS: "windows", Arch: "amd64"}, {OS: "windows", Arch: "arm64"},
}

// written is when all files were last modified: long ago, for a registry does
// not rely on the time of a file that has just been written.
var written = time.Date(2025, time.January, 1, 0, 0, 0, 0, time.UTC)

// MinPackages is the size below which a tree lacks some of what a Tree names.
const MinPackages = 2 * perProvider

// Make fills the new folder root with so many packages, which are tiny and all
// different. publisher signs some of the releases.
func Make(ctx context.Context, root string, packages int, publisher index.Signer) (*Tree, error) {
	if packages < MinPackages {
		return nil, fmt.Errorf("a tree has at least %d packages, not %d", MinPackages, packages)
	}
	t := &Tree{Root: root, Packages: packages}
	var jobs []func() error
	for number, left := 0, packages; left > 0; number, left = number+1, left-perProvider {
		p := newProvider(number, min(left, perProvider))
		t.Providers = append(t.Providers, p)
		jobs = append(jobs, func() error { return p.Write(root, publisher) })
	}
	for number, left := 0, max(packages/modulesShare, 1); left > 0; number, left = number+1, left-versionsEach {
		m := newModule(number, min(left, versionsEach))
		if number == 0 {
			t.Module = m
		}
		jobs = append(jobs, func() error { return m.write(root) })
	}
	return t, parallel(ctx, jobs)
}

// Own is a provider of the registry itself.
func (t *Tree) Own() Provider { return t.Providers[0] }

// Mirrored is a provider of another registry.
func (t *Tree) Mirrored() Provider { return t.Providers[1] }

// Empty makes a folder that has nothing in it but what every registry has.
func Empty(root string) error { return os.MkdirAll(filepath.Join(root, "providers"), 0o755) }

// parallel runs the jobs on all cores and returns the first error.
func parallel(ctx context.Context, jobs []func() error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	queue := make(chan func() error)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for job := range queue {
				if ctx.Err() != nil {
					continue
				}
				if err := job(); err != nil {
					cancel(err)
				}
			}
		})
	}
	for _, job := range jobs {
		queue <- job
	}
	close(queue)
	workers.Wait()
	return context.Cause(ctx)
}

// writeFile writes a file that looks old.
func writeFile(path string, content []byte) error {
	if err := os.WriteFile(path, content, 0o644); err != nil {
		return err
	}
	return os.Chtimes(path, written, written)
}
