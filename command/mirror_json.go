package command

import (
	"cmp"
	"encoding/json"
	"io"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

// mirrorJSON is what `mirror --json` prints.
type mirrorJSON struct {
	Into        string                `json:"into"`
	DryRun      bool                  `json:"dry_run"`
	Complete    bool                  `json:"complete"`
	Interrupted bool                  `json:"interrupted"`
	Added       []mirroredJSON        `json:"added"` // in a dry run, they would be
	Present     []mirroredJSON        `json:"present"`
	Failed      []mirroredJSON        `json:"failed"`
	Unresolved  []upstream.Unresolved `json:"unresolved"`
	NotLocked   []unlocked            `json:"not_locked"`
	LeftOut     []string              `json:"left_out"`
	Skipped     []string              `json:"skipped"`
}

// mirroredJSON is a package, or in Failed a provider of which no version could be
// chosen.
type mirroredJSON struct {
	Provider string   `json:"provider"`
	Version  string   `json:"version,omitempty"`
	Platform string   `json:"platform,omitempty"`
	Size     int64    `json:"size,omitempty"`
	Error    string   `json:"error,omitempty"`
	For      []string `json:"for,omitempty"` // who asks for it
}

// writeJSON prints what write does as one document. Lists are never null.
func (r *mirrorResult) writeJSON(out, _ io.Writer) error {
	d := mirrorJSON{
		Into: r.into, DryRun: r.dry, Complete: r.complete(), Interrupted: r.interrupted,
		Added: []mirroredJSON{}, Present: []mirroredJSON{}, Failed: []mirroredJSON{},
		Unresolved: append([]upstream.Unresolved{}, r.unresolved...), NotLocked: append([]unlocked{}, r.unlocked...),
		LeftOut: append([]string{}, r.leftOut...), Skipped: append([]string{}, r.skipped...),
	}
	for _, o := range r.outcomes {
		m := mirroredJSON{Size: o.size, For: o.asked}
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
	return encodeJSON(out, d)
}

// encodeJSON prints one document as `check --json` does.
func encodeJSON(out io.Writer, document any) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(document)
}
