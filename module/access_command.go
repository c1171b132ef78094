package module

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	svchost "github.com/hashicorp/terraform-svchost"
	"github.com/spf13/cobra"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
)

// errDenied makes the process end with exit status 1. What it means has been
// printed by then.
var errDenied = errors.New("it is denied")

func accessCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "access [--as <subject>] [--group <group>]... [--config <file>] [--adapter <name>] [--root <folder>] read|publish <address>",
		Short: "Says what the rules allow, and which rule decides",
		Long: `
Reads a configuration and says whether its access rules allow a user to read or
publish something, and which of the rules decides. It starts nothing, makes no
requests and needs no secrets: the user is taken as given.

--as is the name of the user, --group a group that they are in. The command
does not know who is in which group: give every group that matters. Without
--as, it is about clients without a token.

The address is one of a provider or a module, [HOSTNAME/]NAMESPACE/TYPE or
[HOSTNAME/]NAMESPACE/NAME/SYSTEM. Without HOSTNAME it is one of the registry's
own; so it is with a name of the registry's, which is one of its option hostname
or of its site.

The configuration is the Caddyfile in the working directory, unless --config
names another file. If it has several registries with different rules, --root
says by its folder which one is meant.

The exit status is 0 if it is allowed, 1 if it is denied, and 2 if that cannot
be told.`,
		Example: `  caddy terraform-registry access --as ci --group builders read acme/vpc/aws
  caddy terraform-registry access --config /etc/caddy/Caddyfile read registry.terraform.io/hashicorp/null`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usageError(cmd, errors.New("give a right and an address, such as: read acme/vpc/aws"))
			}
			return nil
		},
		RunE: runAccess,
	}
	cmd.Flags().String("as", "", "The user's name; groups are given with --group (default: a client without a token)")
	cmd.Flags().StringSliceP("group", "g", nil, "A group that the user is in; can be repeated")
	cmd.Flags().StringP("config", "c", "", "Configuration file (default: the Caddyfile in the working directory)")
	cmd.Flags().StringP("adapter", "a", "", "Name of the config adapter to apply")
	cmd.Flags().StringP("root", "r", "", "The root of the registry that is meant, if there are several")
	cmd.SetFlagErrorFunc(usageError)
	return cmd
}

func runAccess(cmd *cobra.Command, args []string) error {
	fl := caddycmd.Flags{FlagSet: cmd.Flags()}
	q, err := parseQuestion(fl, args)
	if err != nil {
		return usageError(cmd, err)
	}
	config, _, _, err := caddycmd.LoadConfig(fl.String("config"), fl.String("adapter"))
	if err != nil {
		return usageError(cmd, err)
	}
	if len(config) == 0 {
		return usageError(cmd, errors.New("there is no Caddyfile in the working directory: name the configuration with --config"))
	}
	found, err := configuredRegistries(caddy.RemoveMetaFields(config))
	if err != nil {
		return usageError(cmd, err)
	}
	registry, err := chooseRegistry(found, fl.String("root"))
	if err != nil {
		return usageError(cmd, err)
	}
	allowed, err := q.answer(cmd.OutOrStdout(), cmd.ErrOrStderr(), registry)
	if err != nil {
		return usageError(cmd, err)
	}
	if !allowed {
		cmd.SilenceErrors = true
		return errDenied
	}
	return nil
}

// A question is whether somebody may do something.
type question struct {
	subject access.Subject
	right   access.Right
	address access.Resource
}

func parseQuestion(fl caddycmd.Flags, args []string) (q question, err error) {
	q.subject.ID = fl.String("as")
	if prefix, group, ok := strings.Cut(q.subject.ID, ":"); ok && (prefix == "group" || prefix == "groups") {
		return q, fmt.Errorf("--as: it names a user: give a group with --group, as in --as NAME --group %s", group)
	}
	if q.subject.Groups, err = fl.GetStringSlice("group"); err != nil {
		return q, fmt.Errorf("--group: %w", err)
	}
	if q.subject.Anonymous() && len(q.subject.Groups) > 0 {
		return q, errors.New("--group: who is nobody is in no group: say with --as who it is")
	}
	if q.right, err = access.ParseRight(args[0]); err != nil {
		return q, err
	}
	q.address, err = access.ParseResource(args[1])
	return q, err
}

// answer prints the decision and why it is so.
func (q question) answer(out, notes io.Writer, c configuredRegistry) (allowed bool, err error) {
	rules, err := c.rules()
	if err != nil {
		return false, err
	}
	if rules == nil {
		why := "denied: there are no access rules, and without one nobody may publish"
		if q.right == access.Read {
			why = "allowed: there are no access rules, everybody may read everything"
		}
		_, err := fmt.Fprintln(out, why)
		return q.right == access.Read, err
	}
	names, err := c.hostnames()
	if err != nil {
		return false, err
	}
	if len(names) == 0 {
		if _, err := checkRuleNames(rules, caddy.NewReplacer().ReplaceKnown(c.PublicURL, ""), c.site); err != nil {
			return false, err // as when the configuration is loaded
		}
	}
	rules = rules.WithHostnames(names)
	resource := c.resource(q.address, names)
	if !resource.Hosted && !c.named() {
		fmt.Fprintf(notes, "%s is taken for the name of another registry: if it is one of this registry's, leave it out\n", resource.Hostname)
	}
	d := rules.Decide(q.subject, q.right, resource)
	verdict, why := "denied", ": no rule allows it"
	if d.Allowed {
		verdict = "allowed"
	}
	switch {
	case d.Rule == nil:
	case c.Access == nil:
		why = fmt.Sprintf(" by the rule that auth has without access: %s", d.Rule)
	default:
		number := slices.Index(slices.Collect(rules.All()), d.Rule) + 1
		why = fmt.Sprintf(" by rule %d: %s", number, d.Rule)
	}
	_, err = fmt.Fprintln(out, verdict+why)
	return d.Allowed, err
}

// resource is r as the registry, of these names, asks its rules about it.
func (c configuredRegistry) resource(r access.Resource, names []svchost.Hostname) access.Resource {
	if slices.Contains(names, r.Hostname) || len(names) == 0 && c.onSite(string(r.Hostname)) {
		r.Hosted, r.Hostname = true, ""
	}
	return r
}
