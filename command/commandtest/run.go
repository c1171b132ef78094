// Package commandtest runs the commands in tests, and has a registry to run them against.
package commandtest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/caddyserver/caddy/v2"
	"github.com/spf13/cobra"

	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
)

// Main runs the tests of a package. It keeps Caddy out of the developer's own directories.
// Caddy has taken some of them from the environment already, so its variables are set too.
func Main(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "command")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		os.Setenv("XDG_DATA_HOME", dir)
		caddy.DefaultStorage.Path = dir
		caddy.ConfigAutosavePath = filepath.Join(dir, "autosave.json")
		return m.Run()
	}())
}

// Run runs a command as the process does, except for the exit status. It prints errors to
// errs, too.
func Run(ctx context.Context, cmd *cobra.Command, args ...string) (out, errs string, err error) {
	var stdout, stderr strings.Builder
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	cmd.SilenceUsage = true // as in Caddy
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(ctx)
	return stdout.String(), stderr.String(), err
}

// Status is the exit status of an error.
func Status(err error) int {
	var failed *cli.Error
	switch {
	case err == nil:
		return 0
	case errors.As(err, &failed) && failed.Status != nil:
		return cli.ExitUsage
	}
	return cli.ExitProblem
}

// Says fails the test unless the printed text has all of the parts, with any white space
// between words.
func Says(t *testing.T, printed string, parts ...string) {
	t.Helper()
	flat := strings.Join(strings.Fields(printed), " ")
	for _, part := range parts {
		if !strings.Contains(flat, part) {
			t.Errorf("it does not say %q:\n%s", part, printed)
		}
	}
}

// Fits fails the test if a line of the text is too long for a terminal.
func Fits(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if utf8.RuneCountInString(strings.TrimRight(line, "\n")) > cli.Width {
			t.Errorf("a line is longer than %d: %s", cli.Width, line)
		}
	}
}

// Write writes a file below a folder, and returns its path.
func Write(t *testing.T, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, []byte(content), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Files returns the paths of all files below a folder, in order. A folder that does not exist
// has no files.
func Files(t *testing.T, root string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			relative, _ := filepath.Rel(root, name)
			paths = append(paths, filepath.ToSlash(relative))
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	slices.Sort(paths)
	return paths
}

// ShortKey is a signing key that takes little time to generate.
func ShortKey(t *testing.T) *signing.Key {
	t.Helper()
	key, err := signing.ReadKey([]byte(indextest.NewPublisher(t).PrivateKey()), "")
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// NoClientConfiguration hides the developer's tokens from the test.
func NoClientConfiguration(t *testing.T) {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	for _, name := range []string{"XDG_CONFIG_HOME", "XDG_DATA_HOME", "APPDATA", "TF_CLI_CONFIG_FILE", "TERRAFORM_CONFIG", "GITHUB_ACTIONS",
		"ACTIONS_ID_TOKEN_REQUEST_URL", "ACTIONS_ID_TOKEN_REQUEST_TOKEN", "TERRAFORM_REGISTRY_ID_TOKEN"} {
		t.Setenv(name, "")
	}
}
