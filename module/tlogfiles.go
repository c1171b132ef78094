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
	Made      bool               // by the server, if the folder does not exist
	Hostnames []svchost.Hostname // of the registry
	Require   bool               // what is not on record is not offered
	Options   func(context.Context) (tlog.Options, error)

	// IsSigned reports whether Caddy's storage has a checkpoint of the log.
	IsSigned func(context.Context) (bool, error)

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
	for _, t := range a.logged {
		key := t.key
		key.made = false // a command may have another data directory than the server
		log := logOf(key, a.storage)
		present := func() (err error) { // fs.ErrNotExist: the server has not made the folder
			if t.key.made {
				_, err = os.Stat(key.folder)
			}
			return err
		}
		all = append(all, TlogFiles{
			Root: key.source.Directories.Root, Folder: key.folder, Made: t.key.made, Hostnames: key.names(), Require: key.recorded,
			Options: func(ctx context.Context) (tlog.Options, error) {
				if err := present(); err != nil {
					return tlog.Options{}, err
				}
				return log.Read(ctx)
			},
			Rotate: func(ctx context.Context) (tlog.Keys, error) {
				if err := present(); err != nil {
					return tlog.Keys{}, err
				}
				return log.Rotate(ctx)
			},
			IsSigned: log.IsSigned, Restore: log.Restore, Renew: log.Renew,
			Origin: key.origin, Named: key.named,
		})
	}
	return all
}
