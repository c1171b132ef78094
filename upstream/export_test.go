package upstream

import (
	"context"
	"net/netip"
	"net/url"
	"os"
	"time"
)

// Constants for the tests of this package.
const (
	FailuresInARow    = failuresInARow
	BreakerPause      = breakerPause
	MinRate           = minRate
	RateWindow        = rateWindow
	DiscoveryLifetime = discoveryLifetime
	MaxDocuments      = maxDocuments
	MaxChecksums      = maxChecksums
)

func CheckIP(ip netip.Addr) error { return checkIP(ip) }

// LimitPackages replaces MaxPackage.
func LimitPackages(c *Client, bytes int64) { c.maxPackage = bytes }

// LimitModules replaces the limit of a module's archive.
func LimitModules(c *Client, bytes int64) { c.maxModule = bytes }

// LimitRepositories replaces the limit for the bytes received from a repository.
func LimitRepositories(c *Client, bytes int64) { c.maxRepository = bytes }

// LimitRefs replaces the limit of a list of branches and tags.
func LimitRefs(c *Client, bytes int64) { c.maxRefs = bytes }

// LimitUnpacked replaces the limit of a module's files.
func LimitUnpacked(c *Client, bytes int64) { c.maxUnpacked = bytes }

// UnpackModule unpacks an archive as FetchModule does.
func UnpackModule(ctx context.Context, name, format, into string) (commit string, err error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	root, err := os.OpenRoot(into)
	if err != nil {
		return "", err
	}
	defer root.Close()
	u := newUnpacker(root, 1<<20, false)
	if err := u.unpack(ctx, f, info.Size(), format); err != nil {
		return "", err
	}
	return u.commit, checkLinks(ctx, root)
}

// KeepNeeded removes the files that a module in a folder does not need.
func KeepNeeded(ctx context.Context, dir, folder string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return keepNeeded(ctx, root, folder)
}

// CheckLinks checks the links in a folder.
func CheckLinks(ctx context.Context, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return checkLinks(ctx, root)
}

// Named returns a source as if the origin had named it.
func Named(s ModuleSource) ModuleSource {
	s.trust = trusted
	return s
}

// Covers reports whether a URL belongs to one of the repositories.
func Covers(r Repositories, u *url.URL) bool { return r.cover(u) }

func NewPace(patience time.Duration) *pace { return &pace{patience: patience} }

func (p *pace) TooSlow(n int, took time.Duration) bool { return p.tooSlow(n, took) }

func PathsFrom(name string, content []byte) ([]string, error) { return pathsFrom(name, content) }
