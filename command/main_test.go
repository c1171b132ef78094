package command

import (
	"path/filepath"
	"testing"
	"time"

	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/standard"
	_ "github.com/caddyserver/caddy/v2/modules/filestorage"

	"github.com/caddy-terraform/caddy-terraform-registry/access/tokenfile"
	"github.com/caddy-terraform/caddy-terraform-registry/command/commandtest"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

func TestMain(m *testing.M) { commandtest.Main(m) }

// sampleTree writes a small tree and returns its root.
func sampleTree(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	files := indextest.OnDisk(t, root)
	files.Provider("acme/demo", "1.2.0", "linux_amd64", "darwin_arm64")
	files.Write("modules/acme/vpc/aws/1.0.0/main.tf", `output "a" { value = 1 }`)
	return root
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
