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
	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/publish"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A batch is all that a run of the publish command publishes.
type batch struct {
	releases []release // the newest first
	skipped  []string  // what else there is and is not published, in sentences

	// independent: a release with problems does not keep the others from being sent.
	// An old tag can never be corrected.
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

// A release is a version that is published.
type release struct {
	address  address.Address // hosted
	version  string
	files    []upload
	notes    []string        // in sentences
	problems []index.Problem // for which it cannot be published

	tag, commit string // that it is from; empty: it is from a folder
	date        time.Time
}

// A upload is a file that is sent.
type upload struct {
	publish.File
	size   int64 // in bytes
	sha256 wire.SHA256
	open   func() (io.ReadCloser, error)
}

// onDisk is how a file on the disk is opened.
func onDisk(name string) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return os.Open(name) }
}

// inMemory is how a content is opened.
func inMemory(content []byte) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
}

// read reads and checks what is published. The error is what keeps all of it from
// being read.
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

// notSelfContained is the reason of a module that works only where it was written, and
// not where it is installed.
const notSelfContained tree.Reason = "not_self_contained"

// notParsed is the reason of a module that clients refuse, since they cannot parse it.
const notParsed tree.Reason = "not_parsed"

// readModule packs a module. Where the registry would withhold it, or it would not work
// for others, the release has problems.
func readModule(ctx context.Context, a address.Address, version, dir string) (release, error) {
	p := release{address: a, version: version}
	packed, err := index.PackModule(ctx, dir)
	var bad *index.PackageError
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
