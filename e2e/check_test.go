package e2e_test

import (
	"encoding/json"
	"errors"
	"os/exec"
	"testing"
)

// Report has the fields of `caddy-terraform-registry check --json` that tests read.
type Report struct {
	Offered []struct {
		Address, Version string
		Platforms        []string
		Signature        string
		Notes            []string
	}
	Withheld []struct{ Path, Reason, Detail string }
}

// check runs `caddy-terraform-registry check` on a tree, and returns its report and
// exit status. The command gets its own environment, with more variables.
func check(t *testing.T, files *Tree, variables ...string) (Report, int) {
	t.Helper()
	binary, err := caddyBinary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "terraform-registry", "check", "--root", files.Dir, "--json")
	cmd.Env = append([]string{"HOME=" + t.TempDir()}, variables...)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	var report Report
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	return report, cmd.ProcessState.ExitCode()
}

// reasons returns why files are withheld, by path.
func (r Report) reasons() map[string]string {
	reasons := map[string]string{}
	for _, w := range r.Withheld {
		reasons[w.Path] = w.Reason
	}
	return reasons
}
