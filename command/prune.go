package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/dustin/go-humanize"
	"github.com/spf13/afero"
	"github.com/spf13/cobra"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/fill"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/lockfile"
)

func pruneCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "prune --root <folder> [--own <hostname>]... [--dry-run] <lock file>|<folder>...",
		Short: "Removes mirrored providers that no lock file names",
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
under no hostname, and those under the hostnames given by --own. So do modules,
keys, and files that the registry withholds or ignores, which "check" lists. A
file that symlinks make available under several names stays if one of them does.

Releases under a hostname other than registry.terraform.io and
registry.opentofu.org might be the registry's own. To remove such releases, and
for --dry-run too, --own is required. If the registry has none of its own under
a hostname, give --own "".

It may run beside a server. Packages are removed before the checksums and
signatures that they are verified with. If the server has upstreams, releases
that clients request come back.

The exit status is 0 if all is well, 1 if something could not be removed, and 2
if it could not begin.`,
		Example: `  caddy terraform-registry prune --root /srv/terraform --own registry.example.com --dry-run ./infra
  caddy terraform-registry prune --root /srv/terraform --own registry.example.com ./infra`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError(cmd, errors.New("give the lock files of everything that uses the registry, or folders with them"))
			}
			return nil
		},
		RunE: runPrune,
	}
	addProvidersFlags(cmd)
	cmd.Flags().StringSlice("own", nil, "A hostname of the registry itself, whose providers stay; can be repeated; \"\" for none")
	cmd.Flags().Bool("dry-run", false, "Say what would be removed, and remove nothing")
	cmd.Flags().Bool("json", false, "Print what was removed as JSON")
	cmd.SetFlagErrorFunc(usageError)
	return cmd
}

func runPrune(cmd *cobra.Command, args []string) error {
	fl := caddycmd.Flags{FlagSet: cmd.Flags()}
	directories, err := treeFlags(fl)
	if err != nil {
		return usageError(cmd, err)
	}
	var options fill.PruneOptions
	if options.Own, err = hostnamesFlag(fl, "own"); err != nil {
		return usageError(cmd, err)
	}
	locks, err := readLockFiles(args)
	if err != nil {
		return usageError(cmd, err)
	}
	bar := newProgressBar(os.Stderr)
	releases, err := scanReleases(cmd.Context(), directories, bar.show)
	bar.clear()
	if err != nil {
		return usageError(cmd, err)
	}
	plan, err := fill.PlanPruning(releases.all, locks, options)
	if err != nil {
		return usageError(cmd, err)
	}
	p := &pruning{
		treeReleases: releases, plan: plan, files: len(locks), dry: fl.Bool("dry-run"),
		from: directories.Paths()[1],
	}
	p.keepShared()
	if err := p.requireOwn(cmd.Flags().Changed("own")); err != nil {
		return usageError(cmd, err)
	}
	if !p.dry {
		p.remove()
	}
	if err := printResult(cmd, p); err != nil {
		return usageError(cmd, err)
	}
	if len(p.failed) > 0 {
		return problem(cmd)
	}
	return nil
}

// scanReleases finds the provider releases that a tree offers.
func scanReleases(ctx context.Context, directories index.Directories, progress func(index.Progress)) (*treeReleases, error) {
	var tree index.Tree
	snapshot, err := index.Scan(ctx, index.Options{
		Open: func() (t index.Tree, err error) {
			tree, err = directories.Open()
			t = tree
			t.Modules = index.Part{Fs: afero.NewMemMapFs(), Dir: "."} // they need not be read
			return t, err
		},
		Signer:   unusedKey{},
		Progress: progress,
	})
	if err != nil {
		return nil, err
	}
	return newTreeReleases(tree.Providers, snapshot), nil
}

// treeReleases are the provider releases that a tree offers, with their files.
type treeReleases struct {
	in       index.Part
	all      []fill.Held
	sizes    map[string]int64 // of packages in bytes, by path
	unpacked map[string]bool  // packages that are folders
	withheld int              // files
}

func newTreeReleases(in index.Part, s *index.Snapshot) *treeReleases {
	t := &treeReleases{in: in, sizes: make(map[string]int64), unpacked: make(map[string]bool), withheld: len(s.Report.Withheld)}
	for p := range s.Providers() {
		for _, r := range p.Releases {
			t.all = append(t.all, t.filesOf(p.Address, r))
		}
	}
	return t
}

// filesOf lists the files of a release: its packages, then its documents.
func (t *treeReleases) filesOf(a address.Address, r *index.Release) fill.Held {
	held := fill.Held{Address: a, Version: r.Version}
	for _, p := range r.Packages {
		held.Files = append(held.Files, p.File.Path())
		t.sizes[p.File.Path()] = p.File.Size
		if p.File.IsFolder() {
			t.unpacked[p.File.Path()] = true
		}
	}
	dir := providerDirectory(held.Files[0])
	for _, folder := range []string{dir, path.Join(dir, r.Version)} {
		for _, document := range []func(typ, version string) string{address.SignatureName, address.ChecksumsName, address.ManifestName} {
			name := path.Join(folder, document(a.Name, r.Version))
			if _, err := t.in.Fs.Stat(path.Join(t.in.Dir, name)); err == nil {
				held.Files = append(held.Files, name)
			}
		}
	}
	return held
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

// A pruning is one run of the prune command.
type pruning struct {
	*treeReleases
	plan         fill.Pruning
	files        int    // lock files
	from         string // the folder of the providers
	dry          bool
	shared       []string // files that stay, since they have another name too
	keptUnpacked []string // packages that stay, since they are folders
	failed       []error
}

// requireOwn refuses to remove releases that may be the registry's own, unless --own
// is given. Only the public registries are certainly others; lock files do not tell
// them apart.
func (p *pruning) requireOwn(given bool) error {
	var hostnames []string
	for _, h := range p.plan.Remove {
		if host := h.Address.Hostname; host != lockfile.TerraformHost && host != lockfile.OpenTofuHost && !slices.Contains(hostnames, host.ForDisplay()) {
			hostnames = append(hostnames, host.ForDisplay())
		}
	}
	if given || len(hostnames) == 0 {
		return nil
	}
	noun := "a hostname"
	if len(hostnames) > 1 {
		noun = "hostnames"
	}
	return fmt.Errorf("%s may be %s of the registry itself: give its hostnames with --own, or --own \"\" if it has no providers under a hostname of its own", strings.Join(hostnames, ", "), noun)
}

// keepShared removes two kinds of files from the plan. Files that have another name
// which is not in the plan: folders may be symlinks to one another, and a file that
// is removed by one name is gone under all, also for a lock file or a hosted release
// that needs it. And unpacked packages: their folders may be in use otherwise, such
// as a client's plugin cache.
func (p *pruning) keepShared() {
	goes := make(map[string]bool)
	for _, file := range p.plan.Files() {
		goes[file] = true
	}
	if len(goes) == 0 {
		return
	}
	stays := make(map[int64][]fs.FileInfo) // by size, since os.SameFile only compares two
	p.eachFile(".", 0, func(name string, info fs.FileInfo) {
		if !goes[name] {
			stays[info.Size()] = append(stays[info.Size()], info)
		}
	})
	shared := func(name string) bool {
		info, err := p.in.Fs.Stat(path.Join(p.in.Dir, name))
		return err == nil && slices.ContainsFunc(stays[info.Size()], func(other fs.FileInfo) bool { return os.SameFile(info, other) })
	}
	var remove []fill.Held
	for _, h := range p.plan.Remove {
		var files []string
		packages, kept := 0, 0
		for _, file := range h.Files {
			switch {
			case p.unpacked[file]:
				p.keptUnpacked = append(p.keptUnpacked, file)
				kept++
			case shared(file):
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
}

// maxFolders is how deep a package may lie: in folders of its hostname,
// namespace, type and version.
const maxFolders = 4

// eachFile visits all files under all their names, following symlinks. What cannot be
// read is skipped: the registry does not offer it.
func (p *pruning) eachFile(dir string, depth int, visit func(name string, info fs.FileInfo)) {
	entries, _ := afero.ReadDir(p.in.Fs, path.Join(p.in.Dir, dir))
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		info, err := p.in.Fs.Stat(path.Join(p.in.Dir, name))
		switch {
		case err != nil:
		case !info.IsDir():
			visit(name, info)
		case depth < maxFolders:
			p.eachFile(name, depth+1, visit)
		}
	}
}

func isPackage(file string) bool { return strings.HasSuffix(file, ".zip") }

// size is the size of the packages that are removed, in bytes.
func (p *pruning) size() (sum int64) {
	for _, file := range p.plan.Files() {
		sum += p.sizes[file]
	}
	return sum
}

// remove carries out the plan. After a failure it goes on with the next release, and
// the failed one is not reported as removed.
func (p *pruning) remove() {
	p.plan.Remove = slices.DeleteFunc(slices.Clone(p.plan.Remove), func(h fill.Held) bool {
		failed := len(p.failed)
		p.removeRelease(h)
		return len(p.failed) > failed
	})
}

// removeRelease removes the packages first, and the documents only if no package is
// left: without them, a package that is withheld because it does not match its
// checksum would be offered.
func (p *pruning) removeRelease(h fill.Held) {
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
	p.removeFolder(path.Join(dir, h.Version))
	if p.onlyRecord(dir) {
		p.removeFile(path.Join(dir, recordName))
	}
	for dir != "." && p.removeFolder(dir) {
		dir = path.Dir(dir)
	}
}

func (p *pruning) removeFile(name string) bool {
	err := p.in.Fs.Remove(path.Join(p.in.Dir, name))
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return true
	}
	var inner *fs.PathError
	if errors.As(err, &inner) {
		err = inner.Err
	}
	p.failed = append(p.failed, fmt.Errorf("%s: %w", name, err))
	return false
}

// removeFolder removes a folder if it is empty.
func (p *pruning) removeFolder(dir string) bool {
	name := path.Join(p.in.Dir, dir)
	entries, err := afero.ReadDir(p.in.Fs, name)
	return err == nil && len(entries) == 0 && p.in.Fs.Remove(name) == nil
}

// hasPackages reports whether a folder has packages of a release, offered or not.
func (p *pruning) hasPackages(dir string, h fill.Held) bool {
	entries, _ := afero.ReadDir(p.in.Fs, path.Join(p.in.Dir, dir))
	return slices.ContainsFunc(entries, func(e fs.FileInfo) bool {
		return strings.HasPrefix(e.Name(), address.ReleaseFileName(h.Address.Name, h.Version, "")) && isPackage(e.Name())
	})
}

// recordName is the file in which a mirror keeps the list of a provider's versions.
// Without the provider it has no use.
const recordName = ".versions.json"

func (p *pruning) onlyRecord(dir string) bool {
	entries, _ := afero.ReadDir(p.in.Fs, path.Join(p.in.Dir, dir))
	return len(entries) == 1 && entries[0].Name() == recordName
}

func (p *pruning) writeText(out, errs io.Writer) error {
	if len(p.plan.Remove) > 0 {
		heading := "REMOVED"
		if p.dry {
			heading = "WOULD BE REMOVED"
		}
		fmt.Fprintln(out, heading)
	}
	for _, h := range p.plan.Remove {
		fmt.Fprintf(out, "%s %s\n", h.Address, h.Version)
		for _, file := range h.Files {
			fmt.Fprintf(out, "  %s\n", printable(file))
		}
	}
	written := len(p.plan.Remove) > 0
	for _, kept := range []struct {
		heading string
		files   []string
	}{{"KEPT, SINCE IT HAS ANOTHER NAME TOO", p.shared}, {"KEPT, SINCE IT IS UNPACKED: REMOVE THE FOLDER YOURSELF", p.keptUnpacked}} {
		for i, file := range kept.files {
			if i == 0 {
				if written {
					fmt.Fprintln(out)
				}
				written = true
				fmt.Fprintln(out, kept.heading)
			}
			fmt.Fprintln(out, printable(file))
		}
	}
	for i, err := range p.failed {
		if i == 0 {
			fmt.Fprintln(errs, "\nCOULD NOT BE REMOVED")
		}
		fmt.Fprintln(errs, printable(err.Error()))
	}
	verb := "Removed from"
	if p.dry {
		verb = "Would be removed from"
	}
	summary := fmt.Sprintf("%s %s: %s, %s. Kept: %d, by %s.", verb, p.from, count(len(p.plan.Remove), "release"),
		humanize.Bytes(uint64(p.size())), p.plan.Kept, count(p.files, "lock file"))
	if p.withheld > 0 {
		summary += fmt.Sprintf(" Left alone: %d withheld by the registry (`check` says why).", p.withheld)
	}
	if written {
		summary = "\n" + summary
	}
	_, err := fmt.Fprintln(out, summary)
	return err
}

// A pruneDocument is what `prune --json` prints.
type pruneDocument struct {
	From      string          `json:"from"`
	DryRun    bool            `json:"dry_run"`
	Removed   []prunedRelease `json:"removed"` // in a dry run: that would be
	Size      int64           `json:"size"`
	Shared    []string        `json:"shared"`   // files that stay, since they have another name too
	Unpacked  []string        `json:"unpacked"` // packages that stay, since they are folders
	Failed    []string        `json:"failed"`
	Kept      int             `json:"kept"`
	LockFiles int             `json:"lock_files"`
	Withheld  int             `json:"withheld"`
}

type prunedRelease struct {
	Provider string   `json:"provider"`
	Version  string   `json:"version"`
	Files    []string `json:"files"`
}

func (p *pruning) document() any {
	d := pruneDocument{
		From: p.from, DryRun: p.dry, Removed: []prunedRelease{}, Size: p.size(), Shared: append([]string{}, p.shared...),
		Unpacked: append([]string{}, p.keptUnpacked...), Failed: []string{}, Kept: p.plan.Kept, LockFiles: p.files, Withheld: p.withheld,
	}
	for _, h := range p.plan.Remove {
		d.Removed = append(d.Removed, prunedRelease{h.Address.String(), h.Version, append([]string{}, h.Files...)})
	}
	for _, err := range p.failed {
		d.Failed = append(d.Failed, err.Error())
	}
	return d
}
