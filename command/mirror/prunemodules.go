package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/lockfile"
)

// maxUnknown bounds the calls that an error lists.
const maxUnknown = 10

// A moduleSurvey finds the modules of a tree that configurations need.
type moduleSurvey struct {
	snapshot *index.Snapshot
	own      []svchost.Hostname
	needed   map[pull.Lock]bool

	readings []moduleReading
	offered  map[string]bool // by place: calls whose newest version the tree offers
}

// A moduleReading is a configuration as Terraform or OpenTofu reads it.
type moduleReading struct {
	dir     string
	folders []string
	unknown []unknownNeeds
}

// unknownNeeds are the needs of a call whose module cannot be read, and which modules.json does
// not list: the call is newer than the file.
type unknownNeeds struct {
	place string // of the call, if its module may be found under another client's hostname
	why   string
}

// neededModules returns the modules that configurations need, directly or by other modules.
// These are the modules that init has installed, and the newest in the tree that each call
// allows, which init would install next. As a configuration does not name its client, it is
// read as by Terraform and as by OpenTofu. It is an error if the needs of a configuration are
// unknown, also since a package cannot be read: modules that it needs would be removed.
func neededModules(ctx context.Context, dirs []string, snapshot *index.Snapshot, own []svchost.Hostname) ([]pull.Lock, error) {
	s := moduleSurvey{snapshot: snapshot, own: own, needed: make(map[pull.Lock]bool), offered: make(map[string]bool)}
	for _, dir := range dirs {
		for _, tofu := range []bool{false, true} {
			c, err := lockfile.ReadConfiguration(dir, tofu)
			if errors.Is(err, lockfile.ErrNoConfiguration) {
				continue // the other client's
			}
			if err != nil {
				return nil, err
			}
			if err := s.follow(ctx, dir, c); err != nil {
				return nil, err
			}
		}
	}
	if unknown := s.unknown(); len(unknown) > 0 {
		return nil, fmt.Errorf("it is not known which modules these calls need, which could be removed then: run `init` in the folders of their configurations, or `init -upgrade` if a newer version calls them, so that %s lists them all:\n%s",
			lockfile.InstalledName, strings.Join(unknown, "\n"))
	}
	return slices.Collect(maps.Keys(s.needed)), nil
}

// follow notes the modules that a configuration needs.
func (s *moduleSurvey) follow(ctx context.Context, dir string, c *lockfile.Configuration) error {
	r := moduleReading{dir: dir, folders: c.Folders()}
	for _, m := range c.Installed() {
		s.need(pull.Lock{Address: m.Address, Version: m.Version})
	}
	type unread struct {
		call lockfile.ModuleCall
		unknownNeeds
	}
	var failed []unread
	for calls := c.Calls(); len(calls) > 0; calls = c.Calls() {
		for _, call := range calls {
			versions, err := s.versions(call)
			if place := dir + " " + call.From[0]; err == nil {
				s.offered[place] = true
			} else {
				failed = append(failed, unread{call, unknownNeeds{place, fmt.Sprintf("%s: %v", call.From[0], err)}})
			}
			for _, m := range versions {
				p, err := s.read(ctx, call, m)
				if err != nil {
					return err
				}
				if err := c.Add(call, p); err != nil {
					failed = append(failed, unread{call, unknownNeeds{why: fmt.Sprintf("%s: %s: %v", call.From[0], call.Address, err)}})
				}
			}
		}
	}
	for _, f := range failed { // all places of the calls are known now
		if !c.IsRecordedCall(f.call) {
			r.unknown = append(r.unknown, f.unknownNeeds)
		}
	}
	for _, u := range c.Unresolved() {
		if u.IsCall() && !c.IsRecorded(u) {
			r.unknown = append(r.unknown, unknownNeeds{why: u.String()})
		}
	}
	s.readings = append(s.readings, r)
	return nil
}

// need notes a module, and returns it if the tree offers it.
func (s *moduleSurvey) need(l pull.Lock) *index.ModuleVersion {
	s.needed[l] = true
	for _, a := range s.addresses(l.Address) {
		if m := s.snapshot.Module(index.PlaceOf(a)).Version(l.Version); m != nil {
			return m
		}
	}
	return nil
}

// versions returns the versions of a module in the tree that a call may lead to. The error says
// why the version that init would install is not among them.
func (s *moduleSurvey) versions(call lockfile.ModuleCall) (found []*index.ModuleVersion, err error) {
	wanted := slices.Clone(call.Installed)
	var offered, addresses []string
	for _, a := range s.addresses(call.Address) {
		addresses = append(addresses, a.String())
		offered = append(offered, s.snapshot.Module(index.PlaceOf(a)).Numbers()...)
	}
	newest, err := call.Select(offered)
	if err == nil {
		wanted = append(wanted, newest)
	}
	for _, p := range s.snapshot.Report().Withheld {
		if p.Version == "" || !slices.Contains(addresses, p.Address) {
			continue
		}
		if first, bad := call.Select(append(slices.Clone(offered), p.Version)); bad == nil && first != newest {
			err = fmt.Errorf("%s %s is not offered: %s", call.Address, p.Version, p.Detail)
		}
	}
	for _, version := range wanted {
		if m := s.need(pull.Lock{Address: call.Address, Version: version}); m != nil && !slices.Contains(found, m) {
			found = append(found, m)
		}
	}
	return found, err
}

// addresses returns the addresses under which the tree may have a module. The module of one of the
// registry's own hostnames may lie under no hostname.
func (s *moduleSurvey) addresses(a address.Address) []address.Address {
	if slices.Contains(s.own, a.Hostname) {
		return []address.Address{a, a.WithHostname("")}
	}
	return []address.Address{a}
}

// read reads the package of a module in the tree. An error says nothing about what the module
// needs.
func (s *moduleSurvey) read(ctx context.Context, call lockfile.ModuleCall, m *index.ModuleVersion) (*lockfile.Package, error) {
	p := &lockfile.Package{Name: call.Address.String() + "@" + m.Version, Folder: m.Folder}
	err := s.snapshot.EachModuleFile(ctx, m, p.Wants, addTo(p))
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("nothing is removed: which modules %s calls cannot be read: %w", p.Name, tree.WithoutPath(err))
	}
	return p, cmp.Or(ctx.Err(), err)
}

// unknown lists unknown needs of configurations. A folder that another configuration calls is a
// part of that configuration.
func (s *moduleSurvey) unknown() (lines []string) {
	for _, r := range s.readings {
		part := slices.ContainsFunc(s.readings, func(other moduleReading) bool {
			return filepath.Clean(other.dir) != filepath.Clean(r.dir) && slices.Contains(other.folders, filepath.Clean(r.dir))
		})
		if part {
			continue
		}
		for _, u := range r.unknown {
			if !s.offered[u.place] && !slices.Contains(lines, u.why) {
				lines = append(lines, u.why)
			}
		}
	}
	if more := len(lines) - maxUnknown; more > 0 {
		lines = append(lines[:maxUnknown], fmt.Sprintf("and %d more", more))
	}
	return lines
}
