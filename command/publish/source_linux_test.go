package publish

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/command/commandtest"
)

// A file that the user may not read is a failure of the command: nothing is known about the module.
func TestPublishWithoutTheRightToReadTheModule(t *testing.T) {
	for _, test := range []struct{ rule, denied, says string }{
		{"a file", "secret.tf", `"secret.tf" in it cannot be read: permission denied`},
		{"the file that says what is left out", ".terraformignore", `".terraformignore" in it cannot be read: permission denied`},
		{"a folder", "modules/a", `"modules/a" in it cannot be read: permission denied`},
	} {
		t.Run(test.rule, func(t *testing.T) {
			r := newTarget(t)
			dir := filepath.Join(t.TempDir(), "vpc")
			for _, name := range []string{"main.tf", "secret.tf", ".terraformignore", "modules/a/main.tf"} {
				commandtest.Write(t, dir, name, "# x\n")
			}
			denied := filepath.Join(dir, test.denied)
			t.Cleanup(func() { os.Chmod(denied, 0o755) })
			if err := os.Chmod(denied, 0); err != nil {
				t.Fatal(err)
			}
			obeyPermissions(t)
			out, errs, err := r.publish(r.To("acme/vpc/aws"), "--version", "1.0.0", dir)
			if commandtest.Status(err) != cli.ExitUsage || out != "" || strings.Contains(errs, "server") {
				t.Errorf("%v\n%s\n%s", err, out, errs)
			}
			commandtest.Says(t, errs, "Error: "+dir+": "+test.says)
			if sent := r.Sent(); len(sent) > 0 {
				t.Errorf("there are requests: %v", sent)
			}
		})
	}
}

// obeyPermissions has the goroutine of a test obey the permissions of files, as users other than
// root do.
func obeyPermissions(t *testing.T) {
	t.Helper()
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		t.Fatal(err)
	}
	sets[0].Effective &^= 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH
	if err := unix.Capset(&header, &sets[0]); err != nil {
		t.Fatal(err)
	}
}
