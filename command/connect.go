package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	version "github.com/hashicorp/go-version"
	"github.com/spf13/cobra"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/command/remote"
	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/git"
)

func connectCommand(network remote.Network) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "connect (--root FOLDER ADDRESS | --to HOST/ADDRESS) [--folder FOLDER] [--tags PATTERN] [--fetch-all] [--dry-run] URL",
		Short: "Has the tags of a git repository as versions of a module",
		Long: `
Names a git repository in the file registry.hcl of a module. A registry that is
configured with "git" offers its tags as versions of the module, and looks for
new ones. The command first lists the tags that are versions, with the git of
this machine and its credentials. If there are tags, and none of them is a
version, it writes nothing.

--root FOLDER ADDRESS URL writes the file in the folder of a registry. The
address is NAMESPACE/NAME/SYSTEM.

--to HOST/ADDRESS URL writes it at a registry that is configured with "publish",
where the token needs the right to manage the address. The token is found as by
publish.

The URL begins with https://, and has no user or password in it.

The exit status is 0 if the file is as it should be, whether or not it had to be
changed, and 2 if it could not be changed.`,
		Example: `  caddy-terraform-registry connect --root /srv/terraform acme/vpc/aws https://github.com/acme/terraform-aws-vpc.git
  caddy-terraform-registry connect --to registry.example.com/acme/vpc/aws --folder modules/vpc --tags 'vpc/v{version}' https://github.com/acme/modules.git`,
		RunE: cli.RunE(func(cmd *cobra.Command, args []string) error { return runConnect(cmd, args, network) }),
	}
	addNoticeFlags(cmd)
	cmd.Flags().String("folder", "", "The `folder` of the module in the repository; its root by default")
	cmd.Flags().String("tags", registryhcl.DefaultTags, "The `pattern` of the tags that are versions")
	cmd.Flags().Bool("fetch-all", false, "Fetch each version when its tag is seen, not when a client first asks for it")
	return cmd
}

func runConnect(cmd *cobra.Command, args []string, network remote.Network) error {
	ctx, stop := cli.Interruptible(cmd)
	defer stop()
	fl := caddycmd.Flags{FlagSet: cmd.Flags()}
	to := fl.String("to")
	switch {
	case to == "" && fl.String("root") == "":
		return errors.New("name the folder of a registry by --root, or a registry and the address by --to")
	case to == "" && len(args) != 2:
		return errors.New("give an address and a URL, such as: acme/vpc/aws https://github.com/acme/terraform-aws-vpc.git")
	case to != "" && len(args) != 1:
		return errors.New("--to: it names the address, so give the URL and nothing else, such as: https://github.com/acme/terraform-aws-vpc.git")
	}
	if err := checkPlace(fl, to); err != nil {
		return err
	}
	fetch := ""
	if fl.Bool("fetch-all") {
		fetch = "all"
	}
	g, err := registryhcl.ParseGit(args[len(args)-1], fl.String("folder"), fl.String("tags"), fetch)
	if err != nil {
		return fmt.Errorf("the %w", err)
	}
	file, err := openConnected(ctx, fl, to, args[0], network)
	if err != nil {
		return err
	}
	defer file.close()
	found, err := findTags(ctx, g)
	if err != nil {
		return err
	}
	dry := fl.Bool("dry-run")
	change, err := changeFile(ctx, file, dry, func(before []byte) ([]byte, error) {
		after, err := registryhcl.SetGit(before, g)
		return after, aboutFile(file, err)
	})
	if err != nil {
		return err
	}
	text := change + cli.Wrap(file.about()+": "+found.String(), 0)
	if dry {
		text += dryRun
	}
	_, err = fmt.Fprint(cmd.OutOrStdout(), text)
	return err
}

// openConnected finds the registry.hcl of a hosted module. In a tree, its folder may be missing.
func openConnected(ctx context.Context, fl caddycmd.Flags, to, text string, network remote.Network) (noticeFile, error) {
	if to != "" {
		r, err := openRegistryNotices(ctx, network, fl, to)
		if err != nil {
			return nil, err
		}
		return r, checkConnected(r.to.Address)
	}
	a, err := parseAddress(text)
	if err == nil {
		err = checkConnected(a)
	}
	if err != nil {
		return nil, err
	}
	directories, err := cli.TreeFlags(fl)
	if err != nil {
		return nil, err
	}
	files, err := directories.Open()
	if err != nil {
		return nil, err
	}
	return folderNotices{folder: files.Folder(a)}, nil
}

// checkConnected returns why an address cannot have a repository.
func checkConnected(a address.Address) error {
	if !a.IsModule() || a.Hostname != "" {
		return fmt.Errorf("%s: only modules of the registry itself can be connected: give NAMESPACE/NAME/SYSTEM", a)
	}
	return nil
}

// foundTags are the tags of a repository.
type foundTags struct {
	git      registryhcl.Git
	versions []*version.Version // newest first
	skipped  []string           // tags that match and are no versions, with the reason
}

// findTags lists the tags of a repository. The error says so if there are some, and none is a version.
func findTags(ctx context.Context, g registryhcl.Git) (f foundTags, err error) {
	if !git.Available() {
		return f, errors.New("the tags of the repository are listed with the command git: install git")
	}
	scratch, err := os.MkdirTemp("", "terraform-registry-connect-")
	if err != nil {
		return f, err
	}
	defer os.RemoveAll(scratch)
	r, err := git.Connect(ctx, g.URL, filepath.Join(scratch, "repository"))
	if err != nil {
		return f, err
	}
	tags, err := r.Tags(ctx)
	if err != nil {
		return f, err
	}
	f.git = g
	for _, tag := range tags {
		switch v, ok, err := g.Tags.Version(tag); {
		case err != nil:
			f.skipped = append(f.skipped, fmt.Sprintf("%s (%v)", cli.Printable(tag), err))
		case ok:
			f.versions = append(f.versions, v)
		}
	}
	if len(f.versions) == 0 && len(tags) > 0 {
		return f, fmt.Errorf("no tag of %s is a version by the pattern %s: give another one by --tags; its last tag is %s", g.URL, cli.Printable(g.Tags.String()), cli.Printable(tags[len(tags)-1]))
	}
	address.SortNewestFirst(f.versions, func(v *version.Version) *version.Version { return v })
	return f, nil
}

// String returns the sentences about the tags.
func (f foundTags) String() string {
	names := make([]string, len(f.versions))
	for i, v := range f.versions {
		names[i] = v.String()
	}
	text := "its versions are the tags of " + f.git.URL + ": " + cli.List(names) + "."
	if len(names) == 0 {
		text = "its versions are the tags of " + f.git.URL + ", which has none yet."
	}
	if len(f.skipped) > 0 {
		text += " No versions are " + cli.List(f.skipped) + "."
	}
	return text
}
