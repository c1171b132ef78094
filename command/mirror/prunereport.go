package mirror

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
)

// A pruneResult is the result of a run of the prune command.
type pruneResult struct {
	parts          []*pruning // providers, and modules if they are asked for
	files          int        // lock files
	configurations int
	withheld       int          // files
	unused         *unusedSince // with --unused
	dry            bool
}

// requireOwn refuses to remove releases that may belong to the registry itself, unless --own
// is given. Only the public registries are certainly others. Lock files do not tell.
func (r *pruneResult) requireOwn(given bool) error {
	var hostnames []string
	for _, h := range r.removed() {
		if host := h.Address.Hostname; !address.IsDefaultHost(host) && !slices.Contains(hostnames, host.ForDisplay()) {
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

// removed returns what is removed of all parts.
func (r *pruneResult) removed() (all []pull.StoredRelease) {
	for _, p := range r.parts {
		all = append(all, p.plan.Remove...)
	}
	return all
}

func (r *pruneResult) Status() int {
	if len(r.failures()) > 0 {
		return cli.ExitProblem
	}
	return 0
}

func (r *pruneResult) WriteText(out, errs io.Writer) error {
	heading := "REMOVED"
	if r.dry {
		heading = "WOULD BE REMOVED"
	}
	cli.WriteSection(out, heading, r.removed(), func(h pull.StoredRelease) string {
		text := fmt.Sprintf("%s %s", h.Address, h.Version)
		if h.Why != "" {
			text += ": " + h.Why
		}
		text += "\n"
		for _, file := range h.Files {
			text += fmt.Sprintf("  %s\n", cli.Printable(strings.TrimPrefix(file, h.Address.String()+"/")))
		}
		return text
	})
	cli.WriteSection(out, "KEPT, SINCE IT HAS ANOTHER NAME TOO", r.sharedFiles(), cli.Printable)
	cli.WriteSection(out, "KEPT, SINCE IT IS UNPACKED: REMOVE THE FOLDER YOURSELF", r.unpacked(), cli.Printable)
	if failures := r.failures(); len(failures) > 0 {
		fmt.Fprint(errs, "\nCOULD NOT BE REMOVED\n")
		for _, text := range failures {
			fmt.Fprintln(errs, cli.Printable(text))
		}
	}
	_, err := fmt.Fprintln(out, r.summary())
	return err
}

// each returns some texts about all parts; never nil.
func (r *pruneResult) each(texts func(*pruning) []string) []string {
	all := []string{}
	for _, p := range r.parts {
		all = append(all, texts(p)...)
	}
	return all
}

func (r *pruneResult) sharedFiles() []string {
	return r.each(func(p *pruning) []string { return p.shared })
}

func (r *pruneResult) unpacked() []string {
	return r.each(func(p *pruning) []string { return p.keptUnpacked })
}

func (r *pruneResult) failures() []string {
	return r.each(func(p *pruning) (texts []string) {
		for _, err := range p.failed {
			texts = append(texts, err.Error())
		}
		return texts
	})
}

func (r *pruneResult) summary() string {
	verb := "Removed from"
	if r.dry {
		verb = "Would be removed from"
	}
	var lines []string
	for i, p := range r.parts {
		by := cli.Count(r.files, "lock file")
		if i > 0 {
			by = cli.Count(r.configurations, "configuration")
		}
		if r.unused != nil {
			by = "use since " + r.unused.since + " and " + by
		}
		lines = append(lines, fmt.Sprintf("%s %s: %s, %s. Kept: %d, by %s.", verb, p.from, cli.Count(len(p.plan.Remove), p.noun), humanize.Bytes(uint64(p.size())), p.plan.Kept, by))
	}
	if r.withheld > 0 {
		lines[len(lines)-1] += fmt.Sprintf(" Left alone: %d withheld by the registry (`check` says why).", r.withheld)
	}
	return strings.Join(lines, "\n")
}

// A pruneDocument is the output of `prune --json`.
type pruneDocument struct {
	From           string          `json:"from"`
	ModulesFrom    string          `json:"modules_from,omitempty"` // with --modules
	DryRun         bool            `json:"dry_run"`
	Removed        []prunedRelease `json:"removed"` // in a dry run: that would be
	Size           int64           `json:"size"`
	Shared         []string        `json:"shared"`   // files that stay, since they have another name too
	Unpacked       []string        `json:"unpacked"` // packages that stay, since they are folders
	Failed         []string        `json:"failed"`
	Kept           int             `json:"kept"`
	LockFiles      int             `json:"lock_files"`
	Configurations int             `json:"configurations,omitempty"` // with --modules
	UnusedSince    string          `json:"unused_since,omitempty"`   // with --unused
	Withheld       int             `json:"withheld"`
}

type prunedRelease struct {
	Kind     string   `json:"kind"` // provider or module
	Provider string   `json:"provider,omitempty"`
	Module   string   `json:"module,omitempty"`
	Version  string   `json:"version"`
	Why      string   `json:"why,omitempty"` // with --unused
	Files    []string `json:"files"`
}

func (r *pruneResult) Document() any {
	d := pruneDocument{
		From: r.parts[0].from, DryRun: r.dry, Removed: []prunedRelease{}, LockFiles: r.files, Configurations: r.configurations, Withheld: r.withheld,
		Shared: r.sharedFiles(), Unpacked: r.unpacked(), Failed: r.failures(),
	}
	if r.unused != nil {
		d.UnusedSince = r.unused.since
	}
	for i, p := range r.parts {
		d.Size += p.size()
		d.Kept += p.plan.Kept
		if i > 0 {
			d.ModulesFrom = p.from
		}
	}
	for _, h := range r.removed() {
		one := prunedRelease{Kind: "provider", Provider: h.Address.String(), Version: h.Version, Why: h.Why, Files: append([]string{}, h.Files...)}
		if h.Address.IsModule() {
			one.Kind, one.Provider, one.Module = "module", "", h.Address.String()
		}
		d.Removed = append(d.Removed, one)
	}
	return d
}
