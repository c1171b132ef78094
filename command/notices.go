package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	version "github.com/hashicorp/go-version"
	"github.com/spf13/cobra"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

func deprecateCommand() *cobra.Command {
	return noticeCommand(&cobra.Command{
		Use:   "deprecate --root <folder> [--reason <text>] [--link <url>] [--dry-run] <address> <versions>",
		Short: "Marks versions as deprecated",
		Long: `
Deprecates versions of a provider or module. They are still offered, and users
are warned: for a provider, clients print a warning at each "init", whichever
version they use, unless they use a network mirror. For a module no client does;
its pages and the API show the reason. Requests without a version get the newest
one that is not deprecated.

This writes the file registry.hcl in the folder of the provider or module. A
server that serves the folder notices it at once.
` + noticeArguments + noticeStatus,
		Example: `  caddy terraform-registry deprecate --root /srv/terraform acme/vpc/aws "< 1.2.0" --reason "subnets overlap: use 1.2 or newer"`,
	}, index.DeprecatedNotice)
}

func withdrawCommand() *cobra.Command {
	return noticeCommand(&cobra.Command{
		Use:   "withdraw --root <folder> [--reason <text>] [--link <url>] [--dry-run] <address> <versions>",
		Short: "Stops offering versions and keeps their files",
		Long: `
Withdraws versions of a provider or module. They are no longer listed, and
requests for one are answered with the reason. Their files stay, so that restore
can offer them again. Versions of other registries can be withdrawn too, even
before they are fetched.

Where a lock file names a withdrawn version of a provider, "init" fails until
"init -upgrade" chooses another one. To warn users first, deprecate the version.

This writes the file registry.hcl in the folder of the provider or module. A
server that serves the folder notices it at once.
` + noticeArguments + noticeStatus,
		Example: `  caddy terraform-registry withdraw --root /srv/terraform acme/vpc/aws 1.3.0 --reason CVE-2026-1234
  caddy terraform-registry withdraw --root /srv/terraform registry.terraform.io/hashicorp/aws 5.71.0 --link https://example.com/why`,
	}, index.WithdrawnNotice)
}

func restoreCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "restore --root <folder> [--dry-run] <address> <versions>",
		Short: "Undoes deprecate and withdraw",
		Long: `
Removes what deprecate and withdraw have written: the blocks in the file
registry.hcl for exactly these versions. If only a block for more versions
covers them, the command names it and changes nothing.
` + noticeArguments + `
The exit status is 0 if it is done, and 2 if there was nothing to restore or
nothing could be changed.`,
		Example: `  caddy terraform-registry restore --root /srv/terraform acme/vpc/aws 1.3.0`,
		RunE:    runRestore,
	}
	addNoticeFlags(cmd)
	return cmd
}

// noticeArguments explains the arguments that the commands have in common.
const noticeArguments = `
The address is [HOSTNAME/]NAMESPACE/TYPE or [HOSTNAME/]NAMESPACE/NAME/SYSTEM, as
in the folder. The versions are a constraint as in a configuration, such as
1.3.0, "< 1.2.0" or ">= 1.0, < 1.4"; prereleases count like releases.
`

// noticeStatus explains the exit status of deprecate and withdraw.
const noticeStatus = `
The exit status is 0 if the file is as it should be, whether or not it had to be
changed, and 2 if it could not be changed.`

func noticeCommand(cmd *cobra.Command, kind index.NoticeKind) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return runNotice(cmd, args, kind) }
	addNoticeFlags(cmd)
	cmd.Flags().String("reason", "", "Why, in one sentence for users")
	cmd.Flags().String("link", "", "The URL of a page with more information")
	return cmd
}

func addNoticeFlags(cmd *cobra.Command) {
	addTreeFlags(cmd)
	cmd.Flags().Lookup("root").Usage = "The folder of the registry (required)"
	cmd.Flags().Lookup("keys").Hidden = true
	cmd.Flags().Bool("dry-run", false, "Print the change and write nothing")
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) != 2 {
			return usageError(cmd, errors.New(`give an address and its versions, such as: acme/vpc/aws "< 1.2.0"`))
		}
		return nil
	}
	cmd.SetFlagErrorFunc(usageError)
}

