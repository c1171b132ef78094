package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	version "github.com/hashicorp/go-version"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/git"
)

// defaultTagPattern fits a repository with one module.
const defaultTagPattern = "v" + address.VersionPlace

// gitOptions say which versions of a module are taken from a git repository.
type gitOptions struct {
	repository string // a folder or a URL
	path       string // of the module in it; empty for its root
	pattern    string // of its tags; empty for defaultTagPattern

	tag string // one of them, or
	all bool   // all that match
}

// gitModules are versions of a module, taken from a git repository.
type gitModules struct {
	repository string // without credentials
	modules    []gitModule
	skipped    []string // sentences about tags that are not published

	scratch string
}

// A gitModule is a module at a tag.
type gitModule struct {
	version     string // as the registry lists it
	tag, commit string
	tree        string    // of the module in the commit
	date        time.Time // of the commit

	// dir has exactly the files of the tag. Tags with the same files share it.
	dir string

	// refused has the reasons why this version cannot be published, in sentences. dir is empty
	// then.
	refused []string
}

// maxGitTags bounds how many versions are published at once.
const maxGitTags = 1_000

// check checks the options, as far as that is possible without the repository.
func (o *gitOptions) check() (err error) {
	o.pattern = cmp.Or(o.pattern, defaultTagPattern)
	if _, err := address.ParseTagPattern(withName(o.pattern, "x")); err != nil {
		return fmt.Errorf("--tag-pattern: %w", err)
	}
	if o.path, err = cleanGitPath(o.path); err != nil {
		return fmt.Errorf("--path: %w", err)
	}
	o.tag = strings.TrimPrefix(o.tag, "refs/tags/") // as CI has it
	if o.all == (o.tag != "") {
		return errors.New("--from-git: say which versions are published: --tag with one tag, or --all-tags")
	}
	return nil
}

// readGitModules writes the module at the tags that o names to folders in scratch, the newest
// version first. Problems of a version are in that version. An error prevents all of them.
func readGitModules(ctx context.Context, g *git.Repository, o gitOptions, scratch string) (m *gitModules, err error) {
	pattern, err := address.ParseTagPattern(o.pattern)
	if err != nil {
		return nil, fmt.Errorf("--tag-pattern: %w", err)
	}
	m = &gitModules{repository: g.Name()}
	if m.scratch, err = os.MkdirTemp(scratch, "module-"); err != nil {
		return nil, err
	}
	if m.modules, m.skipped, err = chooseTags(ctx, g, o, pattern); err != nil {
		return nil, err
	}
	if err := m.locate(ctx, g, o); err != nil {
		return nil, err
	}
	return m, m.extract(ctx, g)
}

// cleanGitPath returns the path of a folder in a repository; empty for the root.
func cleanGitPath(s string) (string, error) {
	p := path.Clean(filepath.ToSlash(s))
	switch {
	case p == ".":
		return "", nil
	case !fs.ValidPath(p), strings.ContainsAny(p, "\n\x00"):
		return "", fmt.Errorf("%q is not the path of a folder in the repository: write it relative to the repository's root, like modules/vpc", s)
	}
	return p, nil
}

