// Command bench measures the registry against Caddy's own handlers, against
// the tools of the system, or against another build of itself. README.md says
// how to run it and how to read what it prints.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/dustin/go-humanize"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o, err := parseOptions(os.Args[1:], os.Stderr)
	if err == nil {
		err = run(ctx, o, os.Stdout)
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

// options are the flags, and the sizes that -quick changes.
type options struct {
	experiments []experiment
	packages    []int
	rounds      int
	slice       time.Duration
	quick       bool

	binary, against, profile string
	terraform, tofu          string // programs that run `init`

	clients     int   // of the fleet
	each        int   // Terraforms, and as many OpenTofus, that run `init` at once
	modules     int   // that are searched
	public      int   // packages of the public registry
	changing    int   // seconds in which a folder changes each, an even number
	connections int   // that ask for documents
	archive     int64 // bytes of a package that is downloaded
	cold        int64 // bytes of all packages of the cold index
	backlog     int64 // bytes of the packages before the one asked for first
	large       int64 // bytes of the package whose heap is watched
	installed   int64 // bytes of the package that `init` installs

	command string // the command that gives the same numbers
}

func parseOptions(args []string, output io.Writer) (*options, error) {
	o := &options{
		clients: 200, each: 25, connections: 16, modules: 20_000, changing: 10,
		archive: 200e6, cold: 1e9, backlog: 10e9, large: 700e6, installed: 300e6,
	}
	var names, packages string
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(output)
	f.StringVar(&names, "rows", strings.Join(experimentNames(), ","), "`experiments` to run")
	f.StringVar(&packages, "packages", "10000,100000", "`sizes` of trees; all but warm, rescan and heap use the first")
	f.IntVar(&o.public, "public", 1_000_000, "`packages` of the public registry, for change and million")
	f.IntVar(&o.rounds, "rounds", 24, "pairs of measurements; fewer where one takes long")
	f.DurationVar(&o.slice, "slice", 300*time.Millisecond, "CPU `time` that a server is asked for in a round")
	f.BoolVar(&o.quick, "quick", false, "small sizes and two rounds, to see that everything works")
	f.StringVar(&o.binary, "caddy", "", "measure this `binary` instead of building one")
	f.StringVar(&o.against, "against", "", "compare with this other `binary` of the registry, and with nothing else")
	f.StringVar(&o.terraform, "terraform", "terraform", "`program` for init")
	f.StringVar(&o.tofu, "tofu", "tofu", "`program` for init")
	f.StringVar(&o.profile, "profile", "", "write CPU profiles of the registry into this `folder`")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if f.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	o.command = "go -C bench run ."
	f.Visit(func(g *flag.Flag) {
		if slices.Contains([]string{"rows", "packages", "public", "rounds", "slice"}, g.Name) {
			o.command += " -" + g.Name + " " + g.Value.String()
		}
	})
	if o.quick {
		o.rounds, o.slice, o.clients, o.each, o.modules = 2, 100*time.Millisecond, 20, 2, 1_000
		o.archive, o.cold, o.backlog, o.large, o.installed = 20e6, 40e6, 200e6, 40e6, 20e6
		packages, o.public, o.changing = "1000", 20_000, 2
	}
	if o.rounds < 1 || o.slice <= 0 {
		return nil, errors.New("-rounds and -slice must be positive")
	}
	if o.public < smallPublic {
		return nil, fmt.Errorf("-public %d: the public registry has at least %d packages", o.public, smallPublic)
	}
	for field := range strings.SplitSeq(packages, ",") {
		n, err := strconv.Atoi(field)
		if err != nil || n < minPackages {
			return nil, fmt.Errorf("-packages %s: a tree has at least %d packages", field, minPackages)
		}
		o.packages = append(o.packages, n)
	}
	selected := strings.Split(names, ",")
	for _, name := range selected {
		if !slices.Contains(experimentNames(), name) {
			return nil, fmt.Errorf("-rows %s: no such experiment", name)
		}
	}
	for _, e := range experiments() {
		if slices.Contains(selected, e.name) {
			o.experiments = append(o.experiments, e)
		}
	}
	return o, nil
}

// run takes the measurements and writes the table.
func run(ctx context.Context, o *options, out io.Writer) error {
	l, err := newLab(ctx, o)
	if err != nil {
		return err
	}
	defer os.RemoveAll(l.dir)
	t := table{options: o, machine: l.describeMachine()}
	var failed []string
	for _, e := range o.experiments {
		results, err := l.run(ctx, e)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			progress("%s: %v", e.name, err)
			failed = append(failed, e.name)
		}
		t.results = append(t.results, results...)
	}
	t.machine = append(t.machine, [2]string{"load average after", loadAverage()})
	if err := t.write(out); err != nil {
		return err
	}
	if len(failed) > 0 {
		return fmt.Errorf("could not be measured: %s", strings.Join(failed, ", "))
	}
	return nil
}

