package pull

import (
	"context"
	"log/slog"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/pull/scratch"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// RemoveLeftovers removes the temporary files of killed instances, below the mirrored
// hostnames, in the folders of hosted modules if these have an origin, and, if modules are
// fetched, among the system's temporary files. It
// returns the number of removed files and folders. It is meant for the start, but
// callers need not wait for it: leftovers are never served.
func (f *Filler) RemoveLeftovers(ctx context.Context) int {
	files, err := f.opener.Tree()
	if err != nil {
		return 0
	}
	removed := 0
	for _, in := range []struct {
		tree.Part
		depth int // depth of the files below the hostname
	}{{files.Providers, 3}, {files.Modules, 3}, {files.Keys, 0}} {
		hosts, _ := in.Entries(".")
		for _, host := range hosts {
			h, err := address.ParseHostname(host.Name)
			if _, ours := f.sources[h]; err == nil && ours {
				removed += in.RemoveTemporaries(ctx, host.Name, in.depth)
			}
		}
	}
	if _, hosted := f.sources[""]; hosted {
		namespaces, _ := files.Modules.Entries(".")
		for _, n := range namespaces {
			if !address.IsHostname(n.Name) && !tree.IsHiddenOrTemporary(n.Name) {
				removed += files.Modules.RemoveTemporaries(ctx, n.Name, 2)
			}
		}
	}
	if f.mirrorsModules() {
		removed += scratch.RemoveUnused(ctx)
	}
	if removed > 0 {
		f.log(slog.LevelInfo, "removed temporary files of interrupted fills", "files", removed)
	}
	return removed
}

func (f *Filler) mirrorsModules() bool {
	for _, s := range f.sources {
		if s.Policy.Modules {
			return true
		}
	}
	return false
}
