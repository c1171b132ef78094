package mirror

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/command/commandtest"
)

// Versions that are withdrawn in a tree are not fetched into it.
func TestMirrorWithoutWithdrawn(t *testing.T) {
	o := newAcme(t)
	for _, test := range []struct {
		rule, notice, arg string
		says              string // on stderr
		mirrored          string
	}{
		{"another version is chosen", `withdrawn "1.1.0" { reason = "CVE" }`, originHost + "/acme/demo",
			"WITHDRAWN, SO THAT ANOTHER VERSION WAS CHOSEN\nregistry.example.com/acme/demo 1.1.0: it is withdrawn in this tree: CVE\n\n", "1.0.0"},
		{"none is left", `withdrawn "> 1" {}`, originHost + "/acme/demo@1.1.0", "FAILED\nregistry.example.com/acme/demo@1.1.0: ", ""},
		{"a locked one", `withdrawn "1.0.0" {}`, "lock", "it is withdrawn in this tree (for ", ""},
		{"others", `withdrawn "1.1.0" {}`, "lock", "", "1.0.0"},
		{"what cannot be read may withdraw it", `withdrawn "1.1.0`, "lock", "providers/registry.example.com/acme/demo/registry.hcl, which may withdraw it, cannot be read: line 1: ", ""},
		{"other mistakes do not matter", `owner = 1`, "lock", "", "1.0.0"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			root, arg := t.TempDir(), test.arg
			commandtest.Write(t, root, demoDir+"registry.hcl", test.notice)
			if arg == "lock" {
				arg = filepath.Join(t.TempDir(), "lock.hcl")
				commandtest.Write(t, filepath.Dir(arg), "lock.hcl", lock(originHost+"/acme/demo", "1.0.0"))
			}
			_, errs, err := o.mirror(t, root, arg, "--platform", "linux_amd64")
			if !strings.Contains(errs, test.says) || test.says == "" && errs != "" || (err == nil) != (test.mirrored != "") {
				t.Errorf("it says %q (%v)", errs, err)
			}
			var zips []string
			for _, name := range commandtest.Files(t, root) {
				if strings.HasSuffix(name, ".zip") {
					zips = append(zips, filepath.Base(name))
				}
			}
			want := ""
			if test.mirrored != "" {
				want = "terraform-provider-demo_" + test.mirrored + "_linux_amd64.zip"
			}
			if got := strings.Join(zips, " "); got != want {
				t.Errorf("mirrored are %q", got)
			}
		})
	}
}
