package publish

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/git"
)

// namePlace stands for the name of a module, in the address, in the pattern of tags and in the
// path of the folder. With it, all modules of a repository are published.
const namePlace = "{name}"

func withName(text, name string) string { return strings.ReplaceAll(text, namePlace, name) }

// checkNamePlaces checks that the name of a module is left open everywhere or nowhere.
func checkNamePlaces(a address.Address, o *gitOptions) error {
	open := strings.Contains(a.Name, namePlace)
	if o == nil {
		if open {
			return fmt.Errorf("--to: %s stands for the modules of a repository, and belongs to --from-git", namePlace)
		}
		return nil
	}
	for _, f := range []struct{ flag, text string }{{"--tag-pattern", o.pattern}, {"--path", o.path}} {
		switch has := strings.Contains(f.text, namePlace); {
		case has && !open:
			return fmt.Errorf("%s has %s, and --to has not: write it there too, as in registry.example.com/acme/%[2]s/aws", f.flag, namePlace)
		case open && !has:
			return fmt.Errorf("--to has %s, and %s has not: write it where the name of the module is", namePlace, f.flag)
		}
	}
	if strings.Count(o.pattern, namePlace) > 1 {
		return fmt.Errorf("--tag-pattern: %q has %s twice: a tag has one name", o.pattern, namePlace)
	}
	return nil
}

// A namedModule is a module of a repository, with its address and the options to read it.
type namedModule struct {
	address address.Address
	options gitOptions
}

// namedModules returns the modules that the tags name, in order, and the reasons why others
// are skipped. Without a namePlace there is only the module of a and o.
func namedModules(ctx context.Context, g *git.Repository, a address.Address, o gitOptions) (modules []namedModule, skipped []string, err error) {
	if !strings.Contains(a.Name, namePlace) {
		return []namedModule{{a, o}}, nil, nil
	}
	tags, err := g.Tags(ctx)
	if err != nil {
		return nil, nil, err
	}
	if !o.all {
		tags = []string{o.tag}
	}
	named := regexp.QuoteMeta(o.pattern)
	named = strings.Replace(named, regexp.QuoteMeta(namePlace), `([^/]+)`, 1)
	named = strings.Replace(named, regexp.QuoteMeta(address.VersionPlace), `[0-9].*`, 1)
	pattern, err := regexp.Compile("^" + named + "$")
	if err != nil {
		return nil, nil, fmt.Errorf("--tag-pattern: %w", err)
	}
	found := make(map[string]bool)
	for _, tag := range tags {
		if m := pattern.FindStringSubmatch(tag); m != nil {
			found[m[1]] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		m := namedModule{options: o}
		if m.address, err = address.ParseModule("", a.Namespace, withName(a.Name, name), a.System); err != nil {
			skipped = append(skipped, fmt.Sprintf("The tags of %s are skipped: it is not the name of a module.", cli.Printable(name)))
			continue
		}
		m.options.pattern, m.options.path = withName(o.pattern, name), withName(o.path, name)
		modules = append(modules, m)
	}
	if len(modules) == 0 {
		flag := "--all-tags: " + g.Name() + " has no tag that matches "
		if !o.all {
			flag = "--tag: " + cli.Printable(o.tag) + " does not match "
		}
		return nil, nil, errors.New(flag + cli.Printable(o.pattern))
	}
	return modules, skipped, nil
}

// readGitBatch packs the modules of a repository at their tags. With a namePlace, a module
// without a folder at any of its tags is skipped: tags of other things may look like tags of a
// module.
func readGitBatch(ctx context.Context, o gitOptions, a address.Address) (*batch, error) {
	scratch, err := os.MkdirTemp("", "terraform-registry-publish-")
	if err != nil {
		return nil, err
	}
	b := &batch{independent: o.all, close: func() { os.RemoveAll(scratch) }}
	g, err := openGit(ctx, o.repository, scratch)
	if err != nil {
		return b, err
	}
	modules, skipped, err := namedModules(ctx, g, a, o)
	if err != nil {
		return b, err
	}
	b.skipped = skipped
	var none error
	for _, named := range modules {
		m, err := readGitModules(ctx, g, named.options, scratch)
		if nothing, ok := errors.AsType[*noModules](err); ok && o.all {
			none = err
			b.skipped = append(b.skipped, fmt.Sprintf("The module %s is skipped: %s.", named.address, nothing.text))
			continue
		}
		if err != nil {
			return b, err
		}
		releases, err := readGitReleases(ctx, m, named.address)
		if err != nil {
			return b, err
		}
		b.releases, b.skipped = append(b.releases, releases...), append(b.skipped, m.skipped...)
	}
	switch {
	case len(b.releases) == 0:
		return b, none
	case len(b.releases) > maxGitTags:
		return b, fmt.Errorf("--all-tags: %s has more than %d versions: publish its modules one by one", g.Name(), maxGitTags)
	}
	return b, nil
}
