package command

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/command/remote"
	"github.com/caddy-terraform/caddy-terraform-registry/module"
)

func accessCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "access [--as USER] [--group GROUP]... [--config FILE] [--root FOLDER] " + strings.Join(access.RightWords(), "|") + " ADDRESS",
		Short: "Says what the rules allow, and which rule decides",
		Long: `
Says whether the access rules of a registry allow a user to read, publish or
manage something, and which of the rules decides. Nothing is authenticated: the
user is taken as given.

--as is the name of the user, --group a group that they are in. The command
does not know who is in which group: give every group that matters. Without
--as, it is about clients without a token.

The address is one of a provider or a module, [HOSTNAME/]NAMESPACE/TYPE or
[HOSTNAME/]NAMESPACE/NAME/SYSTEM. Without HOSTNAME it is one of the registry's
own; so it is with a hostname of the registry, which is one of its option
hostname or of its site.

The running server is asked, by its admin API. With --config, a configuration
file is asked instead, which need not be running. It is set up as by Caddy's
"validate", so the files that it names have to be there and readable. If there
are several registries which decide differently, --root says by its folder which
one is meant.

The exit status is 0 if it is allowed, 1 if it is denied, and 2 if there is no
answer.`,
		Example: `  caddy-terraform-registry access --as ci --group builders read acme/vpc/aws
  caddy-terraform-registry access --config /etc/caddy/Caddyfile read registry.terraform.io/hashicorp/null`,
		Args: cli.Arguments(2, "give a right and an address, such as: read acme/vpc/aws"),
		RunE: cli.RunE(runAccess),
	}
	cmd.Flags().String("as", "", "The `name` of the user; groups are given with --group (default: a client without a token)")
	cmd.Flags().StringSliceP("group", "g", nil, "A `group` that the user is in; can be repeated")
	remote.AddAdminFlag(cmd)
	addConfigFlags(cmd, "A configuration `file` to ask instead of the running server")
	addRootFlag(cmd)
	return cmd
}

func runAccess(cmd *cobra.Command, args []string) error {
	fl := caddycmd.Flags{FlagSet: cmd.Flags()}
	q, err := parseAccessQuery(fl, args)
	if err != nil {
		return err
	}
	ask := q.askServer
	if fl.String("config") != "" {
		if fl.Changed("address") {
			return errors.New("--address: it is of a running server, and --config asks a file: leave out one of them")
		}
		ask = q.askConfiguration
	}
	decisions, err := ask(fl)
	if err != nil {
		return err
	}
	d, err := chooseDecision(decisions, fl.String("root"))
	if err != nil {
		return err
	}
	if d.Note != "" {
		fmt.Fprintln(cli.Fitted(cmd.ErrOrStderr()), d.Note)
	}
	if _, err := fmt.Fprintln(cli.Fitted(cmd.OutOrStdout()), d.Text); err != nil {
		return err
	}
	if !d.Allowed {
		return cli.Exit(cmd, cli.ExitProblem)
	}
	return nil
}

// An accessQuery asks whether a user may do something.
type accessQuery struct {
	subject  access.Subject
	right    access.Right
	resource access.Resource
	address  string // of the resource, as given
}

func parseAccessQuery(fl caddycmd.Flags, args []string) (q accessQuery, err error) {
	q.subject.ID = fl.String("as")
	if prefix, group, ok := strings.Cut(q.subject.ID, ":"); ok && (prefix == "group" || prefix == "groups") {
		return q, fmt.Errorf("--as: it names a user: give a group with --group, as in --as NAME --group %s", group)
	}
	if q.subject.Groups, err = fl.GetStringSlice("group"); err != nil {
		return q, fmt.Errorf("--group: %w", err)
	}
	if q.subject.Anonymous() && len(q.subject.Groups) > 0 {
		return q, errors.New("--group: a client without a token is in no group: name the user with --as")
	}
	if q.right, err = access.ParseRight(args[0]); err != nil {
		return q, err
	}
	q.address = args[1]
	q.resource, err = access.ParseResource(q.address)
	return q, err
}

// askServer asks the registries of the running server.
func (q accessQuery) askServer(fl caddycmd.Flags) ([]module.AccessDecision, error) {
	if fl.String("adapter") != "" {
		return nil, errors.New("--adapter: it can only be given with --config")
	}
	query := url.Values{"as": {q.subject.ID}, "group": q.subject.Groups, "right": {q.right.String()}, "address": {q.address}}
	var decisions []module.AccessDecision
	server, err := remote.AskServer(fl, http.MethodGet, "access?"+query.Encode(),
		"the admin API at %s cannot be asked: start Caddy, name another address with --address, or a configuration with --config", &decisions)
	if err == nil && len(decisions) == 0 {
		err = fmt.Errorf("the server with the admin API at %s has no registry: name another address with --address, or a configuration with --config", server)
	}
	return decisions, err
}

// askConfiguration asks the registries of a configuration.
func (q accessQuery) askConfiguration(fl caddycmd.Flags) (decisions []module.AccessDecision, err error) {
	err = withConfiguration(fl, func(app *module.App) error {
		if decisions = app.Decide(q.subject, q.right, q.resource); len(decisions) == 0 {
			return errNoRegistry
		}
		return nil
	})
	return decisions, err
}

// chooseDecision returns the decision of the registry that the user means: the registry with
// the root, if a root is given, and among several the registry whose hostname the address
// has. Registries that decide alike count as one: a site that is served by two servers has
// its registry twice, and sites may share a tree and its rules.
func chooseDecision(all []module.AccessDecision, root string) (module.AccessDecision, error) {
	var roots []string
	for _, d := range all {
		roots = append(roots, d.Root)
	}
	slices.Sort(roots)
	names := strings.Join(slices.Compact(roots), ", ")
	chosen := all
	if root != "" {
		chosen = slices.DeleteFunc(slices.Clone(all), func(d module.AccessDecision) bool { return !hasRoot(d.Root, root) })
	}
	if len(chosen) == 0 {
		return module.AccessDecision{}, fmt.Errorf("--root: no registry has the root %s, these are: %s", root, names)
	}
	if slices.ContainsFunc(chosen, func(d module.AccessDecision) bool { return d.Hosted }) {
		chosen = slices.DeleteFunc(slices.Clone(chosen), func(d module.AccessDecision) bool { return !d.Hosted })
	}
	for _, d := range chosen[1:] {
		switch {
		case d.Text == chosen[0].Text:
		case root == "":
			return d, fmt.Errorf("there are registries which decide differently: choose one by its root with --root: %s", names)
		default:
			return d, fmt.Errorf("--root: there are registries with the root %s which decide differently: copy the one that is meant to a file of its own and name that with --config", root)
		}
	}
	return chosen[0], nil
}

// hasRoot reports whether a registry has a root. The root of a registry on the local disk is
// absolute, and the root of a registry in a named file system has no leading slash.
func hasRoot(registry, root string) bool {
	root = caddy.NewReplacer().ReplaceKnown(root, "")
	absolute, err := filepath.Abs(root)
	return err == nil && absolute == registry || path.Clean(strings.TrimLeft(filepath.ToSlash(root), "/")) == registry
}
