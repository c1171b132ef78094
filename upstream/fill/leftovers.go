package fill

import (
	"context"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"time"

	"github.com/gofrs/flock"
	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

// abandoned is how long a file under a temporary name has not been written to
// when it is a leftover for certain.
const abandoned = time.Hour

// RemoveLeftovers removes what instances that were killed have left of their
// fills, below the hostnames that are mirrored, and returns how many files that
// was. It is meant for the start, and needs not be waited for: none of it is
// ever served.
func (f *Filler) RemoveLeftovers(ctx context.Context) int {
	tree, err := f.tree.get()
	if err != nil {
		return 0
	}
	removed := 0
	for _, in := range []struct {
		index.Part
		depth int // of the files below the hostname
		disk  func(string) string
	}{{tree.Providers, 3, f.diskPath}, {tree.Keys, 0, nil}} {
		hosts, _ := afero.ReadDir(in.Fs, in.Dir)
		for _, host := range hosts {
			h, err := address.ParseHostname(host.Name())
			if _, ours := f.sources[h]; err == nil && ours {
				removed += removeLeftovers(ctx, in.Part, host.Name(), in.depth, in.disk)
			}
		}
	}
	if removed > 0 {
		f.log(slog.LevelInfo, "removed what fills that were cut off have left", "files", removed)
	}
	return removed
}

func removeLeftovers(ctx context.Context, in index.Part, dir string, depth int, disk func(string) string) (removed int) {
	entries, _ := afero.ReadDir(in.Fs, path.Join(in.Dir, dir))
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		switch {
		case ctx.Err() != nil:
			return removed
		case e.IsDir() && isTemporary(e.Name(), temporarySuffix):
			if time.Since(e.ModTime()) >= abandoned && in.Fs.RemoveAll(path.Join(in.Dir, name)) == nil {
				removed++
			}
		case e.IsDir() && depth > 0:
			removed += removeLeftovers(ctx, in, name, depth-1, disk)
		case !e.Mode().IsRegular():
		case isTemporary(e.Name(), partSuffix) && disk != nil && disk(name) != "":
			removed += removeUnlocked(in, name, disk(name), e)
		case isTemporary(e.Name(), partSuffix), isTemporary(e.Name(), temporarySuffix):
			removed += removeAbandoned(in, name, e)
		}
	}
	return removed
}

// removeUnlocked removes a part that nobody is filling.
func removeUnlocked(in index.Part, name, disk string, info fs.FileInfo) int {
	lock := flock.New(disk, flock.SetFlag(os.O_RDWR))
	taken, err := lock.TryLock()
	if err != nil {
		return removeAbandoned(in, name, info)
	}
	defer lock.Close()
	if !taken || in.Fs.Remove(path.Join(in.Dir, name)) != nil {
		return 0
	}
	return 1
}

func removeAbandoned(in index.Part, name string, info fs.FileInfo) int {
	if time.Since(info.ModTime()) < abandoned || in.Fs.Remove(path.Join(in.Dir, name)) != nil {
		return 0
	}
	return 1
}
