package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	svchost "github.com/hashicorp/terraform-svchost"
	"golang.org/x/mod/semver"

	"github.com/caddy-terraform/caddy-terraform-registry/clientconfig"
	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
)

// A credentialsHelper is run for tokens.
type credentialsHelper clientconfig.Helper

// pluginFolders are the folders in which clients look for helpers, in their order.
func pluginFolders(system string, getenv func(string) string) (dirs []string) {
	add := func(dir, name string) {
		if dir != "" {
			plugins := filepath.Join(dir, name, "plugins")
			dirs = append(dirs, plugins, filepath.Join(plugins, runtime.GOOS+"_"+runtime.GOARCH))
		}
	}
	if system == "windows" {
		add(getenv("APPDATA"), "terraform.d")
		return dirs
	}
	add(getenv("HOME"), ".terraform.d")
	add(getenv("XDG_DATA_HOME"), "opentofu")
	return dirs
}

// program returns the path of the helper. Its newest version counts, and of two programs with
// that version the one in the earlier folder. The path is empty if there is no program: clients
// have no token then.
func (h credentialsHelper) program(dirs []string) (path string, err error) {
	newest := ""
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		for _, e := range entries {
			name, ours := strings.CutPrefix(strings.TrimSuffix(strings.ToLower(e.Name()), ".exe"), "terraform-credentials-")
			name, version, _ := strings.Cut(name, "_v")
			if version = "v" + cmp.Or(version, "0.0.0"); !ours || name != h.Name || path != "" && semver.Compare(version, newest) <= 0 {
				continue
			}
			file := filepath.Join(dir, e.Name())
			switch info, err := os.Stat(file); {
			case errors.Is(err, fs.ErrNotExist): // a link to nothing
			case err != nil:
				return "", err
			case info.Mode().IsRegular():
				path, newest = file, version
			}
		}
	}
	if path == "" {
		return "", nil
	}
	return filepath.Abs(path)
}

// helperTimeout is for an answer of a helper. It may ask its user for a password.
const helperTimeout = time.Minute

// token asks the helper for the token of a host. It is empty if the helper knows none.
func (h credentialsHelper) token(ctx context.Context, hostname svchost.Hostname, dirs []string) (string, error) {
	path, err := h.program(dirs)
	if path == "" || err != nil {
		return "", err
	}
	failed := func(format string, args ...any) (string, error) {
		return "", fmt.Errorf("the credentials helper %s, asked for a token of %s, %s", cli.Printable(h.Name), hostname.ForDisplay(), fmt.Sprintf(format, args...))
	}
	limited, cancel := context.WithTimeout(ctx, helperTimeout)
	defer cancel()
	cmd := exec.CommandContext(limited, path, append(slices.Clip(h.Args), "get", string(hostname))...)
	cmd.WaitDelay = time.Second // its children may keep its output open
	out, errs := &bounded{max: MaxToken}, &bounded{max: 500}
	cmd.Stdout, cmd.Stderr = out, errs
	switch err := cmd.Run(); {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case limited.Err() != nil:
		return failed("gave no answer within %v", helperTimeout)
	case err != nil:
		return failed("failed: %s", cmp.Or(cli.Printable(strings.TrimSpace(string(errs.kept))), err.Error()))
	case out.more:
		return failed("answered with more than %d bytes", MaxToken)
	}
	var answer struct {
		Token string `json:"token"`
	}
	if err := json.Unmarshal(out.kept, &answer); err != nil {
		return failed("answered with something that is not a JSON object with a token")
	}
	return answer.Token, nil
}

// A bounded buffer keeps the beginning of what is written. It has no other methods of a buffer:
// by ReadFrom, it would be filled past the bound.
type bounded struct {
	kept []byte
	max  int
	more bool // there was more
}

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	room := min(len(p), b.max-len(b.kept))
	b.more = b.more || room < len(p)
	b.kept = append(b.kept, p[:room]...)
	return len(p), nil
}
