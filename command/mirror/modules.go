package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/lockfile"
)

// maxMirroredModules bounds the versions of modules that one run fetches: a registry could
// name new ones without end.
const maxMirroredModules = 2000

// A project is an argument whose calls of modules are followed.
type project struct {
	*lockfile.Configuration
	lockFile string // empty: it has none
	locks    []lockfile.Locked
}

// A moduleID names a version of a module.
type moduleID struct {
	address.Address
	version string
}

func (id moduleID) String() string { return id.Address.String() + "@" + id.version }

// A mirroredModule is a version of a module that has been fetched, or was in the tree.
type mirroredModule struct {
	moduleID
	requiredBy []string
	file       *pull.FilledModule
	added      bool
	err        error
}

// A modulesRun follows the calls of modules and fetches what is called.
type modulesRun struct {
	*mirrorRun
	scratch scratchTree
	modules []*mirroredModule
	failed  []mirrorOutcome // calls for which no version could be chosen
}

// followCalls fetches the modules that the projects call, directly or by other modules, and
// adds the providers that they require. The modules of a round are called by the modules of
// the round before.
func (m *mirrorRun) followCalls(ctx context.Context) (outcomes []mirrorOutcome) {
	r := modulesRun{mirrorRun: m, scratch: scratchTree{fillers: fillers{origins: m.fillers.origins, network: m.fillers.network}}}
	defer context.AfterFunc(ctx, r.scratch.close)()
	defer r.scratch.remove()
	for ctx.Err() == nil && r.round(ctx) {
	}
	m.progress.Clear()
	for _, p := range m.projects {
		m.add(p)
	}
	for _, module := range r.modules {
		o := mirrorOutcome{module: module.Address.String(), version: module.version, added: module.added, err: module.err, requiredBy: module.requiredBy}
		if module.file != nil && !m.dry {
			o.size = module.file.Size
		}
		outcomes = append(outcomes, o)
	}
	slices.SortStableFunc(outcomes, func(a, b mirrorOutcome) int { return strings.Compare(a.module, b.module) })
	return append(r.failed, outcomes...)
}

// A projectCall is a call of a project, and the versions chosen for it. There are several
// versions if clients have installed several for the project.
type projectCall struct {
	lockfile.ModuleCall
	project  *project
	versions []string
	err      error
}

// round fetches the modules of the calls that have not been followed. It reports whether there
// were any.
func (r *modulesRun) round(ctx context.Context) bool {
	var calls []*projectCall
	for _, p := range r.projects {
		for _, call := range p.Calls() {
			if slices.Contains(r.own, call.Address.Hostname) {
				r.noteLeftOut(call.Address)
				continue
			}
			calls = append(calls, &projectCall{ModuleCall: call, project: p})
		}
	}
	passedOver := make([]string, len(calls))
	r.inParallel(len(calls), func(i int) { passedOver[i], calls[i].err = r.chooseVersions(ctx, calls[i]) })
	var missing []*mirroredModule
	for i, call := range calls {
		r.noteWithdrawn(passedOver[i])
		if call.err != nil {
			r.failed = append(r.failed, mirrorOutcome{module: call.ModuleCall.String(), err: call.err})
		}
		for _, version := range call.versions {
			id := moduleID{call.Address, version}
			module := r.find(id)
			if module == nil {
				module = &mirroredModule{moduleID: id}
				r.modules, missing = append(r.modules, module), append(missing, module)
			}
			module.requiredBy = append(module.requiredBy, call.From...)
		}
	}
	before := len(r.modules) - len(missing)
	var done atomic.Int64
	r.inParallel(len(missing), func(i int) {
		if missing[i].err = ctx.Err(); before+i >= maxMirroredModules && missing[i].err == nil {
			missing[i].err = fmt.Errorf("more than %d modules are called: give fewer configurations at once", maxMirroredModules)
		}
		if missing[i].err == nil {
			r.fetchModule(ctx, missing[i])
		}
		r.showModules(before+int(done.Add(1)), len(r.modules))
	})
	for _, call := range calls {
		for _, version := range call.versions {
			r.readModule(ctx, call, r.find(moduleID{call.Address, version}))
		}
	}
	return len(calls) > 0
}

