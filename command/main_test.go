package command

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/standard"
	_ "github.com/caddyserver/caddy/v2/modules/filestorage"
	"github.com/spf13/cobra"

	"github.com/caddy-terraform/caddy-terraform-registry/access/tokenfile"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
)

// TestMain keeps Caddy out of the developer's own directories. Some of them Caddy
// has taken from the environment before, so its variables are set too.
func TestMain(m *testing.M) {
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

// sampleTree writes a small tree and returns its root.
func sampleTree(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	files := indextest.OnDisk(t, root)
	files.Provider("acme/demo", "1.2.0", "linux_amd64", "darwin_arm64")
	files.Write("modules/acme/vpc/aws/1.0.0/main.tf", `output "a" { value = 1 }`)
	return root
}

// shortKey is a key that takes little time to generate.
func shortKey(t *testing.T) *signing.Key {
	t.Helper()
	key, err := signing.ReadKey([]byte(indextest.NewPublisher(t).PrivateKey()), "")
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// tokensFile makes a tokens file with a valid token, ci, and an expired one, old.
func tokensFile(t *testing.T) (file, good, expired string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "tokens")
	good, expired = tokenfile.Generate(), tokenfile.Generate()
	for _, add := range []struct {
		entry  tokenfile.Entry
		secret string
	}{
		{tokenfile.Entry{Name: "ci", Groups: []string{"dev", "ops"}}, good},
		{tokenfile.Entry{Name: "old", Expires: time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)}, expired},
	} {
		if err := tokenfile.Add(file, add.entry, add.secret); err != nil {
			t.Fatal(err)
		}
	}
	return file, good, expired
}

// run runs a command as the process does, except for the exit status. Errors are
// printed to errs as well.
func run(ctx context.Context, cmd *cobra.Command, args ...string) (out, errs string, err error) {
	var stdout, stderr strings.Builder
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	cmd.SilenceUsage = true // as in Caddy
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(ctx)
	return stdout.String(), stderr.String(), err
}
