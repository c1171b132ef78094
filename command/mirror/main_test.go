package mirror

import (
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/command/commandtest"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
)

func TestMain(m *testing.M) { commandtest.Main(m) }

// reportOf is the report of a registry on a tree.
func reportOf(t *testing.T, root string, requireSignatures bool) *index.Report {
	t.Helper()
	s, err := index.Scan(t.Context(), index.Options{
		Open:              source.Directories{Root: root}.Open,
		Signer:            commandtest.ShortKey(t),
		RequireSignatures: requireSignatures,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s.Report()
}
