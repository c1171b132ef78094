package main

import (
	"context"
	"fmt"

	"github.com/caddy-terraform/caddy-terraform-registry/bench/internal/load"
)

// A contender is one of those who are asked for the same.
type contender struct {
	name    string
	job     load.Job
	results []load.Result
}

func (c *contender) measure(client *load.Client) func() error {
	return func() error {
		r, err := client.Run(c.job)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		c.results = append(c.results, r)
		return nil
	}
}

// compete measures contenders in turns.
func compete(ctx context.Context, name string, rounds int, client *load.Client, contenders ...*contender) error {
	var measurements []func() error
	for _, c := range contenders {
		measurements = append(measurements, c.measure(client))
	}
	return alternate(ctx, name, rounds, measurements...)
}

// each is a number of each result.
func (c *contender) each(number func(load.Result) float64) []float64 {
	var numbers []float64
	for _, r := range c.results {
		numbers = append(numbers, number(r))
	}
	return numbers
}

// cpuEach is the server's CPU time for one answer, in microseconds.
func cpuEach(r load.Result) float64 {
	return float64(r.Server.Microseconds()) / float64(max(r.Answers, 1))
}

// busy says how the two cores were used: a server that was not busy was not
// what was measured.
func (c *contender) busy() string {
	return fmt.Sprintf("server %.0f %%, client %.0f %% of a core",
		100*median(c.each(load.Result.ServerBusy)), 100*median(c.each(load.Result.OwnBusy)))
}

// rateRatios compares requests a second, pair by pair.
func rateRatios(ours, theirs *contender) []float64 {
	return ratios(ours.each(load.Result.Rate), theirs.each(load.Result.Rate))
}

// cpuDetail compares by CPU time, which is calmer than the clock where others
// use the machine, too.
func cpuDetail(ours, theirs *contender) string {
	return fmt.Sprintf("%s against %s by the server's CPU time alone: %.2f", ours.name, theirs.name,
		median(ratios(theirs.each(cpuEach), ours.each(cpuEach))))
}

func (c *contender) rateDetail() string {
	return fmt.Sprintf("%s: %.0f/s, %.1f µs of the server's CPU time each (%s)",
		c.name, median(c.each(load.Result.Rate)), median(c.each(cpuEach)), c.busy())
}

func (c *contender) throughputDetail() string {
	perByte := func(r load.Result) float64 { return r.Server.Seconds() * 1e9 / float64(max(r.Bytes, 1)) }
	return fmt.Sprintf("%s: %s/s, %s of the server's CPU time for 1 GB (%s)",
		c.name, bytesText(median(c.each(load.Result.Throughput))), secondsText(median(c.each(perByte))), c.busy())
}

func (c *contender) fleetDetail() string {
	elapsed := func(r load.Result) float64 { return r.Elapsed.Seconds() }
	server := func(r load.Result) float64 { return r.Server.Seconds() }
	return fmt.Sprintf("%s: %s of the server's CPU time, all clients are done after %s",
		c.name, secondsText(median(c.each(server))), secondsText(median(c.each(elapsed))))
}
