package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// folderNotices are the notices in the folder of a provider or module in a tree.
type folderNotices struct {
	folder tree.AddressFolder
	isNew  bool // the folder is not there yet
}

// openFolderNotices finds the folder of an address in the tree that the flags name. With
// ahead, the folder of a mirrored address may be missing.
func openFolderNotices(ctx context.Context, fl caddycmd.Flags, text string, ahead bool) (f folderNotices, err error) {
	directories, err := cli.TreeFlags(fl)
	if err != nil {
		return f, err
	}
	a, err := parseAddress(text)
	if err != nil {
		return f, err
	}
	files, err := directories.Open()
	if err != nil {
		return f, err
	}
	f.folder, f.isNew, err = findFolder(ctx, files, a, ahead)
	return f, err
}

func (f folderNotices) name() string  { return f.folder.Path + "/" + tree.MetadataName }
func (f folderNotices) about() string { return f.folder.Address.String() }
func (f folderNotices) close()        {}

// serverPatience is how long to wait for a server that changes the file. It takes only a moment,
// but a server that was killed leaves its lock behind.
const serverPatience = 5 * time.Second

// lock keeps other commands from changing the file, and a server of the same user with the
// default storage.
func (f folderNotices) lock(ctx context.Context) (unlock func(), err error) {
	part, _, err := f.folder.Locate()
	if err != nil {
		return nil, err
	}
	others, err := part.Lock(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(caddy.DefaultStorage.Path); err != nil { // there is no such server
		return others, nil
	}
	waiting, cancel := context.WithTimeout(ctx, serverPatience)
	defer cancel()
	server, err := cli.LockDefaultStorage(waiting, tree.PublishLocks+f.about())
	switch {
	case ctx.Err() != nil:
		if err == nil {
			server()
		}
		others()
		return nil, ctx.Err()
	case err != nil:
		return others, nil
	}
	return func() {
		server()
		others()
	}, nil
}

func (f folderNotices) read(context.Context) ([]byte, error) {
	content, err := f.folder.ReadMetadata()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: fix the file first", cli.Printable(f.name()), err)
	}
	return content, nil
}

func (f folderNotices) write(_ context.Context, before, content []byte) error {
	return f.folder.WriteMetadata(before, content)
}

func (f folderNotices) known(context.Context) knownVersions {
	k := knownVersions{versions: f.folder.Versions, known: true, more: f.folder.Address.Hostname != "", where: "in the tree"}
	if f.isNew {
		k.absent = "Nothing of it is in the tree yet: check that the address is right."
	}
	return k
}

// findFolder finds the folder of an address in a tree.
func findFolder(ctx context.Context, files tree.Tree, a address.Address, ahead bool) (f tree.AddressFolder, isNew bool, err error) {
	folders, err := index.Folders(ctx, files)
	if err != nil {
		return f, false, err
	}
	if i := slices.IndexFunc(folders, func(f tree.AddressFolder) bool { return f.Address == a }); i >= 0 {
		return folders[i], false, nil
	}
	f = files.Folder(a)
	if ahead && a.Hostname != "" {
		return f, true, nil
	}
	message := fmt.Sprintf("there is no folder %s", cli.Printable(f.Path))
	if alike := similar(folders, a); len(alike) > 0 {
		message += ": did you mean " + strings.Join(alike, " or ") + "?"
	} else {
		message += ": give the address as it is in the tree"
	}
	return f, false, errors.New(message)
}

// similar returns up to three addresses that the user may mean: addresses with the same name,
// or else with the same namespace.
func similar(folders []tree.AddressFolder, a address.Address) []string {
	var names, namespaces []string
	for _, f := range folders {
		text := f.Address.String()
		switch {
		case !a.IsModule() && f.Address.IsModule():
			if f.Address.Hostname == a.Hostname && f.Address.Namespace == a.Namespace && f.Address.Name == a.Name {
				names = append(names, text) // the system was left out
			}
		case f.Address.IsModule() != a.IsModule():
		case f.Address.Name == a.Name:
			names = append(names, text)
		case f.Address.Namespace == a.Namespace:
			namespaces = append(namespaces, text)
		}
	}
	if len(names) == 0 {
		names = namespaces
	}
	return names[:min(len(names), 3)]
}
