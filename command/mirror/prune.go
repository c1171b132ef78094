package mirror

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/command/remote"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
)

// PruneCommand returns the command prune.
func PruneCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "prune --root FOLDER [--own HOSTNAME]... [--modules] [--unused PERIOD] [--dry-run] [LOCK_FILE|FOLDER]...",
		Short: "Removes mirrored providers and modules that nothing names",
		Long: `
Removes from the folder of a registry the mirrored provider releases that none
of the given lock files names. A folder stands for all lock files in it and
below (.terraform.lock.hcl). Give the lock files of everything that uses the
registry, all at once: releases that they do not name are removed, for all
platforms.

Symlinks are followed. A dangling one is an error, since lock files may be
missing with it.

Try it with --dry-run first: it says what would be removed, and removes nothing.

The registry's own releases stay, since nothing could bring them back: those
under no hostname, and those under the hostnames given by --own. So do keys,
registry.hcl, and files that the registry withholds or ignores, which "check"
lists. A file that symlinks make available under several names stays if one of
them does. Modules stay too, unless --modules is given.

With --modules, mirrored modules that none of the configurations in the given
folders and below needs are removed as well. A configuration needs what init has
installed for it (.terraform/modules/modules.json), the newest version in the
registry that each of its calls allows, and what these modules call. If that is
not known, nothing is removed: init has not been run since a call was written of
a module from elsewhere, such as a Git repository, or of a module or version
that the registry does not offer, or a package cannot be read. What remains of a
module is the record of its source, so that a tag that was moved is noticed if
the version is ever fetched again.

With --unused, such as --unused 1y, releases and, with --modules, modules are
removed only if they have not been downloaded for so long, and lock files need
not be given; the versions in a lock file stay. The command asks the running
server, by its admin API. The server has to have counted downloads (option
usage) on more days than that. Versions that came into the folder since then
stay as well. The output says when each was used last.

Releases under a hostname other than registry.terraform.io and
registry.opentofu.org might be the registry's own. To remove such releases, and
for --dry-run too, --own is required. If the registry has none of its own under
a hostname, give --own "".

It may run beside a server. Packages are removed before the checksums and
signatures that they are verified with. If the server has upstreams, releases
that clients request come back.

The exit status is 0 if all is well, 1 if something could not be removed, and 2
if it could not begin.`,
		Example: `  caddy-terraform-registry prune --root /srv/terraform --own registry.example.com --dry-run ./infra
  caddy-terraform-registry prune --root /srv/terraform --own registry.example.com --modules ./infra
  caddy-terraform-registry prune --root /srv/terraform --own registry.example.com --unused 1y --dry-run`,
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("unused") {
				return nil
			}
			return cli.SomeArguments("give the lock files of everything that uses the registry, or folders with them")(cmd, args)
		},
		RunE: cli.RunE(runPrune),
	}
	addProvidersFlags(cmd)
	modulesFlag(cmd, "Remove modules too, from `folder` (default: modules under the root)")
	cmd.Flags().StringSlice("own", nil, "A `hostname` of the registry itself, whose providers and modules stay; can be repeated; \"\" for none")
	cmd.Flags().String("unused", "", "Remove only what has not been downloaded for that `period`, such as 90d or 1y")
	remote.AddAdminFlag(cmd)
	cmd.Flags().Bool("dry-run", false, "Say what would be removed, and remove nothing")
	cmd.Flags().Bool("json", false, "Print what was removed as JSON")
	return cmd
}

