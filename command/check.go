package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/module"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog/record"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
)

func checkCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check --root FOLDER [--signatures require] [--config FILE] [--json]",
		Short: "Says what a folder offers, what is withheld and why",
		Long: `
Reads every file of a folder as the registry would, and lists the versions that
the registry would offer or withhold, with the reason and the remedy. The
command starts no server, writes nothing and needs no key: releases that are
"signed by the registry" are signed when a server offers them. Run by the user
that the registry runs as, it also notes files that have changed since their
first offer. With the registry's configuration, it compares the files with the
transparency log.

The exit status is 0 if all is well, 1 if something is withheld or nothing of a
tree is found in the folder, and 2 if the folder cannot be read.`,
		Example: `  caddy-terraform-registry check --root /srv/terraform
  caddy-terraform-registry check --root /srv/terraform --json | jq .withheld`,
		Args: cli.NoArguments("the folder is given by --root"),
		RunE: cli.RunE(runCheck),
	}
	cli.AddTreeFlags(cmd)
	cmd.Flags().String("signatures", module.PreferSignatures, "`prefer|require`: with require, what publishers did not sign is withheld")
	addConfigFlags(cmd, "The configuration `file` of a registry with a transparency log, to compare with")
	cmd.Flags().Bool("json", false, "Print the report as JSON")
	return cmd
}

func runCheck(cmd *cobra.Command, _ []string) error {
	fl := caddycmd.Flags{FlagSet: cmd.Flags()}
	directories, err := cli.TreeFlags(fl)
	if err != nil {
		return err
	}
	signatures, err := pull.ParseSignatures(fl.String("signatures"))
	if err != nil {
		return fmt.Errorf("--signatures: %w", err)
	}
	finish := func(l index.Ledger) error {
		r, err := check(cmd.Context(), directories, signatures == pull.RequireSignatures, l)
		if err != nil {
			return err
		}
		return cli.Finish(cmd, r)
	}
	if fl.String("config") == "" {
		if fl.String("adapter") != "" {
			return errors.New("--adapter: it can only be given with --config")
		}
		return finish(nil)
	}
	return withTlog(cmd, func(files module.TlogFiles, o tlog.Options) error {
		l, err := tlog.OpenToRead(cmd.Context(), o)
		if err != nil {
			return err
		}
		defer l.Close()
		return finish(record.NewLedger(l, files.Hostnames, files.Require))
	})
}

// check scans a tree on the local disk once, and compares it with a ledger, which may be nil. Named
// file systems exist only within a configuration.
func check(ctx context.Context, directories source.Directories, require bool, l index.Ledger) (r checkResult, err error) {
	memo, identity := module.Memo(directories)
	snapshot, err := cli.Scan(ctx, index.Options{
		Open:              directories.Open,
		Signer:            unusedKey{},
		RequireSignatures: require,
		Store:             memo,
		Identity:          identity,
		Ledger:            l,
	})
	if err != nil {
		return r, err
	}
	r = checkResult{snapshot.Report(), namedRepositories(snapshot)}
	for i := range r.Offered {
		o := &r.Offered[i]
		o.Signature = strings.TrimSpace(o.Signature) // the space before the ID that unusedKey lacks
	}
	return r, nil
}

// A namedRepository is a repository that a registry.hcl names.
type namedRepository struct {
	Address string `json:"address"`
	URL     string `json:"url"`
	Folder  string `json:"folder,omitempty"`
	Tags    string `json:"tags"`
	Detail  string `json:"detail"` // whether it is followed
}

// namedRepositories returns the repositories that the tree names, by address. The tree alone does not
// say whether they are followed.
func namedRepositories(s *index.Snapshot) (list []namedRepository) {
	for a := range s.Folders() {
		m := s.Metadata(index.PlaceOf(a))
		if m == nil || m.Git == nil {
			continue
		}
		detail := "its tags are versions at a registry that has `git` in its configuration; without that it is not followed"
		if !a.IsModule() || a.Hostname != "" {
			detail = "it is not followed: `git` is for modules in a folder without HOSTNAME"
		}
		list = append(list, namedRepository{a.String(), m.Git.URL, m.Git.Folder, m.Git.Tags.String(), detail})
	}
	slices.SortFunc(list, func(a, b namedRepository) int { return strings.Compare(a.Address, b.Address) })
	return list
}

// unusedKey takes the place of the registry's key. A scan only notes which releases the
// registry signs. It signs them when clients ask for the signatures.
type unusedKey struct{}

func (unusedKey) PublicKey() signing.PublicKey { return signing.PublicKey{} }

func (unusedKey) Sign([]byte) ([]byte, error) { return nil, errors.New("there is no key to sign with") }

// A checkResult prints a report. The text fits the terminal except for paths, which stay
// whole so that they can be copied.
type checkResult struct {
	*index.Report
	Repositories []namedRepository `json:"repositories,omitempty"`
}

func (r checkResult) Document() any { return r }

func (r checkResult) Status() int {
	if len(r.Withheld) > 0 || r.Hint != "" {
		return cli.ExitProblem
	}
	return 0
}

