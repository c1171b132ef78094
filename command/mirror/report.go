package mirror

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/lockfile"
)

// A mirrorResult is the result of a run of the mirror command.
type mirrorResult struct {
	*mirrorRun
	outcomes    []mirrorOutcome
	interrupted bool
}

// complete reports whether everything that is required is in the tree.
func (r *mirrorResult) complete() bool {
	_, failed := r.counts()
	return failed == 0 && len(r.unresolved)+len(r.unlocked) == 0 && !r.interrupted
}

// address is the address of the provider or module.
func (o mirrorOutcome) address() string { return cmp.Or(o.provider, o.module) }

func (r *mirrorResult) counts() (added, failed int) {
	for _, o := range r.outcomes {
		switch {
		case o.err != nil:
			failed++
		case o.added:
			added++
		}
	}
	return added, failed
}

func (r *mirrorResult) Status() int {
	if !r.complete() {
		return cli.ExitProblem
	}
	return 0
}

func (r *mirrorResult) WriteText(out, errs io.Writer) error {
	if err := r.writeAdded(out); err != nil {
		return err
	}
	r.writeFailed(errs)
	cli.WriteSection(errs, "WITHDRAWN, SO THAT ANOTHER VERSION WAS CHOSEN", r.withdrawn, cli.Printable)
	cli.WriteSection(errs, "MAY NEED MORE", r.unresolved, func(u lockfile.Unresolved) string { return cli.Printable(u.String()) })
	var unlocked []string
	for _, u := range r.unlocked {
		unlocked = append(unlocked, cli.Printable(u.String()))
	}
	if len(unlocked) > 0 {
		unlocked = append(unlocked, cli.Wrap("The configurations require these providers, but no version of them is locked: update the lock files with `terraform providers lock` or `terraform init`.", 0))
	}
	cli.WriteSection(errs, "NOT LOCKED", unlocked, func(line string) string { return line })
	if r.interrupted {
		fmt.Fprint(errs, "Interrupted: run the same command again to continue.\n\n")
	}
	_, err := fmt.Fprintln(out, r.summary())
	return err
}

func (r *mirrorResult) writeAdded(out io.Writer) error {
	rows := [][]string{{"ADDED", "VERSION", "PLATFORM", "SIZE"}}
	if r.dry { // sizes are not known
		rows = [][]string{{"WOULD BE ADDED", "VERSION", "PLATFORM"}}
	}
	for _, o := range r.outcomes {
		if o.err != nil || !o.added {
			continue
		}
		row := []string{o.address(), o.version, cmp.Or(o.platform, "-"), humanize.Bytes(uint64(o.size))}
		rows = append(rows, row[:len(rows[0])])
	}
	if len(rows) == 1 {
		return nil
	}
	if err := cli.WriteTable(out, rows); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out)
	return err
}

func (r *mirrorResult) writeFailed(errs io.Writer) {
	failed := slices.DeleteFunc(slices.Clone(r.outcomes), func(o mirrorOutcome) bool { return o.err == nil })
	cli.WriteSection(errs, "FAILED", failed, func(o mirrorOutcome) string {
		message := o.err.Error()
		if len(o.requiredBy) > 0 {
			message += " (for " + strings.Join(o.requiredBy, ", ") + ")"
		}
		subject := strings.Join(strings.Fields(o.address()+" "+o.version+" "+o.platform), " ")
		return subject + ": " + cli.Printable(message)
	})
}