func runPrune(cmd *cobra.Command, args []string) error {
	fl := caddycmd.Flags{FlagSet: cmd.Flags()}
	withModules := fl.String("modules") != ""
	locks, configurations, err := readProjects(args, withModules)
	if err != nil {
		return explainModules(fl, err)
	}
	directories, err := cli.TreeFlags(fl)
	if err != nil {
		return err
	}
	var options pull.PruneOptions
	if options.Own, err = cli.HostnamesFlag(fl, "own"); err != nil {
		return err
	}
	unused, err := unusedFlag(fl, directories.Root)
	if err != nil {
		return err
	}
	files, snapshot, err := scanToPrune(cmd.Context(), directories, withModules)
	if err != nil {
		return err
	}
	result := &pruneResult{unused: unused, files: len(locks), configurations: len(configurations), dry: fl.Bool("dry-run"), withheld: len(snapshot.Report().Withheld)}
	releases, err := releasesOf(files.Providers, snapshot)
	if err != nil {
		return err
	}
	providers := &pruning{treeReleases: releases, noun: "release", from: directories.Paths()[1]}
	if unused == nil {
		providers.plan, err = pull.PlanPruning(providers.all, locks, options)
	} else {
		providers.plan, err = unused.plan(providers.treeReleases, slices.Concat(locks...), options)
	}
	if err != nil {
		return err
	}
	result.parts = append(result.parts, providers)
	if withModules {
		versions, err := moduleVersionsOf(files.Modules, snapshot)
		if err != nil {
			return err
		}
		modules := &pruning{treeReleases: versions, noun: "module version", from: directories.Paths()[2]}
		needed, err := neededModules(cmd.Context(), configurations, snapshot, options.Own)
		switch {
		case err == nil && unused != nil:
			modules.plan, err = unused.plan(modules.treeReleases, needed, options)
		case err == nil:
			modules.plan, err = pull.PlanModulePruning(modules.all, needed, options)
		}
		if err != nil {
			return err
		}
		result.parts = append(result.parts, modules)
	}
	for _, p := range result.parts {
		if err := p.keepShared(); err != nil {
			return err
		}
	}
	if err := result.requireOwn(cmd.Flags().Changed("own")); err != nil {
		return err
	}
	for _, p := range result.parts {
		if !result.dry {
			p.remove()
		}
	}
	return cli.Finish(cmd, result)
}

// scanToPrune scans the providers of a tree, and with modules its modules.
func scanToPrune(ctx context.Context, directories source.Directories, modules bool) (files tree.Tree, s *index.Snapshot, err error) {
	open := func() (t tree.Tree, err error) {
		files, err = directories.Open()
		if !modules {
			files.Modules = tree.Part{}
		}
		return files, err
	}
	s, err = cli.Scan(ctx, index.Options{Open: open, IgnoreMetadata: true})
	return files, s, err
}

// treeReleases are the provider releases or the module versions that a tree offers, with
// their files.
type treeReleases struct {
	in       tree.Part
	all      []pull.StoredRelease
	sizes    map[string]int64 // of packages in bytes, by path
	unpacked map[string]bool  // packages that are folders
}

func newTreeReleases(in tree.Part) *treeReleases {
	return &treeReleases{in: in, sizes: make(map[string]int64), unpacked: make(map[string]bool)}
}

func releasesOf(in tree.Part, s *index.Snapshot) (*treeReleases, error) {
	t := newTreeReleases(in)
	for p := range s.Providers() {
		for _, r := range p.Releases {
			var packages []*index.File
			for _, k := range r.Packages {
				packages = append(packages, k.File)
			}
			if err := t.add(p.Address, r.Version, packages...); err != nil {
				return nil, err
			}
		}
	}
	return t, nil
}

func moduleVersionsOf(in tree.Part, s *index.Snapshot) (*treeReleases, error) {
	t := newTreeReleases(in)
	for m := range s.Modules() {
		for _, v := range m.Versions {
			if err := t.add(m.Address, v.Version, v.Archive); err != nil {
				return nil, err
			}
		}
	}
	return t, nil
}

// add adds a version with its files: its packages, then its documents.
func (t *treeReleases) add(a address.Address, version string, packages ...*index.File) error {
	stored := pull.StoredRelease{Address: a, Version: version}
	for _, f := range packages {
		t.sizes[f.Path()], t.unpacked[f.Path()] = f.Size, f.IsFolder()
		stored.Files = append(stored.Files, f.Path())
	}
	dir := providerDirectory(stored.Files[0])
	for _, folder := range []string{dir, path.Join(dir, version)} {
		for _, document := range tree.DocumentNames(a, version) {
			name := path.Join(folder, document)
			switch _, err := t.in.Lookup(name); {
			case err == nil:
				stored.Files = append(stored.Files, name)
			case !tree.HasNoFile(err):
				return unread(name, err)
			}
		}
	}
	t.all = append(t.all, stored)
	return nil
}

// unread is the error for a file or folder that cannot be read. Nothing is removed then: it
// may be another name of a file in the plan.
func unread(name string, err error) error {
	return fmt.Errorf("nothing is removed: %s: %w", name, tree.AsFinding(err))
}

// providerDirectory returns the provider directory of a package, which may be in a
// version folder below it. No provider type is a version: it has no dots.
func providerDirectory(file string) string {
	dir := path.Dir(file)
	if _, err := address.ParseProviderVersion(path.Base(dir)); err == nil {
		return path.Dir(dir)
	}
	return dir
}

// A pruning removes providers, or modules, from a tree.
type pruning struct {
	*treeReleases
	noun         string
	plan         pull.Pruning
	from         string   // the folder of the providers or the modules
	shared       []string // files that stay, since they have another name too
	keptUnpacked []string // packages that stay, since they are folders
	failed       []error
}

