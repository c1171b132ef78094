package publish

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/cache"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// scan has the index judge a release as if it were in the tree. It returns the digests
// that the index has.
func (p *Publisher) scan(ctx context.Context, files tree.Tree, c *staged) (*index.Digests, error) {
	digests := new(index.Digests)
	if x := p.options.Index(); x != nil {
		digests = x.Digests()
	}
	p.remember(ctx, c, digests)
	var failures failures
	staged := files.Staged(c.part.Sub(c.path(releaseFolder)).Observed(func(_ string, err error) { failures.note(err) }))
	staged.Keys = staged.Keys.Observed(func(name string, err error) {
		if p.concernsKeys(name, c.address.Namespace) {
			failures.note(err)
		}
	})
	snapshot, err := index.Scan(ctx, index.Options{
		Open:              func() (tree.Tree, error) { return staged, nil },
		RequireSignatures: p.options.RequireSignatures,
		IgnoreMetadata:    true,
		Digests:           digests,
		Now:               p.options.Now,
	})
	switch failed := failures.first(); {
	case failed != nil: // the result of the scan does not count
		return nil, tree.StorageError(failed)
	case err != nil:
		return nil, p.unavailable("checking "+c.name(), err)
	case snapshot.Totals.Pending > 0:
		return nil, p.unavailable("checking "+c.name(), tree.ErrStore) // some packages could not be read
	}
	problems := slices.DeleteFunc(slices.Clone(snapshot.Report().Withheld), func(problem index.Problem) bool {
		return problem.Version != c.version // of the namespace's keys file, for example
	})
	if i := slices.IndexFunc(problems, func(problem index.Problem) bool { return problem.Reason == tree.Unreadable }); i >= 0 {
		// Without an error of the disk: a listed file was not found, as on NFS, and is not at fault.
		return nil, p.unavailable("checking "+c.name(), fmt.Errorf("%s: %s", problems[i].Path, problems[i].Detail))
	}
	var reasons []string
	for _, problem := range problems {
		name := path.Base(problem.Path)
		if _, staged := c.files[name]; staged {
			c.part.Remove(c.release(name))
		}
		reasons = append(reasons, fmt.Sprintf("%s: %s", name, problem.Detail))
	}
	if snapshot.Provider(index.PlaceOf(c.address)).Release(c.version) == nil && len(reasons) == 0 {
		reasons = append(reasons, "the registry would not offer this release: its operator can tell why by `caddy-terraform-registry check`")
	}
	if len(reasons) > 0 {
		return nil, &Refusal{Kind: ErrRefused, Reasons: reasons}
	}
	return digests, nil
}

// remember passes the digests of packages to later scans, if the packages were checked
// when they arrived and have not been written to since. Packages that came through another
// instance are read here, so that their copies in the tree need not be read.
func (p *Publisher) remember(ctx context.Context, c *staged, digests *index.Digests) {
	for name, info := range c.files {
		if digest, ok := p.checked.Get(checkedAs(c.sums[name], info)); ok {
			digests.Add(info, digest)
		} else {
			p.checkStaged(ctx, c.stage, name, digests)
		}
	}
}

// checkStaged reads a staged package. It reports no error, since a scan reports it.
func (p *Publisher) checkStaged(ctx context.Context, s stage, name string, digests *index.Digests) {
	f, err := ParseReleaseFile(s.address, s.version, name)
	if err != nil || f.Kind != Package {
		return
	}
	content, info, err := s.part.Open(s.release(name))
	if err != nil {
		return
	}
	defer content.Close()
	digest, err := archive.CheckPackage(ctx, content, info.Size(), s.address.Name, f.Platform, wire.SHA256{})
	if err != nil {
		return
	}
	digests.Add(info, digest)
	p.checked.Put(checkedAs(digest.SHA256, info), digest, cache.UntilEvicted)
}

// rememberCopied passes the digests of packages to later scans, if the packages were
// copied into the tree.
func (p *Publisher) rememberCopied(c *staged, copied map[string]fs.FileInfo, digests *index.Digests) {
	for name, info := range copied {
		staged := c.files[name]
		if staged == nil || staged.Size() != info.Size() {
			continue
		}
		if digest, ok := p.checked.Get(checkedAs(c.sums[name], staged)); ok {
			digests.Add(info, digest)
		}
	}
}

// failures are errors of a disk while a release is judged. The report of such a scan
// may say that a file is damaged, or that there are no keys. A release must neither be
// refused for that nor published.
type failures struct {
	mutex sync.Mutex
	err   error
}

func (f *failures) first() error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.err
}

// note keeps an error, unless the error is a property of the file itself.
func (f *failures) note(err error) {
	if errors.Is(err, io.EOF) || errors.Is(err, fs.ErrNotExist) {
		return
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.err == nil {
		f.err = err
	}
}

// concernsKeys reports whether a path in the tree's keys leads to the keys of a hosted
// namespace, or may be the file with its keys.
func (p *Publisher) concernsKeys(name, namespace string) bool {
	folder := name
	if stem, isFile := strings.CutSuffix(path.Base(name), ".asc"); isFile {
		if parsed, err := address.ParseNamespace(stem); err != nil || parsed != namespace {
			return false
		}
		folder = strings.TrimPrefix(path.Dir(name), ".")
	}
	hostname, err := address.ParseHostname(folder)
	return folder == "" || err == nil && slices.Contains(p.options.Hostnames, hostname)
}
