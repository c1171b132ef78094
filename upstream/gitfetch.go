package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strconv"

	"github.com/caddy-terraform/caddy-terraform-registry/upstream/git"
)

// A gitFetch fetches one module from git.
type gitFetch struct {
	client  *Client
	relay   *gitRelay
	scratch string // folder for git's files, removed with the fetch
	fetched []*git.Repository
}

// fetchGit writes the files of a module from a git repository to an empty folder, and
// returns their commit. See FetchModule.
func (c *Client) fetchGit(ctx context.Context, s ModuleSource, into string) (commit string, err error) {
	// After a crash, the scratch folder is removed together with the files of the
	// module.
	scratch, err := os.MkdirTemp(into, ".git-*")
	if err != nil {
		return "", fmt.Errorf("fetching a module: %w", err)
	}
	defer func() {
		if failed := os.RemoveAll(scratch); failed != nil && err == nil { // it is not part of the module
			commit, err = "", fmt.Errorf("fetching a module: %w", failed)
		}
	}()
	ctx, cancel := context.WithTimeoutCause(ctx, maxGitTime, errTimeout)
	relay, err := c.newGitRelay(ctx)
	if err != nil {
		cancel()
		return "", fmt.Errorf("fetching a module: %w", err)
	}
	f := &gitFetch{client: c, relay: relay, scratch: scratch}
	defer f.close()
	defer cancel() // before the relay waits for its connections

	root, err := f.commit(ctx, s)
	if err != nil {
		return "", err
	}
	p := newGitPackage(f, root, s.Folder)
	if err := p.collect(ctx); err != nil {
		return "", err
	}
	return root.id, p.write(ctx, into)
}

func (f *gitFetch) close() {
	for _, r := range f.fetched {
		r.Close()
	}
	f.relay.close()
}

// commit fetches the commit of a source, with the names of its files.
func (f *gitFetch) commit(ctx context.Context, s ModuleSource) (*gitCommit, error) {
	at, number := f.relay.add(s.location())
	from := git.Source{URL: at, Name: s.URL.Host, Ref: s.Ref, Header: f.relay.header()}
	repository, id, err := git.Fetch(ctx, from, filepath.Join(f.scratch, strconv.Itoa(len(f.fetched))))
	if err != nil {
		return nil, f.failure(ctx, s.URL, err)
	}
	f.fetched = append(f.fetched, repository)
	submodules, err := repository.Submodules(ctx, id, maxGitmodules)
	if err != nil {
		return nil, f.failure(ctx, s.URL, err)
	}
	return &gitCommit{repository: repository, id: id, url: s.URL, number: number, submodules: submodules}, nil
}

// failure returns the failure to fetch something from a repository. It leaves out git's
// own messages, which may contain paths and URLs of this machine.
func (f *gitFetch) failure(ctx context.Context, u *url.URL, err error) error {
	if ctx.Err() != nil {
		return transportFailure(ctx, u, err)
	}
	if failed := f.relay.failure(); failed != nil {
		return brokenLink(failed, "repository")
	}
	_, known := errors.AsType[*Failure](err)
	_, isGit := errors.AsType[*git.CommandError](err)
	_, isDamaged := errors.AsType[*git.DamagedError](err)
	switch {
	case known:
		return err
	case errors.Is(err, git.ErrNoCommit):
		return fail(u, ErrMalformed, "the origin links to a tag, branch or commit that is not in the repository")
	case isGit, isDamaged, errors.Is(err, io.ErrUnexpectedEOF):
		return &Failure{Host: u.Host, Kind: ErrMalformed, Detail: "git cannot read the repository", Cause: err}
	}
	return fmt.Errorf("fetching a module: %w", err)
}
