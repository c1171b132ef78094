package mirror

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
	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/lockfile"
)

// A requirement is a provider that an argument requires.
type requirement struct {
	lockfile.Requirement
	locked *lockfile.Locked // nil: the requirement is not from a lock file
}

// A mirrorRequest has the requirements of all arguments.
type mirrorRequest struct {
	tofu     bool               // read arguments as OpenTofu does
	own      []svchost.Hostname // of the registry itself
	projects []*project         // nil: modules are not mirrored

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

// readArguments reads the requirements of arguments. With modules, the calls of configurations
// are kept to be followed.
func (q *mirrorRequest) readArguments(args []string, modules bool) error {
	var errs []error
	for _, arg := range args {
		if err := q.read(arg, modules); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// read adds the requirements of one argument. If a folder has the name of a provider, the
// provider can be given with its hostname.
func (q *mirrorRequest) read(arg string, modules bool) error {
	info, err := os.Stat(arg)
	switch {
	case errors.Is(err, fs.ErrNotExist) && isPath(arg):
		return noSuchPath(arg)
	case err != nil && isPath(arg):
		return err
	case err != nil && lockfile.IsModuleArgument(arg):
		return q.readModule(arg, modules)
	case err != nil:
		return q.readProvider(arg)
	case info.IsDir():
		return q.readFolder(arg, modules)
	}
	_, err = q.readLockFile(arg)
	return err
}

// isPath reports whether an argument can only be a path.
func isPath(arg string) bool {
	slashes := filepath.ToSlash(arg)
	return filepath.IsAbs(arg) || slashes == "." || slashes == ".." || strings.HasPrefix(slashes, "./") || strings.HasPrefix(slashes, "../")
}

func (q *mirrorRequest) readModule(arg string, modules bool) error {
	call, err := lockfile.ParseModuleCall(arg, q.tofu)
	if err == nil && !modules {
		err = fmt.Errorf("%s is a module: add --modules", cli.Printable(arg))
	}
	if err == nil {
		q.projects = append(q.projects, &project{Configuration: lockfile.CallingModule(call, q.tofu)})
	}
	return err
}

func (q *mirrorRequest) readProvider(arg string) error {
	r, err := lockfile.ParseRequirement(arg, q.tofu)
	if err != nil {
		return fmt.Errorf("there is no file or folder %s, and as a provider: %w", cli.Printable(arg), err)
	}
	q.requirements = append(q.requirements, requirement{Requirement: r})
	return nil
}

func (q *mirrorRequest) readFolder(dir string, modules bool) error {
	p := &project{}
	file := filepath.Join(dir, lockfile.Name)
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		p.lockFile = file
		if p.locks, err = q.readLockFile(file); err != nil {
			return err
		}
		if !modules {
			q.unlocked = append(q.unlocked, notLocked(dir, q.tofu, p.locks, file)...)
			return nil
		}
		if found, err := lockfile.HasConfiguration(dir); err != nil || !found {
			return err
		}
	}
	var err error
	if p.Configuration, err = lockfile.ReadConfiguration(dir, q.tofu); err != nil {
		if found, unread := lockfile.HasConfiguration(dir); unread == nil && !found {
			return &pathError{dir, err}
		}
		return err
	}
	if modules {
		q.projects = append(q.projects, p)
		return nil
	}
	q.add(p)
	return nil
}

// add adds the requirements of a project, which are known when its calls have been followed.
// If there is a lock file, it decides on the providers.
func (q *mirrorRequest) add(p *project) {
	q.unresolved = append(q.unresolved, p.Unresolved()...)
	if p.lockFile != "" {
		q.unlocked = append(q.unlocked, compare(p.Requirements(), p.locks, p.lockFile)...)
	} else {
		for _, r := range p.Requirements() {
			q.requirements = append(q.requirements, requirement{Requirement: r})
		}
	}
	q.leaveOut()
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

// notLocked returns the providers that a configuration requires and its lock file lacks: init
// would need more than is mirrored. A lock file does not name its client, so nothing is
// missing if it is complete for one of them. A configuration that cannot be read requires
// nothing, for example where the folder has only the lock file. Modules that are not local
// require nothing either.
func notLocked(dir string, tofu bool, locks []lockfile.Locked, file string) []unlocked {
	var missing []unlocked
	for i, asTofu := range []bool{tofu, !tofu} {
		c, err := lockfile.ReadConfiguration(dir, asTofu)
		if err != nil {
			continue
		}
		found := compare(c.Requirements(), locks, file)
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

// leaveOut drops the registry's own providers.
func (q *mirrorRequest) leaveOut() {
	q.unlocked = slices.DeleteFunc(q.unlocked, func(u unlocked) bool {
		return slices.Contains(q.own, u.address.Hostname)
	})
	q.requirements = slices.DeleteFunc(q.requirements, func(r requirement) bool {
		drop := slices.Contains(q.own, r.Address.Hostname)
		if drop {
			q.noteLeftOut(r.Address)
		}
		return drop
	})
}

func (q *mirrorRequest) noteLeftOut(a address.Address) {
	if text := a.String(); !slices.Contains(q.leftOut, text) {
		q.leftOut = append(q.leftOut, text)
	}
}
