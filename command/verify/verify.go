package verify

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/command/remote"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog/verify"
)

// Command returns the command. Tests pass a network for their registries.
func Command(network remote.Network) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "verify [FOLDER] [--recursive] [--update] [--min-age AGE] | --watch URL",
		Short: "Checks what clients have downloaded against the record",
		Long: `
Checks what init has left in a folder, by default the current one, against the
transparency logs of the registries that it came from: the hashes of the lock
file, the installed packages of providers, and the installed modules, file by
file. Run it in CI after init.

It finds logs as clients find registries: by the hostname in an address, and by
host and network_mirror blocks of the CLI configuration. --log names others. It
sends the tokens that clients send.

It keeps the last state of each log in .terraform-registry.checkpoint in the
folder. Commit this file. It is written at the first use of a log, or of a host
that leads to it, and with --update; after that the log must continue what is in
the file, signed by the same key. While a log is signed by two keys, --update
takes the second one, too. If the log is another one for a good reason, remove
its part of the file.

A finding is a version or file that is not on record or has other bytes than on
record, a version that is withdrawn, or younger than --min-age, and a log that
was rolled back, changed, or signed by another key: then both signed checkpoints
are printed, to be shown to others. With --require-log, a registry without a log
is a finding, too.

Answers are kept in the user's cache folder. If a registry cannot be reached,
they count, and the output says how old they are.

--watch reads all entries of a log as they come, and prints the new ones, until
it is interrupted; with --once, those since the last time. It fails if the log
has two packages of one version. It needs a token that may read everything.

The exit status is 0 if all is as on record, 1 if there are findings, and 2 if
it is not known because a registry gave no answer, the state of a log could
not be written, or the command was called wrongly.`,
		Example: `  caddy-terraform-registry verify
  caddy-terraform-registry verify infrastructure --recursive --min-age 7d
  caddy-terraform-registry verify --watch registry.example.com --namespace acme --once`,
		Args: arguments,
	}
	cmd.RunE = cli.RunE(func(cmd *cobra.Command, args []string) error { return run(cmd, args, network) })
	cmd.Flags().BoolP("recursive", "R", false, "Check all folders below, too")
	cmd.Flags().StringSlice("log", nil, "The `URL` of a log, or the hostname of its registry, to use in place of those that are found; can be repeated")
	cmd.Flags().StringSlice("key", nil, "A `key` that you were told, ORIGIN+HASH+KEY: no other one counts; can be repeated")
	cmd.Flags().String("checkpoint", "", "The `file` with what was seen of logs (default: "+verify.PinsName+" in the folder)")
	cmd.Flags().BoolP("update", "u", false, "Write the newest checkpoints to the file, and accept a log that continues another one")
	cmd.Flags().String("min-age", "0", "The `age` that a version must have, since it was first offered, such as 7d")
	cmd.Flags().Bool("require-log", false, "Make it a finding that a registry has no log")
	cmd.Flags().String("watch", "", "Print the entries of the log at a `URL`, or of the registry at a hostname, as they come")
	cmd.Flags().StringSlice("namespace", nil, "Print the entries of a `namespace` alone; can be repeated")
	cmd.Flags().Bool("once", false, "Watch until all entries have been read")
	cmd.Flags().Duration("interval", time.Minute, "How long to wait before looking for new entries")
	cmd.Flags().BoolP("json", "j", false, "Print JSON")
	return cmd
}

func arguments(cmd *cobra.Command, args []string) error {
	watch, _ := cmd.Flags().GetString("watch")
	if len(args) > 1 || len(args) == 1 && watch != "" {
		return cli.UsageError(cmd, errors.New("give one folder, or --watch and no folder"))
	}
	return nil
}

