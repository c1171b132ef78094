package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/lockfile"
)

// A requirement is a provider that an argument requires.
type requirement struct {
	lockfile.Requirement
	locked *lockfile.Locked // nil: the requirement is not from a lock file
}

// A mirrorRequest is what all arguments together require.
type mirrorRequest struct {
	requirements []requirement
	unresolved   []lockfile.Unresolved
	leftOut      []string // addresses of the registry's own
	skipped      []string // legacy providers of lock files
	unlocked     []unlocked
}

// An unlocked provider is required by a configuration, but its lock file has
// another version of it or none.
type unlocked struct {
	Provider string   `json:"provider"` // with its constraints
	From     []string `json:"from"`     // where the configuration requires it
	Why      string   `json:"why"`

	address address.Address
}

func (u unlocked) String() string {
	return fmt.Sprintf("%s: %s (for %s)", u.Provider, u.Why, strings.Join(u.From, ", "))
}

func readArguments(args []string, tofu bool) (q mirrorRequest, err error) {
	var errs []error
	for _, arg := range args {
		if err := q.read(arg, tofu); err != nil {
			errs = append(errs, err)
		}
	}
	return q, errors.Join(errs...)
}

// read adds the requirements of one argument. A provider whose address is also the
// path of a folder can be given with its hostname.
func (q *mirrorRequest) read(arg string, tofu bool) error {
	info, err := os.Stat(arg)
	switch {
	case errors.Is(err, fs.ErrNotExist) && isPath(arg):
		return noSuchPath(arg)
	case err != nil && isPath(arg):
		return err
	case err != nil:
		return q.readProvider(arg, tofu)
	case info.IsDir():
		return q.readFolder(arg, tofu)
	}
	_, err = q.readLockFile(arg)
	return err
}

// isPath reports whether an argument can only be a path.
func isPath(arg string) bool {
	slashes := filepath.ToSlash(arg)
	return filepath.IsAbs(arg) || slashes == "." || slashes == ".." || strings.HasPrefix(slashes, "./") || strings.HasPrefix(slashes, "../")
}

func (q *mirrorRequest) readProvider(arg string, tofu bool) error {
	r, err := lockfile.ParseRequirement(arg, tofu)
	if err != nil {
		return fmt.Errorf("there is no file or folder %s, and as a provider: %w", printable(arg), err)
	}
	q.requirements = append(q.requirements, requirement{Requirement: r})
	return nil
}

func (q *mirrorRequest) readFolder(dir string, tofu bool) error {
	file := filepath.Join(dir, lockfile.Name)
	if _, err := os.Stat(file); err == nil {
		locks, err := q.readLockFile(file)
		if err != nil {
			return err
		}
		q.unlocked = append(q.unlocked, notLocked(dir, tofu, locks, file)...)
		return nil
	}
	requirements, unresolved, err := lockfile.ReadConfiguration(dir, tofu)
	if err != nil {
		return err
	}
	for _, r := range requirements {
		q.requirements = append(q.requirements, requirement{Requirement: r})
	}
	q.unresolved = append(q.unresolved, unresolved...)
	return nil
}

func (q *mirrorRequest) readLockFile(file string) ([]lockfile.Locked, error) {
	locks, err := readLockFile(file)
	if err != nil {
		return nil, err
	}
	for _, l := range locks {
		if l.Legacy {
			q.skipped = append(q.skipped, fmt.Sprintf("%s (%s)", l.Address, l.From))
			continue
		}
		q.requirements = append(q.requirements, requirement{l.Requirement(), &l})
	}
	return locks, nil
}

// notLocked returns the providers that a configuration requires and its lock file
// lacks, so that init would need more than is mirrored. A lock file does not say
// which client wrote it: if it is complete for one of them, nothing is missing. A
// configuration that cannot be read, for example because the folder has only the
// lock file, requires nothing, nor do modules that are not local.
func notLocked(dir string, tofu bool, locks []lockfile.Locked, file string) []unlocked {
	var missing []unlocked
	for i, asTofu := range []bool{tofu, !tofu} {
		requirements, _, err := lockfile.ReadConfiguration(dir, asTofu)
		if err != nil {
			continue
		}
		found := compare(requirements, locks, file)
		if len(found) == 0 {
			return nil
		}
		if i == 0 {
			missing = found
		}
	}
	return missing
}

func compare(requirements []lockfile.Requirement, locks []lockfile.Locked, file string) (missing []unlocked) {
	for _, r := range requirements {
		i := slices.IndexFunc(locks, func(l lockfile.Locked) bool { return l.Address == r.Address })
		why := "it is not in " + file
		if i >= 0 {
			if _, err := r.Select([]string{locks[i].Version}); err == nil {
				continue
			}
			why = fmt.Sprintf("%s is locked at %s", locks[i].Version, locks[i].From)
		}
		missing = append(missing, unlocked{Provider: r.String(), From: r.From, Why: why, address: r.Address})
	}
	return missing
}

// leaveOut drops the providers of these hostnames.
func (q *mirrorRequest) leaveOut(own []svchost.Hostname) {
	q.unlocked = slices.DeleteFunc(q.unlocked, func(u unlocked) bool {
		return slices.Contains(own, u.address.Hostname)
	})
	q.requirements = slices.DeleteFunc(q.requirements, func(r requirement) bool {
		drop := slices.Contains(own, r.Address.Hostname)
		if text := r.Address.String(); drop && !slices.Contains(q.leftOut, text) {
			q.leftOut = append(q.leftOut, text)
		}
		return drop
	})
}

// hostnames returns the hostnames of all required providers.
func (q *mirrorRequest) hostnames() (all []svchost.Hostname) {
	for _, r := range q.requirements {
		if !slices.Contains(all, r.Address.Hostname) {
			all = append(all, r.Address.Hostname)
		}
	}
	return all
}