func (r checkResult) WriteText(out, _ io.Writer) error {
	b := new(strings.Builder)
	writeOffered(b, r.Offered)
	writeNotes(b, r.Offered)
	cli.WriteSection(b, "REPOSITORIES", r.Repositories, func(n namedRepository) string {
		return fmt.Sprintf("module %s %s %s\n%s", cli.Printable(n.Address), cli.Printable(n.URL), cli.Printable(n.Tags), cli.Wrap(n.Detail, cli.Indent))
	})
	cli.WriteProblems(b, "WITHHELD", r.Withheld)
	var ignored, withdrawn, temporary []index.Problem
	for _, p := range r.Ignored {
		switch p.Reason {
		case tree.Temporary:
			temporary = append(temporary, p)
		case tree.Withdrawn:
			withdrawn = append(withdrawn, p)
		default:
			ignored = append(ignored, p)
		}
	}
	cli.WriteSection(b, "WITHDRAWN", withdrawn, func(p index.Problem) string {
		return fmt.Sprintf("%s %s\n%s", cli.Printable(p.Address), p.Version, cli.Wrap(cli.Printable(p.Detail), cli.Indent))
	})
	cli.WriteProblems(b, "IGNORED", ignored)
	cli.WriteSection(b, "SKIPPED UNTIL RENAMED", temporary, func(p index.Problem) string { return cli.Printable(p.Path) })
	if more := r.IgnoredTotal - len(r.Ignored); more > 0 {
		fmt.Fprintf(b, "… and %s.\n\n", cli.Count(more, "more ignored file"))
	}
	b.WriteString(cli.Wrap(summary(r.Report), 0))
	if r.Hint != "" {
		b.WriteString("\n" + cli.Wrap(cli.Sentence(r.Hint), 0))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// writeOffered writes the versions of each address below it.
func writeOffered(b *strings.Builder, offered []index.Offer) {
	if len(offered) == 0 {
		return
	}
	fmt.Fprintln(b, "OFFERED")
	for i := 0; i < len(offered); {
		n := i
		for n < len(offered) && offered[n].Kind == offered[i].Kind && offered[n].Address == offered[i].Address {
			n++
		}
		fmt.Fprintf(b, "%s %s\n", offered[i].Kind, cli.Printable(offered[i].Address))
		writeVersions(b, offered[i:n])
		i = n
	}
	fmt.Fprintln(b)
}

// writeVersions writes the versions of one address in columns. The last column has
// the platforms, on as many lines as they need.
func writeVersions(b *strings.Builder, offered []index.Offer) {
	version, signature := 0, 0
	for _, o := range offered {
		version, signature = max(version, len(o.Version)), max(signature, len(o.Signature))
	}
	for _, o := range offered {
		line := fmt.Sprintf("%*s%-*s", cli.Indent, "", version, o.Version)
		if o.Signature != "" {
			line += fmt.Sprintf("  %-*s", signature, o.Signature)
		}
		if len(o.Platforms) == 0 {
			fmt.Fprintln(b, strings.TrimRight(line, " "))
			continue
		}
		column := len(line) + 2
		if column > cli.Width-24 {
			column = 2 * cli.Indent
			fmt.Fprintln(b, strings.TrimRight(line, " "))
			line = strings.Repeat(" ", column-2)
		}
		lines := strings.TrimLeft(cli.Wrap(strings.Join(o.Platforms, " "), column), " ")
		b.WriteString(line + "  " + lines)
	}
}

// writeNotes writes notes for the operator about offered versions.
func writeNotes(b *strings.Builder, offered []index.Offer) {
	var notes []string
	for _, o := range offered {
		for _, note := range o.Notes {
			notes = append(notes, fmt.Sprintf("%s %s %s\n%s", o.Kind, cli.Printable(o.Address), o.Version, cli.Wrap(cli.Printable(note), cli.Indent)))
		}
	}
	cli.WriteSection(b, "NOTES", notes, func(note string) string { return note })
}

// summary gives the numbers of a report in a few sentences.
func summary(r *index.Report) string {
	versions := make(map[string]int)
	addresses := make(map[string]int)
	seen := make(map[string]bool)
	for _, o := range r.Offered {
		versions[o.Kind]++
		if address := o.Kind + " " + o.Address; !seen[address] {
			seen[address] = true
			addresses[o.Kind]++
		}
	}
	var offered []string
	for _, kind := range []string{index.KindProvider, index.KindModule} {
		if addresses[kind] > 0 {
			offered = append(offered, fmt.Sprintf("%s in %s", cli.Count(addresses[kind], kind), cli.Count(versions[kind], "version")))
		}
	}
	sentence := "Nothing is offered"
	if len(offered) > 0 {
		sentence = "Offered: " + strings.Join(offered, ", ")
	}
	sentence += fmt.Sprintf(". Withheld: %d.", len(r.Withheld))
	if r.WithdrawnTotal > 0 {
		sentence += fmt.Sprintf(" Withdrawn: %s.", cli.Count(r.WithdrawnTotal, "version"))
	}
	if n := r.IgnoredTotal - r.TemporaryTotal - r.WithdrawnTotal; n > 0 {
		have := "have"
		if n == 1 {
			have = "has"
		}
		sentence += fmt.Sprintf(" Ignored: %s that %s no place in the tree.", cli.Count(n, "file"), have)
	}
	if r.TemporaryTotal > 0 {
		sentence += fmt.Sprintf(" Skipped until renamed: %s.", cli.Count(r.TemporaryTotal, "file"))
	}
	return sentence
}
