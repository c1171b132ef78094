package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/upstream/git"
)

// A gitFetch reads the repository of one module.
type gitFetch struct {
	client  *Client
	source  ModuleSource
	relay   *gitRelay
	scratch string // folder for git's files, removed with the fetch
	fetched []*git.Repository
	asked   *url.URL // the repository that was read last
}

// fetchGit writes the files of a module from a git repository to an empty folder, and
// returns their commit. See FetchModule.
func (c *Client) fetchGit(ctx context.Context, s ModuleSource, into string) (commit string, err error) {
	err = c.withGit(ctx, s, into, maxGitTime, func(ctx context.Context, f *gitFetch) error {
		commit, err = f.write(ctx, s, into)
		return err
	})
	if err != nil {
		return "", err
	}
	return commit, nil
}

// withGit has a function read the repository of a source by git, for at most a time. After a crash,
// git's files are removed together with the folder in which they are.
func (c *Client) withGit(ctx context.Context, s ModuleSource, in string, limit time.Duration, read func(context.Context, *gitFetch) error) (err error) {
	if !git.Available() {
		return fail(s.URL, ErrUnavailable, "the registry has no git: install it on its server")
	}
	scratch, err := os.MkdirTemp(in, ".git-*")
	if err != nil {
		return fmt.Errorf("fetching a module: %w", err)
	}
	defer func() {
		if failed := os.RemoveAll(scratch); failed != nil && err == nil { // it is not part of the module
			err = fmt.Errorf("fetching a module: %w", failed)
		}
	}()
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errTimeout)
	relay, err := c.newGitRelay(ctx)
	if err != nil {
		cancel()
		return fmt.Errorf("fetching a module: %w", err)
	}
	f := &gitFetch{client: c, relay: relay, scratch: scratch, source: s, asked: s.URL}
	defer f.close()
	defer cancel() // before the relay waits for its connections

	if err = read(ctx, f); err != nil {
		return f.failure(ctx, err)
	}
	return nil
}

// write writes the files that a module needs.
func (f *gitFetch) write(ctx context.Context, s ModuleSource, into string) (commit string, err error) {
	root, err := os.OpenRoot(into)
	if err != nil {
		return "", err
	}
	defer root.Close()
	c, err := f.commit(ctx, s)
	if err != nil {
		return "", err
	}
	p := &gitPackage{
		fetch: f, module: s.Folder, into: root, commits: []*gitCommit{c},
		files: make(map[string]bool), added: make(map[*gitCommit][]git.File),
	}
	needed := moduleClosure{ctx: ctx, root: root, lazy: p, paths: make(map[string]bool)}
	folder := cmp.Or(s.Folder, ".")
	if err := needed.collect(folder); err != nil {
		return "", err
	}
	there, err := needed.hasFolder(folder)
	if err == nil && !there {
		err = fail(s.URL, ErrMalformed, "the origin links to the folder %q of a repository, which is not there", s.Folder)
		if s.Tag != "" {
			missing := fail(s.URL, ErrMalformed, "there is no folder %q at its tag %s", s.Folder, s.Tag)
			missing.Cause, err = ErrNoFolder, missing
		}
	}
	return c.id, err
}

// received returns how many bytes have been received for what the module needs.
func (f *gitFetch) received() int64 {
	if f.source.checkout != nil {
		return f.source.checkout.Size + f.relay.received()
	}
	return f.relay.received()
}

func (f *gitFetch) close() {
	for _, r := range f.fetched {
		r.Close()
	}
	f.relay.close()
}

// from returns what git fetches for a source, and its number in the relay.
func (f *gitFetch) from(s ModuleSource) (from git.Source, number int) {
	at, number := f.relay.add(s.location())
	return git.Source{URL: at, Name: s.URL.Host, Ref: s.Ref, From: s.checkout, Header: f.relay.header()}, number
}

// commit fetches the commit of a source, with the names of its files.
func (f *gitFetch) commit(ctx context.Context, s ModuleSource) (*gitCommit, error) {
	from, number := f.from(s)
	f.asked = s.URL
	repository, id, err := git.Fetch(ctx, from, filepath.Join(f.scratch, strconv.Itoa(len(f.fetched))))
	if err != nil {
		return nil, err
	}
	f.fetched = append(f.fetched, repository)
	submodules, err := repository.Submodules(ctx, id, maxGitmodules)
	return &gitCommit{repository: repository, id: id, url: s.URL, number: number, submodules: submodules}, err
}

// GitMessage returns what git has said, or what is wrong with a repository, if that is why the
// error is a Failure. It is for the log: it may contain paths and URLs of this machine.
func GitMessage(err error) string {
	if failed, is := errors.AsType[*git.CommandError](err); is {
		return failed.Error()
	}
	if damaged, is := errors.AsType[*git.DamagedError](err); is {
		return damaged.Error()
	}
	return ""
}

// failure returns the failure of a fetch, or an error of the local disk. Its text leaves out git's own
// messages, see GitMessage.
func (f *gitFetch) failure(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return transportFailure(ctx, f.asked, err)
	}
	_, known := errors.AsType[*Failure](err)
	refused, isRefused := errors.AsType[*refusal](err)
	_, isGit := errors.AsType[*git.CommandError](err)
	_, isErrno := errors.AsType[syscall.Errno](err)
	_, isDamaged := errors.AsType[*git.DamagedError](err)
	failed := f.relay.failure()
	switch {
	case known:
		return err
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("fetching a module: %w", syscall.ENOSPC)
	case errors.Is(err, git.ErrKilled):
		return &Failure{Host: f.asked.Host, Kind: ErrUnavailable, Detail: "git was killed on the server of the registry, which may lack memory", Cause: err}
	case isGit && isErrno, errors.Is(err, git.ErrLocal):
		return fmt.Errorf("fetching a module: %w", err)
	case isRefused:
		return refused.failure(f.asked)
	case failed != nil && f.client.base == nil && IsKind(failed, ErrNotFound):
		return fail(f.asked, ErrMalformed, "there is no such repository")
	case failed != nil:
		return brokenLink(failed, "repository")
	case errors.Is(err, git.ErrNoCommit) && f.source.Tag != "" && f.asked == f.source.URL:
		return fail(f.asked, ErrMalformed, "its tag %s is not of a commit", f.source.Tag)
	case errors.Is(err, git.ErrNoCommit):
		return fail(f.asked, ErrMalformed, "the origin links to a tag, branch or commit that is not in the repository")
	case isGit, isDamaged, errors.Is(err, io.ErrUnexpectedEOF):
		return &Failure{Host: f.asked.Host, Kind: ErrMalformed, Detail: "git cannot read the repository", Cause: err}
	}
	return fmt.Errorf("fetching a module: %w", err)
}