func (r *modulesRun) find(id moduleID) *mirroredModule {
	if i := slices.IndexFunc(r.modules, func(m *mirroredModule) bool { return m.moduleID == id }); i >= 0 {
		return r.modules[i]
	}
	return nil
}

// showModules draws how many of the known modules are there.
func (r *modulesRun) showModules(done, known int) {
	r.progress.Line(false, func(time.Time) string {
		return cli.Bar(int64(done), int64(known), fmt.Sprintf("%d of %s", done, cli.Count(known, "module")))
	})
}

// chooseVersions chooses the versions of a call: the versions that clients have installed, or
// else the newest, as `init` would. It returns a version that is passed over, with the reason.
func (r *modulesRun) chooseVersions(ctx context.Context, call *projectCall) (passedOver string, err error) {
	for _, version := range call.Installed {
		why, err := r.tree.withdrawn(call.Address, version)
		if err == nil && why != "" {
			err = errors.New(why)
		}
		if err != nil {
			return "", fmt.Errorf("%w (installed for %s)", err, strings.Join(call.From, ", "))
		}
		call.versions = append(call.versions, version)
	}
	if len(call.versions) > 0 {
		return "", nil
	}
	version, passedOver, err := r.newest(ctx, call.Address, call.From, call.Select)
	if err == nil {
		call.versions = []string{version}
	}
	return passedOver, err
}

// fetchModule fetches a module unless it is in the tree. A dry run fetches it into a folder
// that is removed: otherwise its calls would be unknown.
func (r *modulesRun) fetchModule(ctx context.Context, m *mirroredModule) {
	present := r.tree.has(m.Address, m.version)
	filler, err := r.fillers.fillerOf(ctx, m.Address)
	if err == nil {
		m.file, err = filler.FillModule(context.WithoutCancel(ctx), m.Address, m.version, nil)
	}
	if errors.Is(err, pull.ErrWouldFill) {
		m.file, err = r.scratch.fetch(ctx, m.moduleID)
	}
	if err == nil && present {
		err = filler.CheckModule(ctx, m.Address, m.version)
	}
	m.added, m.err = err == nil && !present, err
}

// readModule adds the needs of a module to a project.
func (r *modulesRun) readModule(ctx context.Context, call *projectCall, m *mirroredModule) {
	if m.file == nil || ctx.Err() != nil { // a module that has changed at its origin is still called
		return
	}
	p, err := readModulePackage(ctx, m.moduleID.String(), m.file)
	if err == nil {
		err = call.project.Add(call.ModuleCall, p)
	}
	if err != nil {
		r.failed = append(r.failed, mirrorOutcome{module: call.ModuleCall.String(), err: fmt.Errorf("what it needs cannot be read: %w", err), requiredBy: call.From})
	}
}

// readModulePackage reads the configuration files of a module.
func readModulePackage(ctx context.Context, name string, f *pull.FilledModule) (*lockfile.Package, error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	p := &lockfile.Package{Name: name, Folder: f.Folder}
	return p, f.EachModuleFile(ctx, r, p.Wants, addTo(p))
}

// addTo reads files into a package.
func addTo(p *lockfile.Package) func(name string, r io.Reader) error {
	return func(name string, r io.Reader) error {
		content, err := io.ReadAll(io.LimitReader(r, lockfile.MaxPackageFile+1))
		return cmp.Or(err, p.Add(name, content))
	}
}

// A scratchTree is an empty tree that is removed at the end. The zero value makes a tree when
// it is needed.
type scratchTree struct {
	fillers
	once sync.Once
	dir  string
	err  error
}

func (s *scratchTree) fetch(ctx context.Context, id moduleID) (*pull.FilledModule, error) {
	s.once.Do(func() {
		if s.dir, s.err = os.MkdirTemp("", "terraform-registry-mirror-"); s.err == nil {
			s.options.Open = source.Directories{Root: s.dir, Modules: "."}.Open
		}
	})
	if s.err != nil {
		return nil, s.err
	}
	filler, err := s.fillerOf(ctx, id.Address)
	if err != nil {
		return nil, err
	}
	return filler.FillModule(ctx, id.Address, id.version, nil)
}

func (s *scratchTree) remove() {
	s.close()
	if s.dir != "" {
		os.RemoveAll(s.dir)
	}
}
