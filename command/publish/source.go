package publish

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/publish"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A batch has the releases that a run publishes.
type batch struct {
	releases []release // the newest first
	skipped  []string  // sentences about other versions, which are not published

	// independent: problems of a release do not keep the other releases from being sent. An
	// old tag can never be corrected.
	independent bool

	close func()
}

// blocked reports whether nothing may be sent.
func (b *batch) blocked() bool {
	blocked := true
	for _, p := range b.releases {
		if len(p.problems) > 0 && !b.independent {
			return true
		}
		blocked = blocked && len(p.problems) > 0
	}
	return blocked
}

// A release is a version to publish.
type release struct {
	address  address.Address // hosted
	version  string
	files    []upload
	notes    []string        // in sentences
	problems []index.Problem // for which it cannot be published

	tag, commit string // the source in git; empty: the source is a folder
	date        time.Time
}

// An upload is a file to send.
type upload struct {
	publish.File
	size   int64 // in bytes
	sha256 wire.SHA256
	open   func() (io.ReadCloser, error)
}

// onDisk opens a file on the disk.
func onDisk(name string) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return os.Open(name) }
}

// inMemory opens a content in memory.
func inMemory(content []byte) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
}

// read reads and checks the releases. An error prevents all of them.
func (s source) read(ctx context.Context, a address.Address) (*batch, error) {
	if s.git != nil {
		return readGitBatch(ctx, *s.git, a)
	}
	r, err := s.readFolder(ctx, a)
	return &batch{releases: []release{r}, close: func() {}}, err
}

// readFolder reads a module, or the release of a provider with its documentation.
func (s source) readFolder(ctx context.Context, a address.Address) (release, error) {
	if a.IsModule() {
		return readModule(ctx, a, s.version, s.folder)
	}
	r, err := readRelease(ctx, a, s.version, s.folder)
	if err != nil || s.docs == "" {
		return r, err
	}
	docs, err := packDocs(s.docs)
	if err != nil {
		return r, fmt.Errorf("--docs: %w", err)
	}
	return r, r.addDocs(ctx, a, s.docs, docs)
}

// notSelfContained: the module works only where it was written.
const notSelfContained tree.Reason = "not_self_contained"

// notParsed: clients cannot parse the module.
const notParsed tree.Reason = "not_parsed"

// readModule packs a module. The release has problems if the registry would withhold it, or if
// it would not work for others.
func readModule(ctx context.Context, a address.Address, version, dir string) (release, error) {
	p := release{address: a, version: version}
	packed, err := archive.PackModule(ctx, dir)
	var bad *archive.PackageError
	switch {
	case errors.As(err, &bad):
		p.problem(a, dir, bad.Reason, bad.Detail)
		return p, nil
	case err != nil:
		return p, fmt.Errorf("%s: %w", cli.Printable(dir), err)
	}
	content := packed.Open()
	defer content.Close()
	unfit, err := unfitPackage(content)
	if err != nil {
		return p, fmt.Errorf("%s: %w", cli.Printable(dir), err)
	}
	for _, sentence := range unfit {
		p.problem(a, dir, notSelfContained, sentence)
	}
	for _, text := range packed.Doubts.Unusable {
		p.problem(a, dir, notParsed, text)
	}
	file, err := publish.ParseModuleFile(a, version+".tar.gz")
	if err != nil {
		return p, err
	}
	if packed.LeftOut != "" {
		p.notes = append(p.notes, "Not in the package: "+packed.LeftOut+".")
	}
	for _, text := range packed.Doubts.Notes {
		p.notes = append(p.notes, cli.Sentence("it "+text))
	}
	p.files = []upload{{
		File: file, size: packed.Size, sha256: packed.SHA256,
		open: func() (io.ReadCloser, error) { return packed.Open(), nil },
	}}
	return p, nil
}

func (p *release) problem(a address.Address, path string, reason tree.Reason, detail string) {
	p.problems = append(p.problems, index.Problem{Path: filepath.ToSlash(path), Address: a.String(), Version: p.version, Reason: reason, Detail: detail})
}

func readGitReleases(ctx context.Context, m *gitModules, a address.Address) ([]release, error) {
	releases := make([]release, len(m.modules))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, module := range m.modules {
		group.Go(func() (err error) {
			releases[i], err = readGitModule(ctx, a, module)
			return err
		})
	}
	return releases, group.Wait()
}

func readGitModule(ctx context.Context, a address.Address, m gitModule) (p release, err error) {
	if p.address, p.version = a, m.version; m.dir != "" {
		if p, err = readModule(ctx, a, m.version, m.dir); err != nil {
			return p, fmt.Errorf("the tag %s: %w", cli.Printable(m.tag), cmp.Or(ctx.Err(), err))
		}
	}
	for _, sentence := range m.refused {
		p.problem(a, "", notSelfContained, sentence)
	}
	for i := range p.problems {
		p.problems[i].Path = m.tag // the folder is a temporary one
	}
	p.tag, p.commit, p.date = m.tag, m.commit, m.date
	return p, nil
}
