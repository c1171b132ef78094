package upstream

import (
	"fmt"
	"slices"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// CheckRelease refuses the package of a platform that is not the one that was
// locked, before it comes in. A lock file from a registry has the sha256 of all
// packages of the release, so one it does not have is of another release.
// Without any, CheckPackage tells.
func (l Locked) CheckRelease(r *Release, platform address.Platform) error {
	p, ok := r.Package(platform)
	if !ok || p.SHA256 == (wire.SHA256{}) {
		return nil
	}
	locked := l.of("zh:")
	if len(locked) == 0 || slices.Contains(locked, zh(p.SHA256)) {
		return nil
	}
	if slices.ContainsFunc(r.Packages, func(other Package) bool { return slices.Contains(locked, zh(other.SHA256)) }) {
		return l.forOthers(platform)
	}
	return fmt.Errorf("it is not the release that was locked at %s: somebody has replaced it since, find out why before you use it", l.From)
}

// CheckPackage refuses a package that has come in, by its sha256 and the hashes
// of its files, and is not the one that was locked, where CheckRelease could not
// tell.
func (l Locked) CheckPackage(sum wire.SHA256, h1 []string, platform address.Platform) error {
	if locked := l.of("zh:"); len(locked) > 0 {
		if !slices.Contains(locked, zh(sum)) {
			return l.other(platform)
		}
		return nil
	}
	locked := l.of("h1:")
	if len(locked) == 0 {
		return nil // there is nothing to go by
	}
	if !slices.ContainsFunc(h1, func(h1 string) bool { return slices.Contains(locked, h1) }) {
		return l.other(platform)
	}
	return nil
}

// of are the hashes of a scheme.
func (l Locked) of(scheme string) (hashes []string) {
	for _, hash := range l.Hashes {
		if strings.HasPrefix(hash, scheme) {
			hashes = append(hashes, hash)
		}
	}
	return hashes
}

func zh(sum wire.SHA256) string { return "zh:" + sum.String() }

// forOthers: clients of that platform would refuse the package.
func (l Locked) forOthers(platform address.Platform) error {
	return fmt.Errorf("it is locked at %s for other platforms than %s: add that one with the client's `providers lock -platform=%[2]s`", l.From, platform)
}

// other is a package that either was replaced, or was never locked.
func (l Locked) other(platform address.Platform) error {
	return fmt.Errorf("the hashes at %s are not those of the package for %s: the release was replaced, or never locked for that platform (`providers lock -platform=%[2]s` of the client adds it)", l.From, platform)
}
