package e2e_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Publisher signs releases with its own OpenPGP key, by gpg, as publishers do.
type Publisher struct{ email string }

// publisher generates a publisher's key, once per run. Without gpg, the test is
// skipped, or fails in CI.
func publisher(t *testing.T, name string, options ...string) *Publisher {
	t.Helper()
	p := &Publisher{email: "releases@" + name + ".example"}
	require(t, gpgKeys.once(p.email, func() error {
		if _, err := exec.LookPath("gpg"); err != nil {
			return err
		}
		if err := os.MkdirAll(gpgHome(), 0o700); err != nil {
			return err
		}
		_, err := gpg(append(options, "--passphrase", "", "--quick-generate-key", name+" <"+p.email+">", "rsa3072", "sign", "never")...)
		return err
	}))
	return p
}

// extendedPublisher generates a key that expired years ago and was extended then. It
// also returns the public key from before the extension.
func extendedPublisher(t *testing.T) (p *Publisher, before string) {
	t.Helper()
	p = publisher(t, "extended", "--faked-system-time", "20200101T000000!")
	file := filepath.Join(gpgHome(), "before-extension.asc")
	require(t, gpgKeys.once(p.email+" extended", func() error {
		listing, err := gpg("--with-colons", "--list-keys", p.email)
		if err != nil {
			return err
		}
		_, rest, _ := strings.Cut(listing, "\nfpr:")
		fingerprint := strings.Split(rest, ":")[8]
		for _, args := range [][]string{
			{"--faked-system-time", "20200102T000000!", "--quick-set-expire", fingerprint, "20210101T000000"},
			{"--armor", "--output", file, "--export", p.email},
			{"--quick-set-expire", fingerprint, "20y"},
		} {
			if _, err := gpg(args...); err != nil {
				return err
			}
		}
		return nil
	}))
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return p, string(content)
}

var gpgKeys onceEach

// Sign writes a binary detached signature next to a file.
func (p *Publisher) Sign(t *testing.T, path string) {
	t.Helper()
	if _, err := gpg("--local-user", p.email, "--output", path+".sig", "--detach-sign", path); err != nil {
		t.Fatal(err)
	}
}

// PublicKey returns the publisher's public key in ASCII armor.
func (p *Publisher) PublicKey(t *testing.T) string {
	t.Helper()
	armor, err := gpg("--armor", "--export", p.email)
	if err != nil {
		t.Fatal(err)
	}
	return armor
}

// KeyID returns the long ID of the publisher's key, which clients print.
func (p *Publisher) KeyID(t *testing.T) string {
	t.Helper()
	listing, err := gpg("--with-colons", "--list-keys", p.email)
	if err != nil {
		t.Fatal(err)
	}
	return keyID(t, listing)
}

// keyID returns the long ID of the first key that gpg lists.
func keyID(t *testing.T, listing string) string {
	t.Helper()
	for line := range strings.Lines(listing) {
		if fields := strings.Split(line, ":"); fields[0] == "pub" {
			return fields[4]
		}
	}
	t.Fatalf("gpg lists no key:\n%s", listing)
	return ""
}

func gpgHome() string { return filepath.Join(runDir, "gpg") }

// gpgLock serialises gpg processes, which share a keyring and an agent.
var gpgLock sync.Mutex

func gpg(args ...string) (string, error) {
	gpgLock.Lock()
	defer gpgLock.Unlock()
	cmd := exec.Command("gpg", append([]string{"--homedir", gpgHome(), "--batch", "--yes", "--quiet"}, args...)...)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%v: %w\n%s", cmd.Args, err, exit.Stderr)
	}
	return string(out), err
}

// stopGPGAgent stops the agent for gpgHome, if gpg has started one.
func stopGPGAgent() {
	if _, err := os.Stat(gpgHome()); err == nil {
		_ = exec.Command("gpgconf", "--homedir", gpgHome(), "--kill", "gpg-agent").Run()
	}
}
