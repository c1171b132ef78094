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
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/upstream/git"
)

// A gitFetch fetches one module from git.
type gitFetch struct {
	client  *Client
	relay   *gitRelay
	ssh     map[string]*gitSSHRelay // by address
	scratch string                  // folder for git's files, removed with the fetch
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
	f := &gitFetch{client: c, relay: relay, ssh: make(map[string]*gitSSHRelay), scratch: scratch}
	defer f.close()
	defer cancel() // before the relays wait for their connections

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
	for _, s := range f.ssh {
		s.close()
	}
}

// commit fetches the commit of a source, with the names of its files.
func (f *gitFetch) commit(ctx context.Context, s ModuleSource) (*gitCommit, error) {
	from, where, err := f.source(ctx, s)
	if err != nil {
		return nil, f.failure(ctx, s.URL, err)
	}
	repository, id, err := git.Fetch(ctx, from, filepath.Join(f.scratch, strconv.Itoa(len(f.fetched))))
	if err != nil {
		return nil, f.failure(ctx, s.URL, err)
	}
	f.fetched = append(f.fetched, repository)
	submodules, err := repository.Submodules(ctx, id, maxGitmodules)
	if err != nil {
		return nil, f.failure(ctx, s.URL, err)
	}
	return &gitCommit{repository: repository, id: id, url: s.URL, where: where, submodules: submodules}, nil
}

// source returns the source from which git fetches a repository. where returns the
// location of the repository, which may change with each request.
func (f *gitFetch) source(ctx context.Context, s ModuleSource) (from git.Source, where func() location, err error) {
	from = git.Source{Name: s.URL.Host, Ref: s.Ref}
	if s.URL.Scheme == "https" {
		var number int
		from.URL, number = f.relay.add(s.location())
		from.Header = f.relay.header()
		return from, func() location { return f.relay.repository(number) }, nil
	}
	h, ok := f.client.credentials(s.location())
	if !ok {
		return from, nil, f.client.mayFetch(s)
	}
	host := sshAddress(s.URL)
	relay := f.ssh[host]
	if relay == nil {
		if relay, err = f.relay.newSSHRelay(ctx, s.URL); err != nil {
			return from, nil, err
		}
		f.ssh[host] = relay
	}
	u := *s.URL
	u.Host = strings.TrimSuffix(u.Host, ":"+u.Port()) // the port is the relay's
	from.URL = u.String()
	from.SSH = &git.SSH{Address: "127.0.0.1", Port: relay.port(), Key: h.SSHKey, KnownHosts: h.KnownHosts, HostKeyAlias: sshAlias(s.URL)}
	return from, s.location, nil
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
