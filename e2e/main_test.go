// Package e2e_test tests the registry with real components: the custom Caddy
// binary with real TLS, real Terraform and OpenTofu, a real provider, and real
// OpenPGP signatures by gpg. It imports nothing of the registry itself.
//
// The clients are OpenTofu, built from its pinned Go module, and every
// terraform on PATH. If a test lacks a requirement, it is skipped on a
// developer's machine and fails if CI is set. Numbers in names and comments, as
// in "#53", are the numbers of the checklist in docs/clients.md.
package e2e_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// runDir contains what all tests of one run share: binaries, keys, packages.
// Its path is short because it also contains sockets, whose paths may have at
// most about a hundred bytes.
var runDir string

func TestMain(m *testing.M) {
	// A test waits for processes and timers as long as it computes. -parallel replaces this.
	err := flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0)))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if runDir, err = os.MkdirTemp("", "e2e"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	stopBrowser()
	stopGPGAgent()
	if err := os.RemoveAll(runDir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// caddyBinary builds the custom Caddy, once per run. E2E_CADDY names a binary
// to test instead, such as one about to be released.
var caddyBinary = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("E2E_CADDY"); path != "" {
		return path, nil
	}
	path := filepath.Join(runDir, executable("caddy"))
	return path, goBuild(repository(), path, "./xcaddy", nil, "-tags", caddyTags)
})

// caddyTags are the build tags of Caddy's releases: they leave out databases of
// its certificate authority.
const caddyTags = "nobadger,nomysql,nopgx"

// buildProvider builds the sample provider as the given type, once per run for each
// type and build. The build appears in its greetings, and is usually the version of the
// release. testdata/serve and GoReleaser in docs/publish.md use the same flags, so that
// all of them share Go's build cache.
func buildProvider(t *testing.T, providerType, build string) string {
	t.Helper()
	path := filepath.Join(runDir, "providers", providerType, build, executable("provider"))
	err := providerBuilds.once(path, func() error {
		return goBuild(filepath.Join(repository(), "testdata", "provider"), path, ".",
			[]string{"CGO_ENABLED=0"}, "-trimpath", "-ldflags", "-s -w -X main.typeName="+providerType+" -X main.version="+build)
	})
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var providerBuilds onceEach

// compiling is the environment of Go's compiler and linker. They end before there is much garbage,
// and would spend a sixth of their time on collecting it.
var compiling = []string{"GOGC=off", "GOMEMLIMIT=2GiB"}

// goBuild compiles a package of the module in dir, with additional environment
// variables.
func goBuild(dir, output, pkg string, env []string, flags ...string) error {
	if err := errors.Join(dependOn(dir), os.MkdirAll(filepath.Dir(output), 0o755)); err != nil {
		return err
	}
	cmd := exec.Command("go", append(append([]string{"build", "-o", output}, flags...), pkg)...)
	cmd.Dir, cmd.Env = dir, slices.Concat(os.Environ(), compiling, env)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%v in %s: %w\n%s", cmd.Args, dir, err, out)
	}
	return nil
}

// dependOn lists all folders in dir. Go keeps the results of tests until a folder that they have
// listed changes, and does not know of the files that a program is built from.
func dependOn(dir string) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if e != nil && e.IsDir() && e.Name() == ".git" {
			return fs.SkipDir
		}
		return err
	})
}

// goTool builds the tool of the module in dir and returns the executable, which stays in
// Go's build cache: linking OpenTofu for each run would take longer than many tests.
func goTool(dir string) (string, error) {
	for range 2 {
		cmd := exec.Command("go", "run", "-exec", "echo", "tool") // go tool would ignore the GOFLAGS of .ci/run
		cmd.Dir, cmd.Env = dir, append(os.Environ(), compiling...)
		out, err := cmd.Output()
		if err != nil {
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				err = fmt.Errorf("%w\n%s", err, exit.Stderr)
			}
			return "", fmt.Errorf("%v in %s: %w", cmd.Args, dir, err)
		}
		// If go has linked the executable, this is a copy that it has removed again.
		path := strings.TrimSpace(string(out))
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			return path, err
		}
	}
	return "", fmt.Errorf("go keeps no executable of the tool in %s", dir)
}

// repository returns the root of the checkout.
func repository() string {
	dir, err := filepath.Abs("..")
	if err != nil {
		panic(err)
	}
	return dir
}

// require fails the test in CI, and skips it elsewhere, if err says that a requirement
// of the test is missing.
func require(t *testing.T, err error) {
	t.Helper()
	switch {
	case err == nil:
	case os.Getenv("CI") != "":
		t.Fatalf("missing in CI: %v", err)
	default:
		t.Skipf("not run, because this is missing: %v", err)
	}
}

// beforeDeadline returns a context for processes that ends shortly before the
// timeout of the test binary, which would leave them behind.
func beforeDeadline(t *testing.T) context.Context {
	deadline, ok := t.Deadline()
	if !ok {
		deadline = time.Now().Add(time.Hour)
	}
	ctx, cancel := context.WithDeadline(context.Background(), deadline.Add(-10*time.Second))
	t.Cleanup(cancel)
	return ctx
}

// onceEach runs a function once for each key, and remembers the result.
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