// A subject is a build of the registry that is measured.
type subject struct {
	name, binary string
	memory       int64 // the limit of its memory in bytes; 0: none
}

// A lab has everything that the experiments share.
type lab struct {
	*options
	dir         string
	cores       cores
	subject     subject
	other       subject // with -against
	key         key
	certificate certificate
	trees       map[shape]*tree
	peaks       map[string]int64 // of the memory of processes with a limit, by subject
	made        map[string]bool  // folders of the current experiment
	cleanups    []func() error   // of the current experiment
}

func newLab(ctx context.Context, o *options) (l *lab, err error) {
	for _, tool := range []string{"find", "sha256sum", "unzip", "curl", "taskset"} {
		if _, err := exec.LookPath(tool); err != nil {
			return nil, err
		}
	}
	l = &lab{options: o, trees: make(map[shape]*tree), peaks: make(map[string]int64), made: make(map[string]bool)}
	if l.dir, err = os.MkdirTemp("", "bench"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(l.dir)
		}
	}()
	if l.subject, err = l.build(ctx); err != nil {
		return nil, err
	}
	if o.against != "" {
		binary, err := filepath.Abs(o.against)
		if err != nil {
			return nil, err
		}
		l.other = subject{name: "other", binary: binary}
	}
	if l.certificate, err = newCertificate(ctx, l.dir); err != nil {
		return nil, err
	}
	if l.key, err = newKey(l.path("signing_key.asc")); err != nil {
		return nil, err
	}
	l.cores, err = chooseCores(ctx)
	return l, err
}

// build makes the binary that users have.
func (l *lab) build(ctx context.Context) (subject, error) {
	if l.binary != "" {
		binary, err := filepath.Abs(l.binary)
		return subject{name: "registry", binary: binary}, err
	}
	progress("building Caddy with the registry")
	module, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return subject{}, err
	}
	s := subject{name: "registry", binary: l.path("caddy")}
	registry := filepath.Dir(filepath.Dir(strings.TrimSpace(string(module)))) // the module of bench lies in it
	build := exec.CommandContext(ctx, "go", "build", "-C", registry,
		"-tags", "nobadger,nomysql,nopgx", "-o", s.binary, "./xcaddy")
	build.Stderr = os.Stderr
	return s, build.Run()
}

// path returns the path of a file or folder that is removed at the end.
func (l *lab) path(name ...string) string { return filepath.Join(append([]string{l.dir}, name...)...) }

// folder returns a folder that both subjects of an experiment use, filled on
// first use. It is removed after the experiment.
func (l *lab) folder(name string, fill func(dir string) error) (string, error) {
	dir := l.path(name)
	if l.made[dir] {
		return dir, nil
	}
	l.made[dir] = true
	progress("making %s", name)
	return dir, errors.Join(os.MkdirAll(filepath.Join(dir, "providers"), 0o755), fill(dir), writeBack())
}

// writeBack makes the system write dirty pages now, and not during a measurement.
func writeBack() error { return exec.Command("sync").Run() }

// tree returns the tree with so many packages.
func (l *lab) tree(packages int) (*tree, error) { return l.treeOf(evenly(packages)) }

// treeOf returns the tree of a shape, made on first use and kept for all experiments.
func (l *lab) treeOf(s shape) (*tree, error) {
	if t := l.trees[s]; t != nil {
		return t, nil
	}
	progress("making a tree of %s packages of %s providers", humanize.Comma(int64(s.packages)), humanize.Comma(int64(s.addresses)))
	t, err := newTree(l.path(fmt.Sprintf("tree%d-%d", s.packages, s.addresses)), s, l.key)
	l.trees[s] = t
	return t, errors.Join(err, writeBack())
}

// cleanup has f called after the current experiment.
func (l *lab) cleanup(f func() error) { l.cleanups = append(l.cleanups, f) }

func progress(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
