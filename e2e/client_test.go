package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Client is a Terraform or OpenTofu executable.
type Client struct {
	Name    string // terraform or tofu
	Path    string
	Version string

	missing error
}

// eachClient runs a test with OpenTofu and with every terraform on PATH.
func eachClient(t *testing.T, test func(t *testing.T, c Client)) {
	t.Helper()
	withClients(t, clients(), test)
}

// eachClientSince013 is eachClient with older clients, for tests of what clients leave on the
// disk.
func eachClientSince013(t *testing.T, test func(t *testing.T, c Client)) {
	t.Helper()
	withClients(t, slices.Concat(clients(), olderTerraforms()), test)
}

func withClients(t *testing.T, clients []Client, test func(t *testing.T, c Client)) {
	t.Helper()
	for _, c := range clients {
		name := c.Name
		if c.Version != "" {
			name += "-" + c.Version
		}
		t.Run(name, func(t *testing.T) {
			require(t, c.missing)
			test(t, c)
		})
	}
}

var clients = sync.OnceValue(func() []Client {
	return append([]Client{openTofu()}, terraforms()...)
})

// openTofu is built from its Go module, at the version that tofu/go.mod pins.
func openTofu() Client {
	path, err := goTool("tofu")
	if err != nil {
		return Client{Name: "tofu", missing: err}
	}
	return askVersion("tofu", path)
}

// olderTerraforms are built from their Go module, at the versions that terraform/VERSION/go.mod
// pins: 0.13 is the first that verify knows, and 1.5 the last before OpenTofu began.
var olderTerraforms = sync.OnceValue(func() (all []Client) {
	for _, version := range []string{"0.13", "1.5"} {
		path, err := goTool(filepath.Join("terraform", version))
		if err != nil {
			all = append(all, Client{Name: "terraform", Version: version, missing: err})
			continue
		}
		all = append(all, askVersion("terraform", path))
	}
	return all
})

// terraforms returns the executables on PATH that are called terraform,
// optionally followed by a version as in terraform-1.5.7 or terraform_0.13.7.
func terraforms() []Client {
	name := regexp.MustCompile(`^terraform([-_]?v?[0-9][0-9A-Za-z.-]*)?(\.exe)?$`)
	var found []Client
	seen := map[string]bool{}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		files, _ := os.ReadDir(dir)
		for _, file := range files {
			if !name.MatchString(file.Name()) {
				continue
			}
			// LookPath checks that it is executable.
			path, err := exec.LookPath(filepath.Join(dir, file.Name()))
			if err != nil {
				continue
			}
			resolved, err := filepath.EvalSymlinks(path)
			if err != nil || seen[resolved] {
				continue
			}
			seen[resolved] = true
			found = append(found, askVersion("terraform", path))
		}
	}
	if len(found) == 0 {
		return []Client{{Name: "terraform", missing: errors.New("no terraform on PATH")}}
	}
	return found
}

func askVersion(name, path string) Client {
	c := Client{Name: name, Path: path}
	cmd := exec.Command(path, "version", "-json")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + runDir, "CHECKPOINT_DISABLE=1"}
	out, err := cmd.Output()
	if err != nil {
		c.missing = fmt.Errorf("%v: %w", cmd.Args, err)
		return c
	}
	var answer struct {
		Version string `json:"terraform_version"`
	}
	if err := json.Unmarshal(out, &answer); err != nil {
		c.missing = fmt.Errorf("%v: %w", cmd.Args, err)
	}
	c.Version = answer.Version
	return c
}

// Run runs a command of the client in a workspace and returns its output. It fails the
// test if the command fails.
func (c Client) Run(t *testing.T, ws *Workspace, args ...string) string {
	t.Helper()
	out, err := c.exec(t, ws, args)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", c.Name, strings.Join(args, " "), err, out)
	}
	return plain(out)
}

// Refused runs a command that must fail, and returns its output.
func (c Client) Refused(t *testing.T, ws *Workspace, args ...string) string {
	t.Helper()
	out, err := c.exec(t, ws, args)
	if err == nil {
		t.Fatalf("%s %s did not fail:\n%s", c.Name, strings.Join(args, " "), out)
	}
	return plain(out)
}

func (c Client) exec(t *testing.T, ws *Workspace, args []string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(beforeDeadline(t), c.Path, args...)
	cmd.Dir = ws.Dir
	cmd.Env = ws.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

var decoration = regexp.MustCompile("\x1b\\[[0-9;]*m|[│╷╵]")

// plain removes colours, frames and line breaks from the messages of clients,
// so that tests can search for a sentence.
func plain(out string) string {
	return strings.Join(strings.Fields(decoration.ReplaceAllString(out, "")), " ")
}

// executable returns a program's file name on this system.
func executable(name string) string {
	if runtime.GOOS == "windows" {
		return name + ".exe"
	}
	return name
}
