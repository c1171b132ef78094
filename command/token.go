package command

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/caddy-terraform/caddy-terraform-registry/access/tokenfile"
	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
)

func tokenCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token COMMAND",
		Short: "Issues, revokes and inspects the tokens that clients send",
		Long: `
new, list and revoke are for a tokens file, in which every token has a line with
its name, its hash and options. The registry accepts the tokens of a file with
this option:

    auth terraform_tokens FILE

A change takes effect within a second, without a reload. The file can be edited
by hand as well: comments and the order of lines are kept.

The user that Caddy runs as must be able to read the file. A new file can be
read by its owner only; an existing one keeps its owner and its mode.

inspect says whether a registry accepts a token, of a file or of an issuer, or
why not.`,
		Args: cli.Arguments(0, "unknown command: there are new, list, revoke and inspect"),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(tokenNewCommand(), tokenListCommand(), tokenRevokeCommand(), tokenInspectCommand())
	return cmd
}

func tokenNewCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "new NAME --file FILE [--group GROUP]... [--expires DURATION|DATE|TIME]",
		Short: "Makes a token and prints it, once",
		Long: `
Makes a token, adds its name and its hash to the file, and prints the token. The
token is printed only once and stored nowhere. Standard output has nothing else,
so the token can be piped to a secret store.

The name identifies the client in the registry's rules and in the access log.

With --expires, the token is valid for a duration such as 90d, until the end of
a day such as 2027-01-01 in UTC, or until a time such as 2027-01-01T08:00:00Z.

The exit status is 0, or 2 if no token was made.`,
		Example: `  caddy-terraform-registry token new ci --file /etc/caddy/tokens --group dev --expires 90d
  caddy-terraform-registry token new jane --file /etc/caddy/tokens --expires 2027-01-01`,
		Args: cli.Arguments(1, oneTokenName),
		RunE: cli.RunE(runTokenNew),
	}
	addTokenFlags(cmd)
	cmd.Flags().StringSliceP("group", "g", nil, "A `group` that the token is in; can be repeated")
	cmd.Flags().StringP("expires", "e", "", "The `time` when the token expires: a duration such as 90d, a day such as 2027-01-01, at whose end in UTC it does, or a time such as 2027-01-01T08:00:00Z (default never)")
	return cmd
}

func tokenListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list --file FILE [--json]",
		Short: "Lists the tokens",
		Long: `
Lists the names of the tokens, their groups, when they expire, and whether they
are still valid. The tokens themselves cannot be listed: the file has only their
hashes.

Malformed lines are not listed, but reported in an error.

The exit status is 0 if all lines are listed, 1 if some are malformed, and 2 if
the file cannot be read.`,
		Example: `  caddy-terraform-registry token list --file /etc/caddy/tokens`,
		Args:    cli.NoArguments("the file is given by --file"),
		RunE:    cli.RunE(runTokenList),
	}
	addTokenFlags(cmd)
	cmd.Flags().Bool("json", false, "Print the list as JSON")
	return cmd
}

func tokenRevokeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "revoke NAME --file FILE",
		Short: "Revokes a token",
		Long: `
Removes a token from the file. The registry refuses it within a second. Links to
archives that were signed before remain valid until they expire.

The exit status is 0 if it is revoked, 1 if the file has no token of that name,
and 2 if the file could not be changed.`,
		Example: `  caddy-terraform-registry token revoke ci --file /etc/caddy/tokens`,
		Args:    cli.Arguments(1, oneTokenName),
		RunE:    cli.RunE(runTokenRevoke),
	}
	addTokenFlags(cmd)
	return cmd
}

func addTokenFlags(cmd *cobra.Command) {
	cmd.Flags().StringP("file", "f", "", "The tokens `file` (required)")
}

const oneTokenName = "give the name of one token"

// tokenFileFlag returns the file of the required flag --file.
func tokenFileFlag(fl caddycmd.Flags) (string, error) {
	if file := fl.String("file"); file != "" {
		return file, nil
	}
	return "", errors.New("--file is required: name the tokens file")
}

// missingTokensFile replaces the error of a file that does not exist.
func missingTokensFile(file string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--file: there is no file %s: `token new` makes it with the first token", file)
	}
	return err
}

func runTokenNew(cmd *cobra.Command, args []string) error {
	fl := caddycmd.Flags{FlagSet: cmd.Flags()}
	file, err := tokenFileFlag(fl)
	if err != nil {
		return err
	}
	entry := tokenfile.Entry{Name: args[0]}
	if entry.Groups, err = fl.GetStringSlice("group"); err != nil {
		return fmt.Errorf("--group: %w", err)
	}
	if fl.Changed("expires") { // an empty variable of a script must not make a token that never expires
		if entry.Expires, err = tokenExpiry(fl.String("expires"), time.Now()); err != nil {
			return fmt.Errorf("--expires: %w", err)
		}
	}
	_, missing := os.Stat(file)
	secret := tokenfile.Generate()
	if err := tokenfile.Add(file, entry, secret); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--file: there is no folder %s: make it, or name another", filepath.Dir(file))
	} else if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(cmd.OutOrStdout(), secret); err != nil {
		return fmt.Errorf("the token is in the file but could not be printed, revoke it and make another: %w", err)
	}
	writeTokenNote(cmd.ErrOrStderr(), entry, file, errors.Is(missing, fs.ErrNotExist))
	return nil
}

