//go:build unix

package e2e_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// The first steps in the README work as they are written.

// readme returns the code blocks of the README in a language.
func readme(t *testing.T, language string) []string {
	t.Helper()
	return codeBlocks(t, "README.md", language)
}

func TestReadmeFirstCommand(t *testing.T) {
	blocks := readme(t, "sh")
	i := slices.IndexFunc(blocks, func(block string) bool { return strings.HasPrefix(block, "go run ./testdata/serve") })
	if i < 0 {
		t.Fatal("the README does not say how to serve the sample tree")
	}
	command := strings.TrimSpace(blocks[i])
	_, port := freePorts(t)
	home := t.TempDir()
	cmd := exec.Command("sh", "-c", command+` --listen "$0"`, "127.0.0.1:"+port)
	cmd.Dir = repository()
	// Use the build cache of the other tests, which saves minutes.
	cmd.Env = append(os.Environ(),
		"GOCACHE="+goEnv(t, "GOCACHE"), "GOMODCACHE="+goEnv(t, "GOMODCACHE"), "GOPATH="+goEnv(t, "GOPATH"),
		"HOME="+home, "XDG_DATA_HOME="+filepath.Join(home, "data"), "XDG_CONFIG_HOME="+filepath.Join(home, "config"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // go run does not forward signals
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-ended
	})

	printed := make(chan string, 1)
	go func() {
		printed <- readUntil(stdout, "module \"naming\"", "}")
		io.Copy(io.Discard, stdout)
		cmd.Wait()
		close(ended)
	}()
	var out string
	select {
	case out = <-printed:
	case <-beforeDeadline(t).Done():
	}
	// Slow steps are announced, and Caddy's log is elsewhere.
	if !strings.HasPrefix(out, "Building Caddy with the registry.") || strings.Contains(out, `{"level"`) || strings.Contains(stderr.String(), `{"level"`) {
		t.Errorf("it printed:\n%s\n%s", out, stderr.String())
	}
	expect(t, out, "Caddy's log is "+filepath.Join("testdata", "serve", "caddy.log"))
	authority := regexp.MustCompile(`export SSL_CERT_FILE=(\S+)`).FindStringSubmatch(out)
	if authority == nil {
		t.Fatalf("it printed:\n%s\n%s", out, stderr.String())
	}

	if got := negotiated(t, endpoint{"tcp", "127.0.0.1:" + port}, "127.0.0.1", "h2", "http/1.1").NegotiatedProtocol; got != "http/1.1" {
		t.Errorf("a client that prefers HTTP/2 gets %q, want http/1.1", got)
	}

	configuration, err := os.ReadFile(filepath.Join(repository(), "testdata", "configuration", "main.tf"))
	if err != nil {
		t.Fatal(err)
	}
	// Loopback addresses are requested without a proxy.
	machine := &Registry{CA: authority[1], Proxy: newProxy(t)}
	eachClient(t, func(t *testing.T, c Client) {
		ws := newWorkspace(t, machine, strings.ReplaceAll(string(configuration), "127.0.0.1:8443", "127.0.0.1:"+port))
		c.Run(t, ws, "init")
		expect(t, c.Run(t, ws, "apply", "-auto-approve"), `greeting = "hello acme-shop from 1.0.0"`)

		// The printed configuration can be installed, planned and applied as it
		// is.
		_, pasted, found := strings.Cut(out, "As a registry, in a configuration:\n\n")
		if !found {
			t.Fatalf("it printed:\n%s", out)
		}
		ws = newWorkspace(t, machine, pasted)
		c.Run(t, ws, "init")
		c.Run(t, ws, "plan")
		expect(t, c.Run(t, ws, "apply", "-auto-approve"), "Apply complete!")
	})
}
