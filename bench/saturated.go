package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync/atomic"
	"time"
)

// saturated requests documents while as many clients as in a fleet download packages
// over TLS. The clients download at a rate that fills a line of 1 Gbit/s together, and
// then as fast as they can, which takes all cores of a machine without such a line.
func saturated(ctx context.Context, l *lab, s subject) ([]row, error) {
	f, err := l.fleetTree()
	if err != nil {
		return nil, err
	}
	registry, err := l.fleetRegistry(ctx, s, f)
	if err != nil {
		return nil, err
	}
	files, nginx, err := l.fleetFiles(ctx, s, registry)
	if err != nil {
		return nil, err
	}
	median := func(u waveUsage) float64 { return u.within(0.5) }
	slowest := func(u waveUsage) float64 { return u.within(0.99) }
	var rows []row
	for _, load := range []struct {
		what string
		rate int // of all clients together, in bytes a second; 0: as fast as they can
		goal goal
	}{
		{fmt.Sprintf("a document while %d clients fill a line of 1 Gbit/s", l.clients), gigabit, goal{atMost: 0.05}},
		{fmt.Sprintf("a document while %d clients take all cores", l.clients), 0, goal{}},
	} {
		alone := l.latencies(registry, load.rate)
		rows = append(rows,
			row{what: load.what + ": p99", unit: "s", goal: load.goal, slowness: 4, cost: alone.measuring(slowest)},
			row{what: load.what + ": p50", unit: "s", slowness: 4, cost: alone.recorded(median)},
			row{
				what: load.what + ": p99", unit: "s", slowness: 4, cost: l.latencies(registry, load.rate).measuring(slowest),
				against: "without downloads", reference: l.undisturbed(registry).measuring(slowest),
			})
		for _, theirs := range []*server{nginx, files} {
			rows = append(rows, row{
				what: load.what + ": p99", unit: "s", slowness: 4, cost: l.latencies(registry, load.rate).measuring(slowest),
				against: theirs.title(), reference: l.latencies(theirs, load.rate).measuring(slowest),
			})
		}
	}
	return rows, nil
}

// latencies records how long documents of a server take while packages are downloaded
// at a rate. It returns nil if there is no server.
func (l *lab) latencies(s *server, rate int) *recorded[waveUsage] {
	if s == nil {
		return nil
	}
	return &recorded[waveUsage]{take: func(ctx context.Context) (u waveUsage, err error) {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
		defer cancel()
		stop, err := l.downloadForever(ctx, *s, rate)
		if err != nil {
			return u, err
		}
		defer func() { err = errors.Join(err, stop()) }()
		time.Sleep(time.Second) // until all downloads are under way
		return s.askSteadily(ctx)
	}}
}

// undisturbed records the same without downloads: the part of the machine and its other
// processes.
func (l *lab) undisturbed(s *server) *recorded[waveUsage] {
	return &recorded[waveUsage]{take: s.askSteadily}
}

// askSteadily requests documents at a steady pace on one connection.
func (s server) askSteadily(ctx context.Context) (u waveUsage, err error) {
	const (
		pace    = 5 * time.Millisecond
		samples = 300
	)
	documents, err := s.documents(ctx)
	if err != nil {
		return u, err
	}
	c, err := connect(ctx, documents[0])
	if err != nil {
		return u, err
	}
	defer c.Close()
	var bytes atomic.Int64
	if err := c.exchange(&bytes, nil); err != nil { // including the handshake
		return u, err
	}
	before := s.cpuTime()
	for n := range samples {
		c.target = documents[n%len(documents)]
		c.request = c.target.request()
		began := time.Now()
		if err := c.exchange(&bytes, nil); err != nil {
			return u, err
		}
		u.times = append(u.times, time.Since(began))
		time.Sleep(time.Until(began.Add(pace)))
	}
	u.cpu = s.cpuTime() - before
	slices.Sort(u.times)
	return u, nil
}

// documents returns the documents of all inits, each once.
func (s server) documents(ctx context.Context) (all []target, err error) {
	for _, i := range s.inits {
		_, paths, err := s.record(ctx, i.steps)
		if err != nil {
			return nil, err
		}
		for n, path := range paths[:len(paths)-1] {
			t := i.answers[n]
			t.address, t.path, t.tls, t.authorization = s.address, path, s.tls, i.steps[n].authorization
			all = append(all, t)
		}
	}
	return all, nil
}

// downloadForever has curl download the package on as many connections as there are
// clients, until it is stopped. Connections of a client in this process would take
// turns with the measurements. If curl has not ended by itself, all of its downloads
// were good. The clients share the rate; 0 is no limit.
func (l *lab) downloadForever(ctx context.Context, s server, rate int) (stop func() error, err error) {
	_, paths, err := s.record(ctx, s.inits[0].steps)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	clients := strconv.Itoa(l.clients)
	c := exec.CommandContext(ctx, "curl", "--disable", "--noproxy", "*", "--silent", "--no-progress-meter", "--show-error", "--fail", "--fail-early",
		"--http1.1", "--parallel", "--parallel-immediate", "--parallel-max", clients, "--limit-rate", strconv.Itoa(rate/l.clients),
		"--cacert", l.certificate.file, "--connect-to", host+":443:"+s.address,
		"--output", os.DevNull, "https://"+host+paths[len(paths)-1]+"?[1-1000000]")
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		cancel()
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	return func() error {
		defer cancel()
		select {
		case err := <-ended:
			return fmt.Errorf("curl has not downloaded all the time: %v", err)
		default:
			cancel()
			<-ended // killed
			return nil
		}
	}, nil
}
