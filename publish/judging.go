package publish

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/cache"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// scan has the index judge a release as if it were in the tree. It returns the digests that
// the index has.
func (p *Publisher) scan(ctx context.Context, files tree.Tree, s stage, c *staged) (*index.Digests, error) {
	digests := new(index.Digests)
	if x := p.options.Index(); x != nil {
		digests = x.Digests()
	}
	p.remember(ctx, s, c, digests)
	providers := s.part
	providers.Dir = path.Join(providers.Dir, s.in(releaseFolder))
	var failures failures
	staged := files.Staged(failures.of(providers, func(string) bool { return true }))
	staged.Keys = failures.of(staged.Keys, func(name string) bool { return p.concernsKeys(name, s.address.Namespace) })
	snapshot, err := index.Scan(ctx, index.Options{
		Open:              func() (tree.Tree, error) { return staged, nil },
		RequireSignatures: p.options.RequireSignatures,
		IgnoreMetadata:    true,
		Digests:           digests,
		Now:               p.options.Now,
	})
	switch failed := failures.first(); {
	case failed != nil: // whatever the scan made of it
		return nil, tree.StorageError(failed)
	case err != nil:
		return nil, p.unavailable("checking "+s.name(), err)
	case snapshot.Report.Pending > 0:
		return nil, p.unavailable("checking "+s.name(), tree.ErrStore) // not all packages could be read
	}
	var reasons []string
	for _, problem := range snapshot.Report.Withheld {
		if problem.Version != s.version {
			continue // of the namespace's keys file, say
		}
		name := path.Base(problem.Path)
		if _, staged := c.files[name]; staged {
			s.part.Fs.Remove(path.Join(s.part.Dir, s.release(name)))
		}
		reasons = append(reasons, fmt.Sprintf("%s: %s", name, problem.Detail))
	}
	if snapshot.Provider(s.address).Release(s.version) == nil && len(reasons) == 0 {
		reasons = append(reasons, "the registry would not offer this release: its operator can tell why by `caddy-terraform-registry check`")
	}
	if len(reasons) > 0 {
		return nil, &Refusal{Kind: ErrRefused, Reasons: reasons}
	}
	return digests, nil
}

// remember has scans know the packages that were checked when they arrived and have
// not been written to since. Their files are renamed no more, only the folder that they
// are in. In a Bucket they become others once more: those that have come through another
// instance are read here, and not again there.
func (p *Publisher) remember(ctx context.Context, s stage, c *staged, digests *index.Digests) {
	for name, info := range c.files {
		if digest, ok := p.checked.Get(checkedAs(c.sums[name], info)); ok {
			digests.AddPackage(info, digest)
		} else if s.part.InBucket() {
			p.checkStaged(ctx, s, name, digests)
		}
	}
}

// checkStaged reads a staged package. What is wrong with it, a scan finds out.
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
	digest, err := index.CheckPackage(ctx, content, info.Size(), s.address.Name, f.platform, wire.SHA256{})
	if err != nil {
		return
	}
	digests.AddPackage(info, digest)
	p.checked.Put(checkedAs(digest.SHA256, info), digest, cache.UntilEvicted)
}

// rememberCopied has scans know the same packages where they have been copied to, which is
// so in a Bucket.
func (p *Publisher) rememberCopied(c *staged, copied map[string]fs.FileInfo, digests *index.Digests) {
	for name, info := range copied {
		staged := c.files[name]
		if staged == nil || staged.Size() != info.Size() {
			continue
		}
		if digest, ok := p.checked.Get(checkedAs(c.sums[name], staged)); ok {
			digests.AddPackage(info, digest)
		}
	}
}

// failures are the files that could not be read on a disk while a release was judged. From
// such a failure a scan concludes that a file is damaged, or that there are no keys. A
// release must be neither refused nor taken for that. In a Bucket the scan itself fails.
type failures struct {
	mutex sync.Mutex
	err   error
}

func (f *failures) first() error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.err
}

// note keeps an error, unless it is an answer about a file and no failure to have one.
func (f *failures) note(err error) {
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, fs.ErrNotExist) {
		return
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.err == nil {
		f.err = err
	}
}

// of returns a part with the same files. Failures count for the paths in it that concern
// the release.
func (f *failures) of(part tree.Part, concerns func(name string) bool) tree.Part {
	if !part.InBucket() {
		part.Fs = witnessedFs{part.Fs, f, func(name string) bool {
			return concerns(strings.TrimPrefix(strings.TrimPrefix(name, part.Dir), "/"))
		}}
	}
	return part
}

// concernsKeys reports whether a path in the tree's keys leads to the keys of a hosted
// namespace, or may be their file.
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

// A witnessedFs notes what of its files cannot be read.
type witnessedFs struct {
	afero.Fs
	failures *failures
	concerns func(name string) bool
}

func (w witnessedFs) note(name string, err error) {
	if err != nil && w.concerns(name) {
		w.failures.note(err)
	}
}

func (w witnessedFs) Open(name string) (afero.File, error) {
	f, err := w.Fs.Open(name)
	if err != nil {
		w.note(name, err)
		return nil, err
	}
	return witnessedFile{f, w, name}, nil
}

func (w witnessedFs) Stat(name string) (os.FileInfo, error) {
	info, err := w.Fs.Stat(name)
	w.note(name, err)
	return info, err
}

// A witnessedFile is an open file of a witnessedFs.
type witnessedFile struct {
	afero.File
	in   witnessedFs
	name string
}

func (f witnessedFile) Read(p []byte) (int, error) {
	n, err := f.File.Read(p)
	f.in.note(f.name, err)
	return n, err
}

func (f witnessedFile) ReadAt(p []byte, offset int64) (int, error) {
	n, err := f.File.ReadAt(p, offset)
	f.in.note(f.name, err)
	return n, err
}

func (f witnessedFile) Readdir(count int) ([]os.FileInfo, error) {
	infos, err := f.File.Readdir(count)
	f.in.note(f.name, err)
	return infos, err
}

func (f witnessedFile) Stat() (os.FileInfo, error) {
	info, err := f.File.Stat()
	f.in.note(f.name, err)
	return info, err
}