func runNotice(cmd *cobra.Command, args []string, kind index.NoticeKind) error {
	n, err := newNoticeChange(cmd, args, kind == index.WithdrawnNotice)
	if err != nil {
		return usageError(cmd, err)
	}
	e := index.NoticeEdit{Kind: kind, Versions: n.versions}
	for _, flag := range []struct {
		name string
		text **string
	}{{"reason", &e.Reason}, {"link", &e.Link}} {
		if cmd.Flags().Changed(flag.name) {
			value, _ := cmd.Flags().GetString(flag.name)
			*flag.text = &value
		}
	}
	if err := e.Check(); err != nil {
		return usageError(cmd, err)
	}
	after, err := index.SetNotice(n.before, e)
	if err != nil {
		return usageError(cmd, n.uneditable(err))
	}
	said := fmt.Sprintf("%s %s", kind, n.versions)
	if string(after) == string(n.before) {
		said = fmt.Sprintf("already %s %s", kind, n.versions)
	}
	return n.finish(cmd, after, said+", which covers "+n.covered())
}

func runRestore(cmd *cobra.Command, args []string) error {
	n, err := newNoticeChange(cmd, args, false)
	if err != nil {
		return usageError(cmd, err)
	}
	after, removed, err := index.RemoveNotices(n.before, n.versions)
	if err != nil {
		return usageError(cmd, n.uneditable(err))
	}
	remaining, _ := index.ParseMetadata(after)
	if len(removed) == 0 {
		return usageError(cmd, n.notRestored(&remaining))
	}
	var kinds []string
	for _, k := range removed {
		kinds = append(kinds, string(k))
	}
	said := fmt.Sprintf("restored %s (%s), which covers %s", n.versions, strings.Join(kinds, ", "), n.covered())
	if wider := n.wider(&remaining); len(wider) > 0 {
		said += "; still " + strings.Join(wider, ", ")
	}
	return n.finish(cmd, after, said)
}

// A noticeChange is a change to the registry.hcl of one folder.
type noticeChange struct {
	folder   index.AddressFolder
	versions address.Constraints
	before   []byte // the content of the file
	isNew    bool   // the folder is not there yet
}

// newNoticeChange finds the folder that the arguments name. With ahead, that of a
// mirrored address may be missing: its versions are withdrawn before they are fetched.
func newNoticeChange(cmd *cobra.Command, args []string, ahead bool) (*noticeChange, error) {
	fl := caddycmd.Flags{FlagSet: cmd.Flags()}
	directories, err := treeFlags(fl)
	if err != nil {
		return nil, err
	}
	a, err := parseAddress(args[0])
	if err != nil {
		return nil, err
	}
	n := new(noticeChange)
	if n.versions, err = address.ParseConstraints(args[1]); err != nil {
		return nil, err
	}
	if len(n.versions) == 0 {
		return nil, errors.New(`name the versions: ">= 0" stands for all`)
	}
	tree, err := directories.Open()
	if err != nil {
		return nil, err
	}
	if n.folder, n.isNew, err = findFolder(cmd.Context(), tree, a, ahead); err != nil {
		return nil, err
	}
	if n.before, err = n.folder.ReadMetadata(); err != nil {
		return nil, n.uneditable(err)
	}
	return n, nil
}

// parseAddress parses the address of a provider or module. The first of its names
// is a hostname if it looks like one, as in a tree.
func parseAddress(text string) (address.Address, error) {
	names, hostname := strings.Split(text, "/"), ""
	if address.IsHostname(names[0]) {
		hostname, names = names[0], names[1:]
	}
	var a address.Address
	var err error
	switch len(names) {
	case 2:
		a, err = address.ParseProvider(hostname, names[0], names[1])
	case 3:
		a, err = address.ParseModule(hostname, names[0], names[1], names[2])
	default:
		err = errors.New("give [HOSTNAME/]NAMESPACE/TYPE of a provider, or [HOSTNAME/]NAMESPACE/NAME/SYSTEM of a module")
	}
	if err != nil {
		return a, fmt.Errorf("%s is not an address: %w", printable(text), err)
	}
	return a, nil
}

// findFolder finds the folder of an address in a tree.
func findFolder(ctx context.Context, tree index.Tree, a address.Address, ahead bool) (f index.AddressFolder, isNew bool, err error) {
	folders, err := tree.Folders(ctx)
	if err != nil {
		return f, false, err
	}
	if i := slices.IndexFunc(folders, func(f index.AddressFolder) bool { return f.Address == a }); i >= 0 {
		return folders[i], false, nil
	}
	f = tree.Folder(a)
	if ahead && a.Hostname != "" {
		return f, true, nil
	}
	message := fmt.Sprintf("there is no folder %s", printable(f.Path))
	if alike := similar(folders, a); len(alike) > 0 {
		message += ": did you mean " + strings.Join(alike, " or ") + "?"
	} else {
		message += ": give the address as it is in the tree"
	}
	return f, false, errors.New(message)
}

