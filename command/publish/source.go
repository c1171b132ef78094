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
	"slices"
	"time"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/publish"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A source says what to publish.
type source struct {
	folder  string
	version string      // empty: the version of the only release in the folder
	docs    string      // a folder; empty: none
	git     *gitOptions // nil: it is the folder
}

// addSourceFlags adds the flags that say what to publish.
func addSourceFlags(cmd *cobra.Command) {
	cmd.Flags().String("version", "", "The `version` of a module; of a provider, if the folder has several")
	cmd.Flags().String("docs", "", "The `folder` with the documentation of a provider")
	cmd.Flags().String("from-git", "", "A git `repository`, by its folder or URL, whose tags are versions of a module")
	cmd.Flags().String("tag-pattern", defaultTagPattern, "The `pattern` that these tags have")
	cmd.Flags().String("path", "", "The `folder` of the module in the repository (default: its root)")
	cmd.Flags().String("tag", "", "The `tag` to publish")
	cmd.Flags().Bool("all-tags", false, "Publish all tags that match the pattern")
}

// sourceFlags reads the flags and arguments that say what to publish at an address.
func sourceFlags(fl caddycmd.Flags, args []string, a address.Address) (s source, err error) {
	if fl.Changed("from-git") {
		s.git = &gitOptions{
			repository: fl.String("from-git"), path: fl.String("path"), pattern: fl.String("tag-pattern"),
			tag: fl.String("tag"), all: fl.Bool("all-tags"),
		}
	}
	if err := refuseFlags(fl, a.IsModule(), s.git != nil); err != nil {
		return s, err
	}
	if err := checkNamePlaces(a, s.git); err != nil {
		return s, err
	}
	if s.git != nil {
		if err := s.git.check(); err != nil {
			return s, err
		}
	}
	if err := checkWait(fl, args, s.git != nil); err != nil {
		return s, err
	}
	switch {
	case s.git != nil && len(args) > 0:
		return s, fmt.Errorf("unexpected argument %q: with --from-git the folder of the module is given by --path", args[0])
	case s.git != nil:
		return s, nil
	case (len(args) != 1 || args[0] == "") && a.IsModule(): // empty: an input of a CI job that was not given
		return s, errors.New("give one folder, that of the module")
	case len(args) != 1 || args[0] == "":
		return s, errors.New("give one folder: GoReleaser's dist, or one with the files of a release")
	}
	if info, err := os.Stat(args[0]); err != nil || !info.IsDir() {
		return s, fmt.Errorf("%s is not a folder", cli.Printable(args[0]))
	}
	s.folder, s.docs = args[0], fl.String("docs")
	switch text := fl.String("version"); {
	case text == "" && a.IsModule():
		return s, errors.New("--version is required for a module: give it as in 1.2.0")
	case text == "":
		return s, nil
	default:
		v, err := address.ParseModuleVersion(text)
		if err != nil {
			return s, fmt.Errorf("--version: %w", err)
		}
		s.version = v.String()
	}
	return s, nil
}

// checkWait refuses an argument that was meant as the value of --wait.
func checkWait(fl caddycmd.Flags, args []string, fromGit bool) error {
	if !cli.WithoutValue(fl, "wait") || len(args) == 1 && !fromGit {
		return nil
	}
	for _, arg := range args {
		if _, err := time.ParseDuration(arg); err == nil {
			return fmt.Errorf("--wait: write --wait=%s, with an equals sign", arg)
		}
	}
	return nil
}

// refuseFlags refuses flags that do not apply.
func refuseFlags(fl caddycmd.Flags, isModule, fromGit bool) error {
	for _, group := range []struct {
		refused bool
		why     string
		flags   []string
	}{
		{isModule, "is for providers, and --to names a module", []string{"docs", "drop-staged"}},
		{!isModule, "is for modules, and --to names a provider", []string{"from-git"}},
		{!fromGit, "belongs to --from-git", []string{"tag-pattern", "path", "tag", "all-tags"}},
		{fromGit, "does not go with --from-git, which takes it from the tag", []string{"version"}},
	} {
		if at := slices.IndexFunc(group.flags, fl.Changed); group.refused && at >= 0 {
			return fmt.Errorf("--%s %s", group.flags[at], group.why)
		}
	}
	return nil
}

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