// tokenExpiry parses a duration from now, a day, at whose end in UTC the token
// expires, or a time.
func tokenExpiry(s string, now time.Time) (time.Time, error) {
	expires, err := time.Parse(time.RFC3339, s)
	if day, notDay := time.Parse(time.DateOnly, s); notDay == nil {
		expires, err = day.AddDate(0, 0, 1).Add(-time.Second), nil
	}
	if err != nil {
		life, err := caddy.ParseDuration(s)
		if err != nil {
			return time.Time{}, errors.New("it is neither a duration such as 90d, nor a day such as 2027-01-01, nor a time such as 2027-01-01T00:00:00Z")
		}
		expires = now.Add(life)
	}
	expires = expires.UTC().Truncate(time.Second)
	if !expires.After(now) {
		return time.Time{}, errors.New("the token would have expired already: give a time in the future")
	}
	return expires, nil
}

func runTokenList(cmd *cobra.Command, _ []string) error {
	file, err := tokenFileFlag(caddycmd.Flags{FlagSet: cmd.Flags()})
	if err != nil {
		return err
	}
	entries, malformed := tokenfile.List(file)
	if malformed != nil && entries == nil {
		return missingTokensFile(file, malformed) // there is no list
	}
	if err := cli.Finish(cmd, newTokenList(entries, time.Now())); err != nil {
		return err
	}
	return cli.Fail(cmd, cli.ExitProblem, malformed)
}

func runTokenRevoke(cmd *cobra.Command, args []string) error {
	file, err := tokenFileFlag(caddycmd.Flags{FlagSet: cmd.Flags()})
	if err != nil {
		return err
	}
	switch err := tokenfile.Revoke(file, args[0]); {
	case errors.Is(err, tokenfile.ErrNoToken):
		return cli.Fail(cmd, cli.ExitProblem, err)
	case err != nil:
		return missingTokensFile(file, err)
	}
	fmt.Fprintf(cli.Fitted(cmd.ErrOrStderr()), "Revoked %s: a registry with this file refuses the token within a second.\n", args[0])
	return nil
}

// A tokenList is the output of `token list`. It has no hashes: the names are enough to tell
// tokens apart.
type tokenList []listedToken

type listedToken struct {
	Name    string     `json:"name"`
	Groups  []string   `json:"groups"`
	Expires *time.Time `json:"expires"` // null: never
	State   string     `json:"state"`   // good or expired
}

func newTokenList(entries []tokenfile.Entry, now time.Time) tokenList {
	list := make(tokenList, len(entries))
	for i, e := range entries {
		list[i] = listedToken{Name: e.Name, Groups: append([]string{}, e.Groups...), State: "good"}
		if !e.Expires.IsZero() {
			list[i].Expires = &entries[i].Expires
		}
		if e.Expired(now) {
			list[i].State = "expired"
		}
	}
	return list
}

func (l tokenList) Document() any { return l }

func (l tokenList) Status() int { return 0 }

func (l tokenList) WriteText(out, _ io.Writer) error {
	if len(l) == 0 {
		_, err := fmt.Fprintln(out, "There are no tokens.")
		return err
	}
	rows := [][]string{{"NAME", "GROUPS", "EXPIRES", "STATE"}}
	for _, t := range l {
		expires := "never"
		if t.Expires != nil {
			expires = t.Expires.Format(time.RFC3339)
		}
		rows = append(rows, []string{t.Name, cmp.Or(strings.Join(t.Groups, ","), "-"), expires, t.State})
	}
	return cli.WriteTable(out, rows)
}

// writeTokenNote says how to use a new token, without the token itself.
func writeTokenNote(out io.Writer, entry tokenfile.Entry, file string, created bool) {
	if created {
		fmt.Fprintf(out, "Created %s, which only you can read:\nmake the user that Caddy runs as its owner.\n", file)
	}
	until := ""
	if !entry.Expires.IsZero() {
		until = ", valid until " + entry.Expires.Format(time.RFC3339)
	}
	fmt.Fprintf(out, `Added %s to %s%s.
The token is not shown again: store it now.

Clients take it from the environment, in a variable named after the registry.
For registry.example.com that is the one below; a - in the name becomes __:

    export TF_TOKEN_registry_example_com=TOKEN

Or from their configuration, ~/.terraformrc or ~/.tofurc:

    credentials "registry.example.com" {
      token = "TOKEN"
    }
`, entry.Name, file, until)
}
