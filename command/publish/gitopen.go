package publish

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/git"
)

// gitSchemes are the allowed transports. Others, such as ext::, run a command that the URL
// names.
var gitSchemes = []string{"https", "http", "ssh", "git", "file"}

// openGit opens the repository that a user names by a folder or a URL. A folder is read in
// place. For a URL, an empty repository is made in scratch.
func openGit(ctx context.Context, named, scratch string) (*git.Repository, error) {
	if !git.Available() {
		return nil, errors.New("--from-git needs the git command: install git")
	}
	if strings.HasPrefix(named, "-") {
		return nil, fmt.Errorf("--from-git: %q would be an option of git: write ./%[1]s if it is a folder", named)
	}
	if info, err := os.Stat(named); err == nil && info.IsDir() {
		return git.Open(ctx, named)
	}
	if !isGitURL(named) {
		return nil, fmt.Errorf("--from-git: there is no folder %s, and it is not a URL such as https://example.com/acme/modules.git or git@example.com:acme/modules.git", cli.Printable(named))
	}
	return git.Connect(ctx, named, filepath.Join(scratch, "repository"))
}

// isGitURL reports whether git takes the text for a URL with one of gitSchemes, or for the
// short form of SSH.
func isGitURL(s string) bool {
	if scheme, _, found := strings.Cut(s, "://"); found {
		return slices.Contains(gitSchemes, scheme)
	}
	host, path, found := strings.Cut(s, ":")
	return found && len(host) > 1 && !strings.Contains(host, "/") && !strings.HasPrefix(path, ":")
}
