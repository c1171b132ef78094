package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/caddy-terraform/caddy-terraform-registry/access/oidc"
	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/command/remote"
	"github.com/caddy-terraform/caddy-terraform-registry/module"
)

func tokenInspectCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "inspect --config FILE [--root FOLDER] [--token-file FILE]",
		Short: "Says whether a token is accepted, or why not",
		Long: `
Says whether the registries of a configuration file accept a token: for each
auth terraform_oidc and auth terraform_tokens, which subject and groups it
identifies and which rules are about these, or why it is refused. First it
prints what a JSON Web Token says of itself.

The token is read from standard input, or from the file that --token-file names:
others on the machine can see the arguments of a command. It is not printed.

The configuration need not be running. It is set up as by "caddy validate", so
the files that it names have to be there and readable. If there are several
registries, --root says by its folder which one is meant. The issuer of a JSON
Web Token is asked for its keys, as by the server.

The exit status is 0 if the token is accepted, 1 if it is refused, and 2 if
that is not known, as when the issuer does not answer.`,
		Example: `  caddy-terraform-registry token inspect --config /etc/caddy/Caddyfile < token
  caddy-terraform-registry token inspect --config Caddyfile --token-file token`,
		Args: cli.NoArguments("the token is read from standard input, or from the file given by --token-file"),
		RunE: cli.RunE(runTokenInspect),
	}
	addConfigFlags(cmd, "The configuration `file` that has the registry (required)")
	addRootFlag(cmd)
	cmd.Flags().String("token-file", "", "A `file` with nothing but the token (default: standard input)")
	return cmd
}

func runTokenInspect(cmd *cobra.Command, _ []string) error {
	fl := caddycmd.Flags{FlagSet: cmd.Flags()}
	if fl.String("config") == "" {
		return errors.New("--config is required: name the configuration that has the registry")
	}
	token, err := inspectedToken(cmd, fl.String("token-file"))
	if err != nil {
		return err
	}
	i := tokenInspection{claims: remote.UnverifiedClaims(token)}
	err = withConfiguration(fl, func(app *module.App) error {
		i.verdicts = app.InspectToken(cmd.Context(), token)
		return nil
	})
	if err == nil {
		i.verdicts, err = chooseVerdicts(i.verdicts, fl.String("root"))
	}
	if err != nil {
		return err
	}
	if err := i.WriteText(cli.Fitted(cmd.OutOrStdout())); err != nil {
		return err
	}
	return i.result(cmd)
}

// inspectedToken reads the token. The error does not repeat it.
func inspectedToken(cmd *cobra.Command, file string) (string, error) {
	in, origin := cmd.InOrStdin(), "standard input"
	if file != "" {
		opened, err := os.Open(file)
		if errors.Is(err, os.ErrNotExist) { // the token itself may have been given in place of the file
			return "", errors.New("--token-file: there is no such file")
		}
		if err != nil {
			return "", fmt.Errorf("--token-file: %w", err)
		}
		defer opened.Close()
		in, origin = opened, cli.Printable(file)
	} else if cli.IsTerminal(in) {
		fmt.Fprintln(cmd.ErrOrStderr(), "Paste the token, then press Enter and Ctrl-D.")
	}
	content, err := io.ReadAll(io.LimitReader(in, remote.MaxToken+1))
	token := remote.TrimToken(content)
	switch {
	case err != nil:
		return "", fmt.Errorf("reading the token from %s: %w", origin, err)
	case token == "":
		return "", fmt.Errorf("%s is empty: it is to have the token", origin)
	case len(content) > remote.MaxToken:
		return "", fmt.Errorf("%s has more than a token in it", origin)
	}
	return token, remote.CheckToken(token, origin)
}

// chooseVerdicts returns the verdicts of the registry that the user means.
func chooseVerdicts(all []module.TokenVerdict, root string) ([]module.TokenVerdict, error) {
	if len(all) == 0 {
		return nil, errors.New("no registry of the configuration has auth terraform_oidc or auth terraform_tokens: name another one with --config")
	}
	if root == "" {
		return all, nil
	}
	chosen := slices.DeleteFunc(slices.Clone(all), func(v module.TokenVerdict) bool { return !hasRoot(v.Root, root) })
	if len(chosen) == 0 {
		return nil, fmt.Errorf("--root: no registry with auth terraform_oidc or auth terraform_tokens has the root %s", filepath.Clean(root))
	}
	return chosen, nil
}

// A tokenInspection is the output of `token inspect`.
type tokenInspection struct {
	claims   map[string]any // nil: it is not a JSON Web Token
	verdicts []module.TokenVerdict
}

// result ends the command with the status of the verdicts.
func (i tokenInspection) result(cmd *cobra.Command) error {
	accepted := func(v module.TokenVerdict) bool { return v.Err == nil }
	unknown := func(v module.TokenVerdict) bool { return errors.Is(v.Err, oidc.ErrUnavailable) }
	switch {
	case slices.ContainsFunc(i.verdicts, accepted):
		return nil
	case slices.ContainsFunc(i.verdicts, unknown):
		return errors.New("it is not known whether the token is accepted: an issuer is unavailable")
	}
	return cli.Exit(cmd, cli.ExitProblem)
}

func (i tokenInspection) WriteText(out io.Writer) error {
	if i.claims != nil {
		rows := [][]string{{"CLAIM", "VALUE, AS THE TOKEN SAYS"}}
		for _, name := range slices.Sorted(maps.Keys(i.claims)) {
			rows = append(rows, []string{cli.Printable(name), i.claim(name)})
		}
		if err := cli.WriteTable(out, rows); err != nil {
			return err
		}
		fmt.Fprintln(out)
	}
	for n, v := range i.verdicts {
		if n > 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintf(out, "auth %s of %s\n", v.Provider, v.Root)
		if v.Err != nil {
			fmt.Fprintf(out, "    %s\n", cli.Printable(cli.Sentence(v.Err.Error())))
			continue
		}
		groups := "no groups"
		if len(v.Subject.Groups) > 0 {
			groups = "groups " + strings.Join(v.Subject.Groups, ", ")
		}
		fmt.Fprintf(out, "    The token is accepted: subject %s, %s.\n", cli.Printable(v.Subject.ID), cli.Printable(groups))
		if len(v.Rules) == 0 {
			fmt.Fprintln(out, "    No rule is about that subject.")
			continue
		}
		fmt.Fprintln(out, "    The rules about it, of which the first that covers an address decides:")
		for _, rule := range v.Rules {
			fmt.Fprintf(out, "        %s\n", rule)
		}
	}
	return nil
}

// claim returns the value of a claim. Times are readable.
func (i tokenInspection) claim(name string) string {
	switch v := i.claims[name].(type) {
	case string:
		return cli.Printable(v)
	case float64:
		if slices.Contains([]string{"exp", "iat", "nbf", "auth_time"}, name) {
			at := time.Unix(int64(v), 0)
			return fmt.Sprintf("%s, %s", at.UTC().Format(time.RFC3339), humanize.Time(at))
		}
	}
	text, err := json.Marshal(i.claims[name])
	if err != nil {
		return "" // it was JSON
	}
	return cli.Printable(string(text))
}
