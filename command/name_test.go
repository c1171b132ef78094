package command

import (
	"strings"
	"testing"
)

func TestSubcommandsByTheNameOfTheProgram(t *testing.T) {
	for _, test := range []struct{ rule, args, want string }{
		{"a subcommand", "caddy-terraform-registry check --root /srv", "caddy-terraform-registry terraform-registry check --root /srv"},
		{"one of another folder, on Windows", "/opt/caddy-terraform-registry.exe token new ci", "/opt/caddy-terraform-registry.exe terraform-registry token new ci"},
		{"one that Caddy has too", "caddy-terraform-registry version", "caddy-terraform-registry terraform-registry version"},
		{"its help", "caddy-terraform-registry help check", "caddy-terraform-registry help terraform-registry check"},
		{"its completion", "caddy-terraform-registry __complete check --", "caddy-terraform-registry __complete terraform-registry check --"},
		{"completion of the first word", "caddy-terraform-registry __complete ch", "caddy-terraform-registry __complete terraform-registry ch"},
		{"completion for a command of Caddy", "caddy-terraform-registry __complete run --", "caddy-terraform-registry __complete run --"},
		{"a flag of the registry's own command", "caddy-terraform-registry --root /srv", "caddy-terraform-registry terraform-registry --root /srv"},
		{"help", "caddy-terraform-registry --help", "caddy-terraform-registry terraform-registry --help"},
		{"help, in short", "caddy-terraform-registry -h", "caddy-terraform-registry terraform-registry --help"},
		{"help of a command of Caddy", "caddy-terraform-registry run --help", "caddy-terraform-registry run --help"},
		{"help of a command of Caddy, in other words", "caddy-terraform-registry help run", "caddy-terraform-registry help run"},
		{"a mistyped command, whose flags are not the registry's own", "caddy-terraform-registry relaod --config Caddyfile", "caddy-terraform-registry terraform-registry relaod"},
		{"Caddy's version", "caddy-terraform-registry -v", "caddy-terraform-registry -v"},
		{"a command of Caddy", "caddy-terraform-registry run --config Caddyfile", "caddy-terraform-registry run --config Caddyfile"},
		{"the registry's own command", "caddy-terraform-registry terraform-registry check", "caddy-terraform-registry terraform-registry check"},
		{"no command", "caddy-terraform-registry", "caddy-terraform-registry terraform-registry --help"},
		{"help without a command", "caddy-terraform-registry help", "caddy-terraform-registry terraform-registry --help"},
		{"another program without a command", "caddy", "caddy"},
		{"help of another program", "caddy --help", "caddy --help"},
		{"another program", "caddy check --root /srv", "caddy check --root /srv"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			if got := strings.Join(withOwnCommand(strings.Fields(test.args), subcommands()), " "); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// Help shows commands as the program takes them.
func TestCommandsInTextsByTheNameOfTheProgram(t *testing.T) {
	for _, test := range []struct{ rule, program, text, want string }{
		{"a path of a release", "caddy-terraform-registry", "caddy-terraform-registry terraform-registry check [flags]", "caddy-terraform-registry check [flags]"},
		{"an example in a release", "/usr/bin/caddy-terraform-registry", "  caddy-terraform-registry check --root /srv", "  caddy-terraform-registry check --root /srv"},
		{"a path in a program that was built as Caddy", "caddy-terraform-registry", "caddy terraform-registry check [flags]", "caddy-terraform-registry check [flags]"},
		{"a path in a release that was renamed", "caddy", "caddy-terraform-registry terraform-registry", "caddy terraform-registry"},
		{"a path of Caddy", "caddy", "caddy terraform-registry check [flags]", "caddy terraform-registry check [flags]"},
		{"an example in Caddy", "caddy", "  caddy-terraform-registry check --root /srv", "  caddy terraform-registry check --root /srv"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			if got := asCalledBy(test.program, test.text); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
