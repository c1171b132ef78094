package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/bench/internal/tree"
)

// settings are the flags.
type settings struct {
	rows        list[string]
	packages    list[int]
	rounds      int
	heavyRounds int
	slice       time.Duration
	connections int
	fleet       int
	archive     size
	cold        size
	large       size
	rescan      string
	patience    time.Duration
	timeout     time.Duration
	quick       bool

	caddy, write, profile string

	command string // with the flags that matter to the numbers
}

// quick is what -quick changes: enough to see that everything works.
var quick = map[string]string{
	"packages": "1000", "rounds": "2", "heavy-rounds": "1", "slice": "200ms", "fleet": "20",
	"archive": "20MB", "cold": "40MB", "large": "40MB", "patience": "3s",
}

func parseSettings(args []string, output io.Writer) (*settings, error) {
	s := &settings{
		packages: list[int]{values: []int{10_000}, parse: strconv.Atoi},
		rows:     list[string]{parse: parseRow},
		archive:  200e6, cold: 1e9, large: 700e6,
	}
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(output)
	f.Var(&s.rows, "rows", "measure only these `rows`: "+strings.Join(names(), ","))
	f.Var(&s.packages, "packages", "`sizes` of trees; further ones are for warm and heap: 10000,100000")
	f.IntVar(&s.rounds, "rounds", 9, "pairs of measurements")
	f.IntVar(&s.heavyRounds, "heavy-rounds", 3, "pairs of measurements that take long: cold, large")
	f.DurationVar(&s.slice, "slice", time.Second, "how long each contender is asked in a round")
	f.IntVar(&s.connections, "connections", 16, "connections that ask for documents")
	f.IntVar(&s.fleet, "fleet", 200, "`clients` of the fleet")
	f.Var(&s.archive, "archive", "`size` of the file of archive")
	f.Var(&s.cold, "cold", "`size` of all packages of cold")
	f.Var(&s.large, "large", "`size` of the package of large")
	f.StringVar(&s.rescan, "rescan", "", "the registry's rescan `interval` in publish (default the registry's)")
	f.DurationVar(&s.patience, "patience", 10*time.Second, "how long publish waits for a file to be served")
	f.DurationVar(&s.timeout, "timeout", 2*time.Hour, "end after this time whatever happens")
	f.BoolVar(&s.quick, "quick", false, "small sizes and few rounds, to see that it works; the numbers mean nothing")
	f.StringVar(&s.caddy, "caddy", "", "measure this `binary` instead of building one")
	f.StringVar(&s.write, "write", "", "write the report to this `file` too")
	f.StringVar(&s.profile, "profile", "", "write CPU profiles of the registry into this `folder`")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if f.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	return s, s.finish(f)
}

func (s *settings) finish(f *flag.FlagSet) error {
	given := make(map[string]bool)
	s.command = "go run ./bench"
	f.Visit(func(g *flag.Flag) {
		given[g.Name] = true
		if !slices.Contains([]string{"caddy", "write", "profile", "timeout"}, g.Name) {
			s.command += " -" + g.Name
			if value := g.Value.String(); value != "true" {
				s.command += " " + value
			}
		}
	})
	for name, value := range quick {
		if s.quick && !given[name] {
			if err := f.Set(name, value); err != nil {
				return err
			}
		}
	}
	if len(s.rows.values) == 0 {
		s.rows.values = names()
	}
	switch {
	case s.quick && s.write != "":
		return errors.New("a quick run has nothing to write down")
	case s.rounds < 1 || s.heavyRounds < 1 || s.connections < 1 || s.fleet < 1 || s.slice <= 0 || s.patience <= 0:
		return errors.New("nothing is measured in no time and no rounds")
	case min(s.archive, s.cold, s.large) < 10e6:
		return errors.New("a size is at least 10MB")
	case slices.Min(s.packages.values) < tree.MinPackages:
		return fmt.Errorf("a tree has at least %d packages", tree.MinPackages)
	}
	return nil
}

// A list is a flag with commas in its value.
type list[T any] struct {
	values []T
	parse  func(string) (T, error)
}

func (l *list[T]) String() string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(l.values), "[]"), " ", ",")
}

func (l *list[T]) Set(s string) error {
	l.values = nil
	for _, field := range strings.Split(s, ",") {
		v, err := l.parse(field)
		if err != nil {
			return err
		}
		l.values = append(l.values, v)
	}
	return nil
}

// A size is a flag with a unit: 200MB.
type size int64

// units of sizes, as the goals have them: powers of 1000.
var units = []struct {
	name  string
	bytes int64
}{{"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}}

func (z *size) String() string {
	for _, unit := range units {
		if *z != 0 && int64(*z)%unit.bytes == 0 {
			return strconv.FormatInt(int64(*z)/unit.bytes, 10) + unit.name
		}
	}
	return strconv.FormatInt(int64(*z), 10)
}

func (z *size) Set(s string) error {
	bytes := int64(1)
	for _, unit := range units {
		if number, ok := strings.CutSuffix(s, unit.name); ok {
			s, bytes = number, unit.bytes
		}
	}
	n, err := strconv.ParseFloat(s, 64)
	*z = size(n * float64(bytes))
	return err
}
