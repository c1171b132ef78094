package command

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/caddy-terraform/caddy-terraform-registry/upstream/fill"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/lockfile"
)

// A pruneResult is the result of a run of the prune command.
type pruneResult struct {
	parts          []*pruning // providers, and modules if they are asked for
	files          int        // lock files
	configurations int
	withheld       int // files
	dry            bool
}

// requireOwn refuses to remove releases that may be the registry's own, unless --own
// is given. Only the public registries are certainly others; lock files do not tell
// them apart.
func (r *pruneResult) requireOwn(given bool) error {
	var hostnames []string
	for _, h := range r.removed() {
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

// removed returns what is removed of all parts.
func (r *pruneResult) removed() (all []fill.StoredRelease) {
	for _, p := range r.parts {
		all = append(all, p.plan.Remove...)
	}
	return all
}

func (r *pruneResult) failures() (n int) {
	for _, p := range r.parts {
		n += len(p.failed)
	}
	return n
}

func (r *pruneResult) writeText(out, errs io.Writer) error {
	removed := r.removed()
	if len(removed) > 0 {
		heading := "REMOVED"
		if r.dry {
			heading = "WOULD BE REMOVED"
		}
		fmt.Fprintln(out, heading)
	}
	for _, h := range removed {
		fmt.Fprintf(out, "%s %s\n", h.Address, h.Version)
		for _, file := range h.Files {
			fmt.Fprintf(out, "  %s\n", printable(strings.TrimPrefix(file, h.Address.String()+"/")))
		}
	}
	written := len(removed) > 0
	for _, kept := range []struct {
		heading string
		files   func(*pruning) []string
	}{
		{"KEPT, SINCE IT HAS ANOTHER NAME TOO", func(p *pruning) []string { return p.shared }},
		{"KEPT, SINCE IT IS UNPACKED: REMOVE THE FOLDER YOURSELF", func(p *pruning) []string { return p.keptUnpacked }},
	} {
		for i, file := range r.each(kept.files) {
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
	heading := "\nCOULD NOT BE REMOVED\n"
	for _, p := range r.parts {
		for _, err := range p.failed {
			fmt.Fprintf(errs, "%s%s\n", heading, printable(err.Error()))
			heading = ""
		}
	}
	if written {
		fmt.Fprintln(out)
	}
	_, err := fmt.Fprintln(out, r.summary())
	return err
}

// each returns some files of all parts.
func (r *pruneResult) each(files func(*pruning) []string) []string {
	all := []string{}
	for _, p := range r.parts {
		all = append(all, files(p)...)
	}
	return all
}

func (r *pruneResult) summary() string {
	verb := "Removed from"
	if r.dry {
		verb = "Would be removed from"
	}
	var lines []string
	for i, p := range r.parts {
		by := count(r.files, "lock file")
		if i > 0 {
			by = count(r.configurations, "configuration")
		}
		lines = append(lines, fmt.Sprintf("%s %s: %s, %s. Kept: %d, by %s.", verb, p.from, count(len(p.plan.Remove), p.noun), humanize.Bytes(uint64(p.size())), p.plan.Kept, by))
	}
	if r.withheld > 0 {
		lines[len(lines)-1] += fmt.Sprintf(" Left alone: %d withheld by the registry (`check` says why).", r.withheld)
	}
	return strings.Join(lines, "\n")
}

// A pruneDocument is what `prune --json` prints.
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
	Withheld       int             `json:"withheld"`
}

type prunedRelease struct {
	Kind     string   `json:"kind"` // provider or module
	Provider string   `json:"provider,omitempty"`
	Module   string   `json:"module,omitempty"`
	Version  string   `json:"version"`
	Files    []string `json:"files"`
}

func (r *pruneResult) document() any {
	d := pruneDocument{
		From: r.parts[0].from, DryRun: r.dry, Removed: []prunedRelease{}, LockFiles: r.files, Configurations: r.configurations, Withheld: r.withheld,
		Shared:   r.each(func(p *pruning) []string { return p.shared }),
		Unpacked: r.each(func(p *pruning) []string { return p.keptUnpacked }),
		Failed: r.each(func(p *pruning) (texts []string) {
			for _, err := range p.failed {
				texts = append(texts, err.Error())
			}
			return texts
		}),
	}
	for i, p := range r.parts {
		d.Size += p.size()
		d.Kept += p.plan.Kept
		if i > 0 {
			d.ModulesFrom = p.from
		}
	}
	for _, h := range r.removed() {
		one := prunedRelease{Kind: "provider", Provider: h.Address.String(), Version: h.Version, Files: append([]string{}, h.Files...)}
		if h.Address.IsModule() {
			one.Kind, one.Provider, one.Module = "module", "", h.Address.String()
		}
		d.Removed = append(d.Removed, one)
	}
	return d
}