// similar returns up to three addresses that may be meant: those of the same name,
// or else of the same namespace.
func similar(folders []index.AddressFolder, a address.Address) []string {
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

// file is the path of the registry.hcl, from the root.
func (n *noticeChange) file() string { return n.folder.Path + "/" + index.MetadataName }

// uneditable says why the file cannot be changed.
func (n *noticeChange) uneditable(err error) error {
	return fmt.Errorf("%s: %w: fix the file first", printable(n.file()), err)
}

// covered names the versions in the tree that the change affects.
func (n *noticeChange) covered() string {
	total, names := n.folder.Covered(n.versions)
	if total == 0 {
		return "no version in the tree"
	}
	return count(total, "version") + ": " + names
}

// notRestored says why there is nothing to remove.
func (n *noticeChange) notRestored(m *index.Metadata) error {
	err := fmt.Errorf("%s has no block for exactly %s", printable(n.file()), n.versions)
	if wider := n.wider(m); len(wider) > 0 {
		return fmt.Errorf("%w: restore what covers it (%s), then add back what should stay", err, strings.Join(wider, ", "))
	}
	if all := listNotices(m, func(address.Constraints) bool { return true }); len(all) > 0 {
		return fmt.Errorf("%w, but it has %s", err, strings.Join(all, ", "))
	}
	return fmt.Errorf("%w: nothing is deprecated or withdrawn there", err)
}

// wider lists the notices that cover some of the versions, of those in the tree or,
// if it is one, of the one given.
func (n *noticeChange) wider(m *index.Metadata) []string {
	return listNotices(m, n.overlaps)
}

// listNotices lists the notices about versions that match.
func listNotices(m *index.Metadata, match func(address.Constraints) bool) (list []string) {
	for _, notices := range []struct {
		kind index.NoticeKind
		all  []index.Notice
	}{{index.WithdrawnNotice, m.Withdrawn}, {index.DeprecatedNotice, m.Deprecated}} {
		for _, notice := range notices.all {
			if match(notice.Versions) {
				list = append(list, fmt.Sprintf("%s %q", notices.kind, notice.Versions))
			}
		}
	}
	return list
}

func (n *noticeChange) overlaps(other address.Constraints) bool {
	if v, err := address.ParseModuleVersion(n.versions.String()); err == nil && other.Cover(v) {
		return true // whether it is in the tree or not
	}
	return slices.ContainsFunc(n.folder.Versions, func(v *version.Version) bool { return n.versions.Cover(v) && other.Cover(v) })
}

// finish writes the file, or in a dry run prints the change, and says what was done.
func (n *noticeChange) finish(cmd *cobra.Command, after []byte, said string) error {
	dry, _ := cmd.Flags().GetBool("dry-run")
	text := ""
	switch {
	case string(after) == string(n.before):
	case dry:
		text = "Would change " + printable(n.file()) + ":\n" + lineChanges(string(n.before), string(after)) + "\n"
	default:
		if err := n.folder.WriteMetadata(n.before, after); err != nil {
			return usageError(cmd, fmt.Errorf("%s: %w", printable(n.file()), err))
		}
	}
	text += wrap(n.folder.Address.String()+": "+said, 0)
	if n.isNew {
		text += wrap("Nothing of it is in the tree yet: check that the address is right.", 0)
	}
	if dry {
		text += wrap("This was a dry run: nothing has been written.", 0)
	}
	_, err := fmt.Fprint(cmd.OutOrStdout(), text)
	if err != nil {
		return usageError(cmd, err)
	}
	return nil
}

// lineChanges lists the lines that differ, with - those of before and with + those
// of after.
func lineChanges(before, after string) string {
	old, now := strings.SplitAfter(before, "\n"), strings.SplitAfter(after, "\n")
	for len(old) > 0 && len(now) > 0 && old[0] == now[0] {
		old, now = old[1:], now[1:]
	}
	for len(old) > 0 && len(now) > 0 && old[len(old)-1] == now[len(now)-1] {
		old, now = old[:len(old)-1], now[:len(now)-1]
	}
	var b strings.Builder
	for _, lines := range []struct {
		sign string
		all  []string
	}{{"-", old}, {"+", now}} {
		for _, line := range lines.all {
			if line != "" {
				b.WriteString(strings.TrimRight(lines.sign+" "+strings.Map(visible, strings.TrimRight(line, "\r\n")), " ") + "\n")
			}
		}
	}
	return b.String()
}

// visible replaces characters that would change the look of a terminal.
func visible(r rune) rune {
	if r == '\t' || unicode.IsPrint(r) {
		return r
	}
	return unicode.ReplacementChar
}