// keepShared removes two kinds of files from the plan. First, files with another name that is
// not in the plan: folders may be symlinks to one another, and a lock file or a hosted release
// may need the file under its other name. Second, unpacked packages: something else, such as a
// client's plugin cache, may use their folders.
func (p *pruning) keepShared() error {
	goes := make(map[string]bool)
	for _, file := range p.plan.Files() {
		goes[file] = true
	}
	if len(goes) == 0 {
		return nil
	}
	stays := make(map[int64][]fs.FileInfo) // by size, since os.SameFile only compares two
	going := make(map[string]fs.FileInfo)
	err := p.in.WalkNames(".", maxFolders, func(name string, info fs.FileInfo) {
		if goes[name] {
			going[name] = info
		} else {
			stays[info.Size()] = append(stays[info.Size()], info)
		}
	})
	if err != nil {
		return fmt.Errorf("nothing is removed: %w", err)
	}
	hasOtherName := func(name string) bool {
		info := going[name]
		return info != nil && slices.ContainsFunc(stays[info.Size()], func(other fs.FileInfo) bool { return os.SameFile(info, other) })
	}
	var remove []pull.StoredRelease
	for _, h := range p.plan.Remove {
		var files []string
		packages, kept := 0, 0
		for _, file := range h.Files {
			switch {
			case p.unpacked[file]:
				p.keptUnpacked = append(p.keptUnpacked, file)
				kept++
			case hasOtherName(file):
				p.shared = append(p.shared, file)
				if isPackage(file) {
					kept++
				}
			case isPackage(file):
				packages++
				files = append(files, file)
			case kept == 0: // packages come first; one that stays needs its documents
				files = append(files, file)
			}
		}
		if h.Files = files; packages == 0 && kept > 0 {
			p.plan.Kept++
			continue
		}
		remove = append(remove, h)
	}
	p.plan.Remove = remove
	return nil
}

// maxFolders is the greatest depth of a package: it lies in folders of its hostname,
// namespace, type and version.
const maxFolders = 4

func isPackage(file string) bool {
	_, _, _, ok := address.ParseModuleFile(file)
	return ok
}

// size is the size of the packages that are removed, in bytes.
func (p *pruning) size() (sum int64) {
	for _, file := range p.plan.Files() {
		sum += p.sizes[file]
	}
	return sum
}

// remove carries out the plan. After a failure it goes on with the next release, and does not
// report the failed release as removed.
func (p *pruning) remove() {
	p.plan.Remove = slices.DeleteFunc(slices.Clone(p.plan.Remove), func(h pull.StoredRelease) bool {
		failed := len(p.failed)
		p.removeRelease(h)
		return len(p.failed) > failed
	})
}

// removeRelease removes the packages first, and the documents only if no package is
// left: without them, a package that is withheld because it does not match its
// checksum would be offered.
func (p *pruning) removeRelease(h pull.StoredRelease) {
	var documents []string
	for _, file := range h.Files {
		if !isPackage(file) {
			documents = append(documents, file)
		} else if !p.removeFile(file) {
			return
		}
	}
	if len(h.Files) == 0 {
		return
	}
	dir := providerDirectory(h.Files[0])
	if !p.hasPackages(dir, h) && !p.hasPackages(path.Join(dir, h.Version), h) {
		for _, file := range documents {
			p.removeFile(file)
		}
	}
	p.in.RemoveIfEmpty(path.Join(dir, h.Version))
	if entries, err := p.in.Entries(dir); err == nil && !slices.ContainsFunc(entries, func(e tree.Entry) bool { return !tree.IsVersionsName(e.Name) }) {
		for _, e := range entries {
			p.removeFile(e.Path())
		}
	}
	for dir != "." && p.in.RemoveIfEmpty(dir) {
		dir = path.Dir(dir)
	}
}

func (p *pruning) removeFile(name string) bool {
	err := p.in.Remove(name)
	if err != nil {
		p.failed = append(p.failed, fmt.Errorf("%s: %w", name, err))
	}
	return err == nil
}

// hasPackages reports whether a folder has packages of a release, offered or not.
func (p *pruning) hasPackages(dir string, h pull.StoredRelease) bool {
	entries, err := p.in.Entries(dir)
	return err != nil || slices.ContainsFunc(entries, func(e tree.Entry) bool {
		return strings.HasPrefix(e.Name, address.ReleaseFileName(h.Address.Name, h.Version, "")) && isPackage(e.Name)
	})
}
