package command

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/caddy-terraform/caddy-terraform-registry/module"
)

// documentedCommands returns the arguments of `caddy-terraform-registry` in the blocks of
// shell of the README and the manual.
func documentedCommands(t *testing.T) (commands []string) {
	t.Helper()
	var documents []string
	for _, pattern := range []string{"../*.md", "../docs/*.md"} {
		found, err := filepath.Glob(filepath.FromSlash(pattern))
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, found...)
	}
	block := regexp.MustCompile("(?ms)^ *```(?:sh|yaml)$(.*?)^ *```$")
	line := regexp.MustCompile(`(?m)^(?:.*\s)?caddy-terraform-registry (.*)$`)
	for _, document := range documents {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range block.FindAllSubmatch(text, -1) {
			script := strings.ReplaceAll(string(b[1]), "\\\n", "")
			for _, m := range line.FindAllStringSubmatch(script, -1) {
				commands = append(commands, m[1])
			}
		}
	}
	return commands
}

// shellWords splits a line of shell that has no expansions, up to where its output goes.
func shellWords(line string) (args []string) {
	for _, word := range regexp.MustCompile(`"[^"]*"|'[^']*'|\S+`).FindAllString(line, -1) {
		if strings.ContainsAny(word[:1], "|>&;#") {
			break
		}
		args = append(args, strings.Trim(word, `"'`))
	}
	return args
}

// Commands in documents have existing flags and the right number of arguments.
func TestDocumentedCommands(t *testing.T) {
	commands := documentedCommands(t)
	if len(commands) < 20 {
		t.Fatalf("the documents have the commands %q", commands)
	}
	for _, line := range commands {
		if strings.HasPrefix(line, "./") {
			continue // of go build -o caddy-terraform-registry
		}
		args := withOwnCommand(append([]string{module.BinaryName}, shellWords(line)...), subcommands())
		if _, isCaddys := caddycmd.Commands()[args[1]]; isCaddys && args[1] != ownCommand {
			continue
		}
		root := &cobra.Command{Use: ownCommand}
		caddycmd.Commands()[ownCommand].CobraFunc(root)
		cmd, rest, err := root.Find(args[2:])
		if err == nil {
			err = cmd.ParseFlags(rest)
		}
		if err == nil && cmd.Args != nil {
			err = cmd.Args(cmd, cmd.Flags().Args())
		}
		if err != nil {
			t.Errorf("caddy-terraform-registry %s: %v", line, err)
		}
	}
}
