// Package e2e_test proves the registry with real parts: the custom Caddy
// binary with real TLS, real Terraform and OpenTofu, a real provider, real
// OpenPGP signatures by gpg. Nothing is imported from the registry itself.
//
// The clients are OpenTofu, built from its pinned Go module, and every
// terraform on PATH. What is missing is skipped on a developer's machine and
// fails when CI is set. Numbers in names and comments, as in "#53", are those
// of the conformance checklist of what clients expect.
package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// runDir holds what all tests of one run share: binaries, keys, packages.
// Its path is short since sockets live under it too, and those have paths of
// a hundred bytes at most.
var runDir string

func TestMain(m *testing.M) {
	var err error
	if runDir, err = os.MkdirTemp("", "e2e"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	stopGPGAgent()
	if err := os.RemoveAll(runDir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// caddyBinary builds the custom Caddy, once a run. E2E_CADDY names a binary
// to test in its place, such as one about to be released.
var caddyBinary = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("E2E_CADDY"); path != "" {
		return path, nil
	}
	path := filepath.Join(runDir, executable("caddy"))
	return path, goBuild(repository(), path, "./xcaddy", "-tags", caddyTags)
})

// caddyTags are those that Caddy is released with: they leave out databases
// of its certificate authority.
const caddyTags = "nobadger,nomysql,nopgx"

// buildProvider builds the sample provider as the given type, once a run for
// each type and build. The build is what its greetings call themselves:
// usually the version it is released as.
func buildProvider(t *testing.T, providerType, build string) string {
	t.Helper()
	path := filepath.Join(runDir, "providers", providerType, build, executable("provider"))
	err := providerBuilds.once(path, func() error {
		return goBuild(filepath.Join(repository(), "testdata", "provider"), path, ".",
			"-ldflags", "-s -w -X main.typeName="+providerType+" -X main.version="+build)
	})
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var providerBuilds onceEach

// goBuild compiles a package of the module in dir.
func goBuild(dir, output, pkg string, flags ...string) error {
	if err := os.MkdirAll(filepath.Dir(output), 0o755); err != nil {
		return err
	}
	cmd := exec.Command("go", append(append([]string{"build", "-o", output}, flags...), pkg)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%v in %s: %w\n%s", cmd.Args, dir, err, out)
	}
	return nil
}

// goTool builds a tool of the module in dir and returns the executable, which
// stays in Go's build cache: linking OpenTofu anew for each run takes longer
// than many a test.
func goTool(dir, name string) (string, error) {
	cmd := exec.Command("go", "tool", "-n", name)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w\n%s", err, exit.Stderr)
		}
		return "", fmt.Errorf("%v in %s: %w", cmd.Args, dir, err)
	}
	return string(out[:len(out)-1]), nil
}

// repository is the root of the checkout.
func repository() string {
	dir, err := filepath.Abs("..")
	if err != nil {
		panic(err)
	}
	return dir
}

// require fails the test in CI when err says that something the test needs
// is missing, and skips it elsewhere.
func require(t *testing.T, err error) {
	t.Helper()
	switch {
	case err == nil:
	case os.Getenv("CI") != "":
		t.Fatalf("missing in CI: %v", err)
	default:
		t.Skipf("not run, since this is missing: %v", err)
	}
}

// beforeDeadline is a context for processes: it ends shortly before the test
// binary gives up, which would leave them behind.
func beforeDeadline(t *testing.T) context.Context {
	deadline, ok := t.Deadline()
	if !ok {
		deadline = time.Now().Add(time.Hour)
	}
	ctx, cancel := context.WithDeadline(context.Background(), deadline.Add(-10*time.Second))
	t.Cleanup(cancel)
	return ctx
}

// onceEach does a thing once for each key, and remembers how it went.
type onceEach struct {
	mu   sync.Mutex
	done map[string]func() error
}

func (o *onceEach) once(key string, do func() error) error {
	o.mu.Lock()
	if o.done == nil {
		o.done = map[string]func() error{}
	}
	once, ok := o.done[key]
	if !ok {
		once = sync.OnceValue(do)
		o.done[key] = once
	}
	o.mu.Unlock()
	return once()
}
