// Command bench measures the registry beside Caddy's own handlers and the
// system's own tools, as README.md says:
//
//	go run ./bench
//
// Every number is a ratio of two measurements that were taken one right after
// the other on the same machine, many times in turns: what disturbs one of them
// disturbs the other.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/caddy-terraform/caddy-terraform-registry/bench/internal/load"
)

// client is the argument that makes a process the client of the measurements.
const client = "client"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) == 2 && os.Args[1] == client {
		// The parent ends it by closing its input.
		signal.Ignore(os.Interrupt)
		exit(load.Work(context.Background(), os.Stdin, os.Stdout))
	}
	s, err := parseSettings(os.Args[1:], os.Stderr)
	if err == flag.ErrHelp {
		return
	}
	if err != nil {
		exit(err)
	}
	exit(run(ctx, s, os.Stdout))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// run measures and writes the report.
func run(ctx context.Context, s *settings, out io.Writer) (err error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	l, err := newLab(ctx, s)
	if err != nil {
		return err
	}
	defer l.close()
	r := report{settings: s, machine: describeMachine(l)}
	for _, e := range s.selected() {
		fmt.Fprintf(os.Stderr, "== %s\n", e.name)
		results, err := e.measure(ctx, l)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", e.name, err)
			r.failed = append(r.failed, e.name)
			results = append(results, result{what: e.about, against: "–", problem: "could not be measured"})
		}
		r.results = append(r.results, results...)
	}
	r.machine = append(r.machine, fact{"load average after", loadAverage()})
	if err := r.write(out); err != nil {
		return err
	}
	if s.write != "" {
		if err := r.writeFile(s.write); err != nil {
			return err
		}
	}
	if len(r.failed) > 0 {
		return fmt.Errorf("could not be measured: %v", r.failed)
	}
	return nil
}