// chooseTags returns the modules of the tags that o names, newest first and without their
// commits, and the reasons why other tags are skipped.
func chooseTags(ctx context.Context, g *git.Repository, o gitOptions, pattern address.TagPattern) (chosen []gitModule, skipped []string, err error) {
	tags, err := g.Tags(ctx)
	if err != nil {
		return nil, nil, err
	}
	if o.tag != "" {
		v, ok, err := pattern.Version(o.tag)
		switch {
		case !slices.Contains(tags, o.tag) && g.Fetches():
			return nil, nil, fmt.Errorf("--tag: %s has no tag %s: push it first", g.Name(), cli.Printable(o.tag))
		case !slices.Contains(tags, o.tag):
			return nil, nil, fmt.Errorf("--tag: %s has no tag %s: fetch it first, with git fetch --tags", g.Name(), cli.Printable(o.tag))
		case !ok:
			return nil, nil, fmt.Errorf("--tag: %s does not match %s%s", cli.Printable(o.tag), cli.Printable(pattern.String()), instead([]string{o.tag}))
		case err != nil:
			return nil, nil, fmt.Errorf("--tag: %s is no version: %w", cli.Printable(o.tag), err)
		}
		return []gitModule{{version: v.String(), tag: o.tag}}, nil, nil
	}
	var versions []*version.Version
	for _, tag := range tags {
		switch v, ok, err := pattern.Version(tag); {
		case err != nil:
			skipped = append(skipped, fmt.Sprintf("The tag %s is skipped: %v.", cli.Printable(tag), err))
		case ok:
			versions = append(versions, v)
		}
	}
	if len(versions) == 0 {
		return nil, nil, fmt.Errorf("--all-tags: %s has no tag that matches %s%s", g.Name(), cli.Printable(pattern.String()), instead(tags))
	}
	if len(versions) > maxGitTags {
		return nil, nil, fmt.Errorf("--all-tags: %s has more than %d tags that match %s: publish them one by one, with --tag", g.Name(), maxGitTags, cli.Printable(pattern.String()))
	}
	address.SortNewestFirst(versions, func(v *version.Version) *version.Version { return v })
	for _, v := range versions {
		chosen = append(chosen, gitModule{version: v.String(), tag: pattern.Tag(v.String())})
	}
	return chosen, skipped, nil
}

// instead suggests patterns for tags that do not match.
func instead(tags []string) string {
	if patterns := suggestPatterns(tags); patterns != "" {
		return ": try --tag-pattern " + patterns
	}
	return ": make one first, such as with git tag v1.0.0"
}

// locate finds the commits of the tags, the trees of the module in the commits, and the dates.
// A tag without a commit or a tree is skipped. It is an error if the user asked for that tag.
func (m *gitModules) locate(ctx context.Context, g *git.Repository, o gitOptions) error {
	if err := g.FetchTags(ctx, m.texts(func(module gitModule) string { return module.tag })); err != nil {
		return err
	}
	commits, err := g.Objects(ctx, "commit", m.texts(func(module gitModule) string { return "refs/tags/" + module.tag + "^{commit}" }))
	if err != nil {
		return err
	}
	for i, commit := range commits {
		m.modules[i].commit = commit
	}
	if err := m.keep(o, commits, "it is not the tag of a commit"); err != nil {
		return err
	}
	trees, err := g.Objects(ctx, "tree", m.texts(func(module gitModule) string {
		if o.path == "" {
			return module.commit + "^{tree}"
		}
		return module.commit + ":" + o.path
	}))
	if err != nil {
		return err
	}
	for i, tree := range trees {
		m.modules[i].tree = tree
	}
	if err := m.keep(o, trees, "it has no folder "+cli.Printable(o.path)); err != nil {
		return err
	}
	times, err := g.CommitTimes(ctx, m.texts(func(module gitModule) string { return module.commit }))
	for i := range m.modules {
		m.modules[i].date = times[m.modules[i].commit]
	}
	return err
}

// texts returns a text about each module.
func (m *gitModules) texts(text func(gitModule) string) []string {
	texts := make([]string, len(m.modules))
	for i, module := range m.modules {
		texts[i] = text(module)
	}
	return texts
}

// keep drops the modules without an object, and notes why.
func (m *gitModules) keep(o gitOptions, objects []string, otherwise string) error {
	var kept []gitModule
	for i, module := range m.modules {
		switch {
		case objects[i] != "":
			kept = append(kept, module)
		case !o.all:
			return fmt.Errorf("the tag %s of %s cannot be published: %s", cli.Printable(module.tag), m.repository, otherwise)
		default:
			m.skipped = append(m.skipped, fmt.Sprintf("The tag %s is skipped: %s.", cli.Printable(module.tag), otherwise))
		}
	}
	if len(kept) == 0 {
		return &noModules{fmt.Sprintf("no tag of %s can be published: %s: %s", m.repository, cli.Printable(m.modules[0].tag), otherwise)}
	}
	m.modules = kept
	return nil
}

// A noModules error says why no tag can be published.
type noModules struct{ text string }

func (n *noModules) Error() string { return "--all-tags: " + n.text }
