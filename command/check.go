package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/module"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

// Exit statuses of `caddy terraform-registry check`.
const (
	exitWithheld = 1 // something is not offered, or there is nothing to offer
	exitUsage    = 2 // it could not be checked
)

// errWithheld makes the process end with exitWithheld. What it means has been
// printed by then.
var errWithheld = errors.New("something is withheld")

// errNothing does the same where nothing of a tree is found.
var errNothing = errors.New("nothing is where the tree should be")

func checkCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check --root <folder> [--signatures require] [--json]",
		Short: "Says what a folder offers, what is withheld and why",
		Long: `
Looks at a folder as the registry would, reading every file, and says what
clients would be offered, what would be withheld, and what to do about that.
It starts no server, writes nothing and needs no key: where it says that a
release is signed by the registry, the registry would sign it.

The exit status is 0 if all is well, 1 if something is withheld or nothing of a
tree is found in the folder, and 2 if the folder cannot be looked at.`,
		Example: `  caddy terraform-registry check --root /srv/terraform
  caddy terraform-registry check --root /srv/terraform --json | jq .withheld`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError(cmd, fmt.Errorf("unexpected argument %q: the folder is given by --root", args[0]))
			}
			return nil
		},
		RunE: runCheck,
	}
	addTreeFlags(cmd)
	cmd.Flags().String("signatures", module.PreferSignatures, "prefer, or require to withhold what publishers did not sign")
	cmd.Flags().Bool("json", false, "Print the report as JSON")
	cmd.SetFlagErrorFunc(usageError)
	return cmd
}

// usageError ends the command with exitUsage.
func usageError(cmd *cobra.Command, err error) error {
	return failWith(cmd, exitUsage, err)
}

func runCheck(cmd *cobra.Command, _ []string) error {
	fl := caddycmd.Flags{FlagSet: cmd.Flags()}
	directories, err := treeFlags(fl)
	if err != nil {
		return usageError(cmd, err)
	}
	signatures, err := upstream.ParseSignatures(fl.String("signatures"))
	if err != nil {
		return usageError(cmd, fmt.Errorf("--signatures: %w", err))
	}
	bar := newProgressBar(os.Stderr)
	report, err := check(cmd.Context(), directories, signatures == upstream.RequireSignatures, bar.show)
	bar.clear()
	if err != nil {
		return usageError(cmd, err)
	}
	write := writeReport
	if fl.Bool("json") {
		write = writeReportJSON
	}
	if err := write(cmd.OutOrStdout(), report); err != nil {
		return usageError(cmd, err)
	}
	if len(report.Withheld) > 0 {
		cmd.SilenceErrors = true
		return errWithheld
	}
	if report.Hint != "" {
		cmd.SilenceErrors = true
		return errNothing
	}
	return nil
}

// check scans the tree once. The local disk is what it is about: a named file
// system exists only within a configuration.
func check(ctx context.Context, directories index.Directories, require bool, progress func(index.Progress)) (*index.Report, error) {
	snapshot, err := index.Scan(ctx, index.Options{
		Open:              directories.Open,
		Signer:            somebody{},
		RequireSignatures: require,
		Progress:          progress,
	})
	if err != nil {
		return nil, err
	}
	return forPeople(snapshot.Report), nil
}

// somebody stands in for the registry's key. A scan notes whose signature
// clients will get; it is made when the first one asks for it, which here
// nobody does.
type somebody struct{}

func (somebody) PublicKey() signing.PublicKey { return signing.PublicKey{} }

func (somebody) Sign([]byte) ([]byte, error) { return nil, errors.New("there is no key to sign with") }

// forPeople takes out the space before the key that somebody does not have.
func forPeople(r *index.Report) *index.Report {
	for i := range r.Offered {
		o := &r.Offered[i]
		o.Signature = strings.TrimSpace(o.Signature)
	}
	return r
}

func writeReportJSON(out io.Writer, r *index.Report) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(r)
}
