package command

import (
	"strings"
	"testing"
	"unicode/utf8"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
)

// The descriptions of commands fit a terminal of the usual width.
func TestHelpFitsATerminal(t *testing.T) {
	fits := func(name, text string) {
		for line := range strings.Lines(text) {
			line = strings.TrimRight(line, "\n")
			if utf8.RuneCountInString(line) > terminalWidth {
				t.Errorf("%s: a line of its help is longer than %d: %s", name, terminalWidth, line)
			}
		}
	}
	serve, found := caddycmd.Commands()["terraform-registry"]
	if !found {
		t.Fatal("there is no such command")
	}
	fits("terraform-registry", serve.Long)
	var all func(cmd *cobra.Command)
	all = func(cmd *cobra.Command) {
		fits(cmd.Name(), cmd.Long)
		for _, sub := range cmd.Commands() {
			all(sub)
		}
	}
	for _, cmd := range subcommands() {
		all(cmd)
	}
}
