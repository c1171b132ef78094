package command

import "io"

// pruneJSON is what `prune --json` prints.
type pruneJSON struct {
	From      string       `json:"from"`
	DryRun    bool         `json:"dry_run"`
	Removed   []prunedJSON `json:"removed"` // in a dry run, they would be
	Size      int64        `json:"size"`
	Shared    []string     `json:"shared"`   // files that stay, since they have other names too
	Unpacked  []string     `json:"unpacked"` // packages that stay, since they are folders
	Failed    []string     `json:"failed"`
	Kept      int          `json:"kept"`
	LockFiles int          `json:"lock_files"`
	Withheld  int          `json:"withheld"`
}

type prunedJSON struct {
	Provider string   `json:"provider"`
	Version  string   `json:"version"`
	Files    []string `json:"files"`
}

// writeJSON prints what write does as one document.
func (p *pruning) writeJSON(out, _ io.Writer) error {
	d := pruneJSON{
		From: p.from, DryRun: p.dry, Removed: []prunedJSON{}, Size: p.size(), Shared: append([]string{}, p.shared...),
		Unpacked: append([]string{}, p.unpacked...), Failed: []string{}, Kept: p.plan.Kept, LockFiles: p.files, Withheld: p.withheld,
	}
	for _, h := range p.plan.Remove {
		d.Removed = append(d.Removed, prunedJSON{h.Address.String(), h.Version, append([]string{}, h.Files...)})
	}
	for _, err := range p.failed {
		d.Failed = append(d.Failed, err.Error())
	}
	return encodeJSON(out, d)
}
