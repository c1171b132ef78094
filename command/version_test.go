package command

import (
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/module"
)

func TestVersionIsPrinted(t *testing.T) {
	for _, test := range []struct {
		rule string
		of   module.Version
		want string
	}{
		{"a release", module.Version{Registry: "v1.2.0", Caddy: "v2.11.9", Go: "go1.26.1", Commit: "0123456789abcdef"},
			"v1.2.0 with Caddy v2.11.9 and go1.26.1, commit 0123456789abcdef\n"},
		{"a build of changes", module.Version{Registry: "(devel)", Caddy: "v2.11.9", Go: "go1.26.1", Commit: "01", Modified: true},
			"(devel) with Caddy v2.11.9 and go1.26.1, commit 01, modified\n"},
		{"a build of which Go notes no commit", module.Version{Registry: "v1.2.0", Caddy: "v2.11.9", Go: "go1.26.1"},
			"v1.2.0 with Caddy v2.11.9 and go1.26.1\n"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			var b strings.Builder
			if err := versionResult(test.of).WriteText(&b, nil); err != nil || b.String() != test.want {
				t.Errorf("got %q %v", b.String(), err)
			}
		})
	}
}
