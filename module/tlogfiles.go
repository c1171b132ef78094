package module

import (
	"context"
	"os"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog/vault"
)

// A TlogFiles are the files of a log, for commands that read them.
type TlogFiles struct {
	Root      string // of the tree
	Folder    string
	Hostnames []svchost.Hostname // of the registry
	Require   bool               // what is not on record is not offered
	Options   func(context.Context) (tlog.Options, error)

	// Restore returns the options of the log whose files are restored from a copy.
	Restore func(ctx context.Context, from tlog.Store) (tlog.Options, error)

	// Renew begins another log in place of the one that is lost.
	Renew func(ctx context.Context, origin string) (vault.Renewal, error)

	// Rotate has another key sign the log.
	Rotate func(context.Context) (tlog.Keys, error)

	Origin string // of a new log
	Named  bool   // the configuration has the name of the log
}

// Tlogs returns the logs of the configuration. It changes nothing in them.
func (a *App) Tlogs() (all []TlogFiles) {
	seen := make(map[tlogKey]bool)
	for _, t := range a.logged {
		if seen[t.key] {
			continue
		}
		seen[t.key] = true
		all = append(all, TlogFiles{
			Root: t.key.source.Directories.Root, Folder: t.key.folder, Hostnames: t.key.names(), Require: t.key.recorded,
			Options: func(ctx context.Context) (tlog.Options, error) {
				key := t.key
				key.made = false
				if t.key.made { // the server makes it
					if _, err := os.Stat(t.key.folder); err != nil {
						return tlog.Options{}, err
					}
				}
				return logOf(key, a.storageOf()).Read(ctx)
			},
			Restore: logOf(t.key, a.storageOf()).Restore, Renew: logOf(t.key, a.storageOf()).Renew,
			Rotate: logOf(t.key, a.storageOf()).Rotate, Origin: t.key.origin, Named: t.key.named,
		})
	}
	return all
}
