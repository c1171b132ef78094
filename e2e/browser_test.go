package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/chromedp/chromedp"
)

// The browser is a headless Chromium, driven over the DevTools protocol: the one on
// PATH, or else one that npm has as a package. It runs once for all tests. Each test
// opens tabs that share nothing with the tabs of other tests.

// Chromium is an executable with its environment.
type Chromium struct {
	Path string            `json:"path"`
	Env  map[string]string `json:"env"`
}

// chromiumOnPath returns the Chromium that is installed on this machine. With
// E2E_CHROMIUM=npm, the tests use the one of npm instead.
func chromiumOnPath() (Chromium, bool) {
	if os.Getenv("E2E_CHROMIUM") == "npm" {
		return Chromium{}, false
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return Chromium{Path: path}, true
		}
	}
	return Chromium{}, false
}

// browserPackages installs the packages of npm that the browser tests need, once per
// run: axe-core, and Chromium if the machine has none.
var browserPackages = sync.OnceValues(func() (string, error) {
	var flags []string
	if _, found := chromiumOnPath(); found {
		flags = []string{"--omit=optional"}
	}
	return npmInstall("browser", flags...)
})

// chromiumFromNPM unpacks the Chromium of the npm package, with its libraries and
// fonts.
func chromiumFromNPM() (Chromium, error) {
	packages, err := browserPackages()
	if err != nil {
		return Chromium{}, err
	}
	dir := filepath.Join(runDir, "chromium")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return Chromium{}, err
	}
	cmd := exec.Command("node", "chromium.mjs")
	cmd.Dir = packages
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + dir}
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w\n%s", err, exit.Stderr)
		}
		return Chromium{}, fmt.Errorf("no chromium on PATH, and that of npm cannot be unpacked: %w", err)
	}
	var c Chromium
	err = json.Unmarshal(out, &c)
	return c, err
}

// theBrowser is the context of the browser process, which starts with the first
// test that needs it.
var theBrowser = sync.OnceValues(func() (context.Context, error) {
	chromium, found := chromiumOnPath()
	if !found {
		var err error
		if chromium, err = chromiumFromNPM(); err != nil {
			return nil, err
		}
	}
	return chromium.start()
})

var browserStops []func()

// stopBrowser ends the processes that tests have started, if any.
func stopBrowser() {
	for _, stop := range browserStops {
		stop()
	}
}

// start runs the browser with a profile of its own until stopBrowser.
func (c Chromium) start() (context.Context, error) {
	authority, err := browserAuthority()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(runDir, "browser")
	if err != nil {
		return nil, err
	}
	env := []string{"HOME=" + dir, "TMPDIR=" + dir}
	for name, value := range c.Env {
		env = append(env, name+"="+value)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(c.Path),
		chromedp.Env(env...),
		chromedp.UserDataDir(filepath.Join(dir, "profile")),
		chromedp.WSURLReadTimeout(time.Minute), // on a busy machine
		// It opens only pages of these tests, also as root and in containers, where
		// Chromium's sandbox does not work.
		chromedp.NoSandbox,
		chromedp.DisableGPU,
		chromedp.Flag("hide-scrollbars", true),
		// Certificates are verified, except that this authority is trusted.
		chromedp.Flag("ignore-certificate-errors-spki-list", authority.pin),
		// A click counts as soon as a page is loaded, even before it is painted.
		chromedp.Flag("allow-pre-commit-input", true),
		// Tabs have the network of their test. The browser itself has none.
		chromedp.ProxyServer("http://127.0.0.1:9"),
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-field-trial-config", true),
		chromedp.Flag("disable-features", "Translate,OptimizationHints,MediaRouter,AutofillServerCommunication"),
	)
	allocator, stopAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, stop := chromedp.NewContext(allocator)
	browserStops = append(browserStops, func() {
		stop()
		stopAllocator() // waits for the process
	})
	if err := chromedp.Do(ctx); err != nil {
		return nil, fmt.Errorf("%s does not start: %w", c.Path, err)
	}
	return ctx, nil
}
