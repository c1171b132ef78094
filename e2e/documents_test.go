package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// codeBlocks returns the code blocks of a document of the repository in a
// language.
func codeBlocks(t *testing.T, document, language string) []string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(repository(), filepath.FromSlash(document)))
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for _, match := range regexp.MustCompile("(?s)\n```"+language+"\n(.*?)```").FindAllSubmatch(content, -1) {
		blocks = append(blocks, string(match[1]))
	}
	if len(blocks) == 0 {
		t.Fatalf("%s has no block of %s", document, language)
	}
	return blocks
}

// validateCaddyfile has Caddy look at a Caddyfile: whether it could be run, and
// is written as Caddy would format it.
func validateCaddyfile(t *testing.T, caddyfile string) {
	t.Helper()
	binary, err := caddyBinary()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "Caddyfile")
	writeFile(t, file, caddyfile)
	for _, args := range [][]string{
		{"validate", "--config", file, "--adapter", "caddyfile"},
		{"fmt", "--diff", file},
	} {
		cmd := exec.Command(binary, args...)
		cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "XDG_DATA_HOME=", "XDG_CONFIG_HOME=")
		out, err := cmd.CombinedOutput()
		if err != nil || strings.Contains(string(out), "not formatted") {
			t.Errorf("caddy %s: %v\n%s\n%s", args[0], err, caddyfile, out)
		}
	}
}
