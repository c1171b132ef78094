package command

import (
	"cmp"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/upstream/lockfile"
)

// A mirrorDocument is what `mirror --json` prints.
type mirrorDocument struct {
	Into        string                `json:"into"`
	DryRun      bool                  `json:"dry_run"`
	Complete    bool                  `json:"complete"`
	Interrupted bool                  `json:"interrupted"`
	Added       []mirroredPackage     `json:"added"` // in a dry run, they would be
	Present     []mirroredPackage     `json:"present"`
	Failed      []mirroredPackage     `json:"failed"`
	Unresolved  []lockfile.Unresolved `json:"unresolved"`
	NotLocked   []unlocked            `json:"not_locked"`
	LeftOut     []string              `json:"left_out"`
	Skipped     []string              `json:"skipped"`
}

// mirroredPackage is a package, or in Failed a provider of which no version could be
// chosen.
type mirroredPackage struct {
	Provider string   `json:"provider"`
	Version  string   `json:"version,omitempty"`
	Platform string   `json:"platform,omitempty"`
	Size     int64    `json:"size,omitempty"`
	Error    string   `json:"error,omitempty"`
	For      []string `json:"for,omitempty"` // who asks for it
}

func (r *mirrorResult) document() any {
	d := mirrorDocument{
		Into: r.into, DryRun: r.dry, Complete: r.complete(), Interrupted: r.interrupted,
		Added: []mirroredPackage{}, Present: []mirroredPackage{}, Failed: []mirroredPackage{},
		Unresolved: append([]lockfile.Unresolved{}, r.unresolved...), NotLocked: append([]unlocked{}, r.unlocked...),
		LeftOut: append([]string{}, r.leftOut...), Skipped: append([]string{}, r.skipped...),
	}
	for _, o := range r.outcomes {
		m := mirroredPackage{Size: o.size, For: o.asked}
		m.Provider, m.Version, _ = strings.Cut(o.what, "\t")
		m.Version, m.Platform, _ = strings.Cut(m.Version, "\t")
		switch {
		case o.err != nil:
			m.Error = cmp.Or(o.err.Error(), "it failed")
			d.Failed = append(d.Failed, m)
		case o.added:
			d.Added = append(d.Added, m)
		default:
			d.Present = append(d.Present, m)
		}
	}
	return d
}
