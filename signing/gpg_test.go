package signing

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// gnupg runs the real gpg, with which publishers sign, in a home of its own.
type gnupg struct {
	*testing.T
	home string
}

func newGnuPG(t *testing.T) gnupg {
	t.Helper()
	if _, err := exec.LookPath("gpg"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("these tests need gpg, which is not installed")
		}
		t.Skip("gpg is not installed")
	}
	g := gnupg{t, t.TempDir()}
	if err := os.Chmod(g.home, 0o700); err != nil {
		t.Fatal(err)
	}
	// Without a number, gpg-agent looks for one that makes a passphrase slow, for seconds.
	if err := os.WriteFile(filepath.Join(g.home, "gpg-agent.conf"), []byte("s2k-count 65536\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		kill := exec.Command("gpgconf", "--kill", "all")
		kill.Env = append(os.Environ(), "GNUPGHOME="+g.home)
		_ = kill.Run()
	})
	return g
}

// run returns the output of gpg.
func (g gnupg) run(stdin []byte, args ...string) []byte {
	g.Helper()
	args = append([]string{"--batch", "--no-tty", "--yes", "--pinentry-mode", "loopback", "--trust-model", "always"}, args...)
	command := exec.Command("gpg", args...)
	command.Env = append(os.Environ(), "GNUPGHOME="+g.home, "LC_ALL=C")
	command.Stdin = bytes.NewReader(stdin)
	var complaints bytes.Buffer
	command.Stderr = &complaints
	output, err := command.Output()
	if err != nil {
		g.Fatalf("gpg %s: %v\n%s", strings.Join(args, " "), err, &complaints)
	}
	return output
}

// generate makes a key without a passphrase.
func (g gnupg) generate(name, algorithm, usage, expire string, options ...string) {
	g.Helper()
	g.run(nil, append(options, "--passphrase", "", "--quick-gen-key", name, algorithm, usage, expire)...)
}

// fingerprint returns the fingerprint of the primary key.
func (g gnupg) fingerprint(name string) string {
	g.Helper()
	_, rest, _ := strings.Cut(string(g.run(nil, "--with-colons", "--list-keys", name)), "\nfpr:")
	return strings.Split(rest, ":")[8]
}

func (g gnupg) public(names ...string) []byte {
	g.Helper()
	return g.run(nil, append([]string{"--armor", "--export"}, names...)...)
}

func (g gnupg) private(name string, options ...string) []byte {
	g.Helper()
	return g.run(nil, append(options, "--armor", "--export-secret-keys", name)...)
}

func (g gnupg) sign(name string, document []byte, options ...string) []byte {
	g.Helper()
	return g.run(document, append(options, "--local-user", name, "--detach-sign")...)
}

// verify checks a signature with gpg, by any key in its home.
func (g gnupg) verify(document, signature []byte) {
	g.Helper()
	file := filepath.Join(g.home, "document.sig")
	if err := os.WriteFile(file, signature, 0o600); err != nil {
		g.Fatal(err)
	}
	g.run(document, "--verify", file, "-")
}