func run(cmd *cobra.Command, args []string, network remote.Network) error {
	fl := caddycmd.Flags{FlagSet: cmd.Flags()}
	if err := checkFlags(fl); err != nil {
		return err
	}
	folder := "."
	if len(args) == 1 {
		folder = args[0]
	}
	o, err := options(fl, network)
	if err != nil {
		return err
	}
	file := fl.String("checkpoint")
	if file == "" {
		file = filepath.Join(folder, verify.PinsName)
	}
	if o.Pins, err = verify.ReadPins(file); err != nil {
		return err
	}
	ctx, stop := cli.Interruptible(cmd)
	defer stop()
	if fl.String("watch") != "" {
		return watch(ctx, cmd, fl, o, file)
	}
	projects, err := readProjects(folder, fl.Bool("recursive"))
	if err != nil {
		return err
	}
	report, pins, changed, err := verify.Run(ctx, o, projects)
	if err != nil {
		return err
	}
	r := result{report, file}
	if changed {
		if err := verify.UpdatePins(file, o.Pins, pins); err != nil {
			report.Unwritten = err.Error()
		}
	}
	return cli.Finish(cmd, r)
}

// checkFlags refuses flags that would have no effect, since users would rely on them. A flag may be
// empty because a script gives it a variable that is not set.
func checkFlags(fl caddycmd.Flags) error {
	given := func(name string) bool { return fl.Changed(name) && fl.Lookup(name).Value.String() != "false" }
	for _, name := range []string{"watch", "log", "key", "namespace", "checkpoint"} {
		if value := fl.Lookup(name).Value.String(); given(name) && (value == "" || value == "[]") {
			return fmt.Errorf("--%s: it is empty", name)
		}
	}
	for _, name := range []string{"recursive", "log", "min-age", "require-log"} {
		if given("watch") && given(name) {
			return fmt.Errorf("--%s does not go with --watch, which reads one log and no folder", name)
		}
	}
	for _, name := range []string{"namespace", "once", "interval"} {
		if !given("watch") && given(name) {
			return fmt.Errorf("--%s belongs to --watch", name)
		}
	}
	if fl.Duration("interval") <= 0 {
		return errors.New("--interval: give a duration such as 1m")
	}
	return nil
}

// options reads the flags, and the settings of clients.
func options(fl caddycmd.Flags, network remote.Network) (*verify.Options, error) {
	minAge, err := caddy.ParseDuration(fl.String("min-age"))
	if err != nil || minAge < 0 {
		return nil, fmt.Errorf("--min-age: %q is no duration: write it like 7d or 12h", fl.String("min-age"))
	}
	settings, err := remote.ClientSettings()
	if err != nil {
		return nil, err
	}
	cache := ""
	if dir, err := os.UserCacheDir(); err == nil {
		cache = filepath.Join(dir, "caddy-terraform-registry", "verify")
	}
	o := &verify.Options{MinAge: minAge, RequireLog: fl.Bool("require-log"), Now: time.Now()}
	o.Update = fl.Bool("update")
	o.Client = &verify.Client{Transport: network.Reading(), Token: remote.ClientTokens(), Cache: verify.OpenCache(cache), Pause: network.Pause, UserAgent: remote.UserAgent}
	o.Settings = settings
	if o.URLs, err = fl.GetStringSlice("log"); err != nil {
		return nil, err
	}
	o.Keys, err = fl.GetStringSlice("key")
	return o, err
}

// readProjects reads what init has left in a folder, and in those below.
func readProjects(folder string, recursive bool) (projects []verify.Project, err error) {
	data := os.Getenv("TF_DATA_DIR")
	if data == "" {
		data = verify.DefaultData
	}
	folders := []string{folder}
	if recursive {
		if folders, err = verify.FindProjects(folder, data); err != nil {
			return nil, err
		}
	}
	for _, f := range folders {
		p, known, err := verify.ReadProject(f, data)
		if err != nil {
			return nil, err
		}
		if known {
			projects = append(projects, p)
		}
	}
	if len(projects) == 0 {
		return nil, fmt.Errorf("there is nothing of Terraform or OpenTofu in %s: run `init` first, or name another folder", cli.Printable(folder))
	}
	return projects, nil
}
