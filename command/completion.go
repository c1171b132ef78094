package command

import (
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// platforms are the platforms of most packages.
var platforms = []string{"darwin_amd64", "darwin_arm64", "linux_386", "linux_amd64", "linux_arm", "linux_arm64", "windows_386", "windows_amd64", "windows_arm64", "freebsd_amd64"}

// setCompletion has shells complete the values of the flags of a command and its subcommands,
// by the names that their usage gives them. Without it, they would offer files for all.
func setCompletion(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		_ = cmd.RegisterFlagCompletionFunc(f.Name, completionOf(f)) // the flag is there
	})
	for _, sub := range cmd.Commands() {
		setCompletion(sub)
	}
}

// completeCommandsOfCaddy completes the first argument of a program that takes Caddy's commands beside
// the registry's, which cobra completes.
func completeCommandsOfCaddy(cmd *cobra.Command, args []string, prefix string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
	if len(args) > 0 || !cmd.HasParent() || !calledAfterRegistry(os.Args[0]) {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	for _, c := range caddyCommands(cmd) {
		if strings.HasPrefix(c.Name(), prefix) {
			names = append(names, cobra.CompletionWithDesc(c.Name(), c.Short))
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func completionOf(f *pflag.Flag) cobra.CompletionFunc {
	name, _ := pflag.UnquoteUsage(f)
	switch {
	case name == "folder", name == "repository":
		return cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)
	case name == "file":
		return cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault)
	case name == "os_arch":
		return cobra.FixedCompletions(platforms, cobra.ShellCompDirectiveNoFileComp)
	case strings.Contains(name, "|"):
		return cobra.FixedCompletions(strings.Split(name, "|"), cobra.ShellCompDirectiveNoFileComp)
	}
	return cobra.NoFileCompletions
}
