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

// A want is a provider that an argument asks for.
type want struct {
	lockfile.Requirement
	locked *lockfile.Locked // nil: it is not from a lock file
}

// wanted is what all arguments ask for together.
type wanted struct {
	wants      []want
	unresolved []lockfile.Unresolved
	leftOut    []string // addresses of the registry's own
	skipped    []string // legacy providers of lock files
	unlocked   []unlocked
}

// An unlocked provider is one that a configuration needs and its lock file does
// not lock so.
type unlocked struct {
	Provider string   `json:"provider"` // with its constraints
	From     []string `json:"from"`     // of the configuration
	Why      string   `json:"why"`

	address address.Address
}

func (u unlocked) String() string {
	return fmt.Sprintf("%s: %s (for %s)", u.Provider, u.Why, strings.Join(u.From, ", "))
}

func readArguments(args []string, tofu bool) (w wanted, err error) {
	var bad []error
	for _, arg := range args {
		if err := w.read(arg, tofu); err != nil {
			bad = append(bad, err)
		}
	}
	return w, errors.Join(bad...)
}

// read adds what one argument asks for. A provider that has the name of a folder
// here can be given with its hostname.
func (w *wanted) read(arg string, tofu bool) error {
	info, err := os.Stat(arg)
	switch {
	case errors.Is(err, fs.ErrNotExist) && isPath(arg):
		return noSuchPath(arg)
	case err != nil && isPath(arg):
		return err
	case err != nil:
		return w.readProvider(arg, tofu)
	case info.IsDir():
		return w.readFolder(arg, tofu)
	}
	_, err = w.readLockFile(arg)
	return err
}

// noSuchPath is about an argument that is a path which does not exist.
func noSuchPath(arg string) error {
	return fmt.Errorf("there is no file or folder %s", printable(arg))
}

// isPath tells whether an argument cannot be a provider.
func isPath(arg string) bool {
	slashes := filepath.ToSlash(arg)
	return filepath.IsAbs(arg) || slashes == "." || slashes == ".." || strings.HasPrefix(slashes, "./") || strings.HasPrefix(slashes, "../")
}

func (w *wanted) readProvider(arg string, tofu bool) error {
	r, err := lockfile.ParseRequirement(arg, tofu)
	if err != nil {
		return fmt.Errorf("there is no file or folder %s, and as a provider: %w", printable(arg), err)
	}
	w.wants = append(w.wants, want{Requirement: r})
	return nil
}

func (w *wanted) readFolder(dir string, tofu bool) error {
	file := filepath.Join(dir, lockfile.Name)
	if _, err := os.Stat(file); err == nil {
		locks, err := w.readLockFile(file)
		if err != nil {
			return err
		}
		w.unlocked = append(w.unlocked, notLocked(dir, tofu, locks, file)...)
		return nil
	}
	requirements, unresolved, err := lockfile.ReadConfiguration(dir, tofu)
	if err != nil {
		return err
	}
	for _, r := range requirements {
		w.wants = append(w.wants, want{Requirement: r})
	}
	w.unresolved = append(w.unresolved, unresolved...)
	return nil
}

func (w *wanted) readLockFile(file string) ([]lockfile.Locked, error) {
	locks, err := readLockFile(file)
	if err != nil {
		return nil, err
	}
	for _, l := range locks {
		if l.Legacy {
			w.skipped = append(w.skipped, fmt.Sprintf("%s (%s)", l.Address, l.From))
			continue
		}
		w.wants = append(w.wants, want{l.Requirement(), &l})
	}
	return locks, nil
}

// notLocked is what a configuration needs and its lock file does not have: init
// would ask for more than is mirrored. A lock file does not say which client it is
// of, so what one of them finds in it is there. What cannot be read, such as a
// folder that has the lock file alone, asks for nothing that is known here, nor do
// modules that are not local.
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

// leaveOut takes out what is of these hostnames.
func (w *wanted) leaveOut(own []svchost.Hostname) {
	w.unlocked = slices.DeleteFunc(w.unlocked, func(u unlocked) bool {
		return slices.Contains(own, u.address.Hostname)
	})
	w.wants = slices.DeleteFunc(w.wants, func(one want) bool {
		ours := slices.Contains(own, one.Address.Hostname)
		if text := one.Address.String(); ours && !slices.Contains(w.leftOut, text) {
			w.leftOut = append(w.leftOut, text)
		}
		return ours
	})
}

// hostnames are those of all providers that are asked for.
func (w *wanted) hostnames() (all []svchost.Hostname) {
	for _, one := range w.wants {
		if !slices.Contains(all, one.Address.Hostname) {
			all = append(all, one.Address.Hostname)
		}
	}
	return all
}

// readLockFile reads a lock file. It may be a pipe.
func readLockFile(name string) ([]lockfile.Locked, error) {
	if extension := filepath.Ext(strings.TrimSuffix(name, ".json")); extension == ".tf" || extension == ".tofu" {
		return nil, fmt.Errorf("%s is a part of a configuration: give the folder it is in", name)
	}
	return lockfile.Read(name)
}
