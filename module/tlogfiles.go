package module

import (
	"context"
	"os"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
)

// A TlogFiles are the files of a log, for commands that read them.
type TlogFiles struct {
	Root      string // of the tree
	Folder    string
	Hostnames []svchost.Hostname // of the registry
	Require   bool               // what is not on record is not offered
	Options   func(context.Context) (tlog.Options, error)
}

// Tlogs returns the logs of the configuration. It changes nothing in them.
func (a *App) Tlogs() (all []TlogFiles) {
	seen := make(map[tlogKey]bool)
	for _, t := range a.logged {
		if seen[t.key] {
			continue
		}
		seen[t.key] = true
		key := t.key
		key.made = false
		files := logOf(key, a.storageOf())
		all = append(all, TlogFiles{t.key.source.Directories.Root, t.key.folder, t.key.names(), t.key.recorded, func(ctx context.Context) (tlog.Options, error) {
			if t.key.made { // the server makes it
				if _, err := os.Stat(t.key.folder); err != nil {
					return tlog.Options{}, err
				}
			}
			return files.Read(ctx)
		}})
	}
	return all
}