// summary gives the numbers of the result in a few sentences.
func (r *mirrorResult) summary() string {
	added, failed := r.counts()
	var b strings.Builder
	verb := "Added to "
	if r.dry {
		verb = "Would be added to "
	}
	b.WriteString(verb)
	r.writeTotal(&b, r.into, "package", func(o mirrorOutcome) bool { return o.module == "" })
	if r.modulesInto != "" {
		b.WriteString("; to ")
		r.writeTotal(&b, r.modulesInto, "module", func(o mirrorOutcome) bool { return o.module != "" })
	}
	b.WriteString(".")
	fmt.Fprintf(&b, " There already: %d. Failed: %d.", len(r.outcomes)-added-failed, failed)
	if len(r.leftOut) > 0 {
		fmt.Fprintf(&b, " Left out as the registry's own: %s.", strings.Join(r.leftOut, ", "))
	}
	if len(r.skipped) > 0 {
		fmt.Fprintf(&b, " Skipped, since no registry has legacy providers: %s.", strings.Join(r.skipped, ", "))
	}
	if r.thisMachine {
		fmt.Fprintf(&b, "\nThis is for %s, the platform of this machine: name others with --platform.", r.platforms[0])
	}
	return b.String()
}

// writeTotal writes how many packages of a kind were added to a folder, and their size.
func (r *mirrorResult) writeTotal(b *strings.Builder, into, noun string, is func(mirrorOutcome) bool) {
	added, size := 0, int64(0)
	for _, o := range r.outcomes {
		if o.added && o.err == nil && is(o) {
			added++
			size += o.size
		}
	}
	fmt.Fprintf(b, "%s: %s", into, cli.Count(added, noun))
	if !r.dry {
		fmt.Fprintf(b, ", %s", humanize.Bytes(uint64(size)))
	}
}

// A mirrorDocument is the output of `mirror --json`.
type mirrorDocument struct {
	Into        string                `json:"into"`
	ModulesInto string                `json:"modules_into,omitempty"` // with --modules
	DryRun      bool                  `json:"dry_run"`
	Complete    bool                  `json:"complete"`
	Interrupted bool                  `json:"interrupted"`
	Added       []mirroredPackage     `json:"added"` // in a dry run: that would be
	Present     []mirroredPackage     `json:"present"`
	Failed      []mirroredPackage     `json:"failed"`
	Unresolved  []lockfile.Unresolved `json:"unresolved"`
	NotLocked   []unlocked            `json:"not_locked"`
	Withdrawn   []string              `json:"withdrawn"` // that would have been chosen, and why they were not
	LeftOut     []string              `json:"left_out"`
	Skipped     []string              `json:"skipped"`
}

// A mirroredPackage is a mirrorOutcome in JSON.
type mirroredPackage struct {
	Kind     string   `json:"kind"` // provider or module
	Provider string   `json:"provider,omitempty"`
	Module   string   `json:"module,omitempty"`
	Version  string   `json:"version,omitempty"`
	Platform string   `json:"platform,omitempty"`
	Size     int64    `json:"size,omitempty"`
	Error    string   `json:"error,omitempty"`
	For      []string `json:"for,omitempty"` // that require it
}

func (r *mirrorResult) Document() any {
	d := mirrorDocument{
		Into: r.into, ModulesInto: r.modulesInto, DryRun: r.dry, Complete: r.complete(), Interrupted: r.interrupted,
		Added: []mirroredPackage{}, Present: []mirroredPackage{}, Failed: []mirroredPackage{},
		Unresolved: append([]lockfile.Unresolved{}, r.unresolved...), NotLocked: append([]unlocked{}, r.unlocked...),
		Withdrawn: append([]string{}, r.withdrawn...), LeftOut: append([]string{}, r.leftOut...), Skipped: append([]string{}, r.skipped...),
	}
	for _, o := range r.outcomes {
		p := mirroredPackage{Kind: "provider", Provider: o.provider, Module: o.module, Version: o.version, Platform: o.platform, Size: o.size, For: o.requiredBy}
		if o.module != "" {
			p.Kind = "module"
		}
		switch {
		case o.err != nil:
			p.Error = cmp.Or(o.err.Error(), "it failed")
			d.Failed = append(d.Failed, p)
		case o.added:
			d.Added = append(d.Added, p)
		default:
			d.Present = append(d.Present, p)
		}
	}
	return d
}
