package fill

import (
	"context"
	"log/slog"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// RemoveLeftovers removes the temporary files of instances that were killed, below
// the hostnames that are mirrored and, if modules are, among those of the system. It
// returns how many files and folders there were. It is meant for
// the start and need not be waited for: leftovers are never served.
func (f *Filler) RemoveLeftovers(ctx context.Context) int {
	files, err := f.opener.Tree()
	if err != nil {
		return 0
	}
	removed := 0
	for _, in := range []struct {
		tree.Part
		depth int // of the files below the hostname
	}{{files.Providers, 3}, {files.Modules, 3}, {files.Keys, 0}} {
		if in.InBucket() {
			continue // what comes into a bucket has no temporary name there
		}
		hosts, _ := in.ReadDir(".")
		for _, host := range hosts {
			h, err := address.ParseHostname(host.Name())
			if _, ours := f.sources[h]; err == nil && ours {
				removed += in.RemoveTemporaries(ctx, host.Name(), in.depth)
			}
		}
	}
	if f.mirrorsModules() {
		removed += removeScratches(ctx)
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
