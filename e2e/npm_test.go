package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// npmInstall copies a folder of this package, which pins packages of npm, to the run's
// own folder. It installs them there according to the lock file, and returns that
// folder.
func npmInstall(name string, flags ...string) (string, error) {
	if _, err := exec.LookPath("node"); err != nil {
		return "", err
	}
	dir := filepath.Join(runDir, name)
	if err := os.CopyFS(dir, os.DirFS(name)); err != nil {
		return "", err
	}
	cmd := exec.Command("npm", append([]string{"ci"}, flags...)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm ci in %s: %w\n%s", name, err, out)
	}
	return dir, nil
}
