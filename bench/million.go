package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dustin/go-humanize"
)

// million serves a mirror of all of the public registry from a process with limited memory.
func million(ctx context.Context, l *lab, s subject) ([]row, error) {
	t, err := l.treeOf(publicRegistry(l.public))
	if err != nil {
		return nil, err
	}
	if err := l.readOnce(ctx, s, t); err != nil {
		return nil, err
	}
	const limit = 2 << 30
	s.memory = limit
	path := t.hosted().originPath("versions")
	var right *answer
	err = l.during(ctx, s, publicStorage(t), l.registry(t.root), func(c *caddy) error {
		if _, err := c.indexed(ctx, "site", t.hosted()); err != nil {
			return err
		}
		right, err = c.get(ctx, "site", path, "")
		return err
	})
	if err != nil {
		return nil, err
	}
	changes, err := l.changes(t, l.changing/2, false)
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("%s addresses, %s packages, 2 GiB: ", humanize.Comma(int64(t.addresses)), humanize.Comma(int64(t.packages)))
	starts := l.startingAgain(s, publicStorage(t), t, what+"warm start", path, right.equals)
	for i := range starts {
		starts[i].slowness = 4
	}
	ready := []provider{t.hosted()}
	return append(starts, []row{
		{what: what + "rescan", unit: "s", slowness: 4, cost: l.rescanOf(s, publicStorage(t), t, ready)},
		{what: what + "heap of each", unit: "B", slowness: 4, cost: l.heapOfEach(s, publicStorage(t), t, ready)},
		{
			what: what + "p99 of a document that 50 clients read while one folder a second changes", unit: "s", goal: goal{atMost: 2}, slowness: 4,
			cost:    l.documentsDuring(s, t, changes),
			against: "without changes", reference: l.documentsDuring(s, t, nil),
		},
		{
			what: what + "peak memory of all these processes", unit: "B", goal: goal{atMost: limit}, rounds: 1,
			cost: func(context.Context) (float64, error) { return float64(l.peaks[s.name]), nil },
		},
	}...), nil
}

// documentsDuring returns the time in which 99 of 100 documents are answered while one
// folder a second changes, or none if there are no changes. Each measurement has a process
// of its own, which has read the tree before.
func (l *lab) documentsDuring(s subject, t *tree, changes []change) measurement {
	return func(ctx context.Context) (p99 float64, err error) {
		err = l.during(ctx, s, publicStorage(t), l.registry(t.root), func(c *caddy) error {
			documents, err := c.documentsOf(ctx, t)
			if err != nil {
				return err
			}
			if err := c.notices(ctx, changes); err != nil {
				return err
			}
			if _, err := c.settled(ctx); err != nil {
				return err
			}
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			changing := make(chan error, 1)
			go func() { changing <- everySecond(ctx, changes, l.changing) }()
			times, err := askAtPace(ctx, documents, l.changing)
			if err != nil {
				return err
			}
			slices.Sort(times)
			p99 = times[len(times)*99/100].Seconds()
			return <-changing
		})
		return p99, err
	}
}

// documentsOf returns documents of providers all over a tree that do not change, each of
// which has been answered once.
func (c *caddy) documentsOf(ctx context.Context, t *tree) (documents []target, err error) {
	const most = 100 // providers
	for _, p := range t.spread(most, false) {
		paths := []string{p.mirrorPath("index.json"), p.mirrorPath(p.versions[0] + ".json")}
		if p.hostname == "" {
			paths = append(paths, p.originPath("versions"), p.originPath(p.versions[0]+"/download/linux/amd64"))
		}
		if _, err := c.indexed(ctx, "site", p); err != nil {
			return nil, err
		}
		for _, path := range paths {
			a, err := c.get(ctx, "site", path, "")
			if err != nil {
				return nil, err
			}
			if !a.ok() {
				return nil, fmt.Errorf("GET %s: %d: %s", path, a.status, a.body)
			}
			documents = append(documents, newTarget(c.addresses["site"], c.Process.Pid, path, a))
		}
	}
	return documents, nil
}

const (
	readers = 50
	pace    = 5 * time.Millisecond // between two requests of all readers
)

// askAtPace has 50 readers request documents in turn at a steady pace, for that many seconds, and
// returns how long each took. A document that has to wait because the one before on its connection
// took longer than the pace takes longer, too.
func askAtPace(ctx context.Context, documents []target, seconds int) (times []time.Duration, err error) {
	var (
		all    sync.WaitGroup
		taken  [readers][]time.Duration
		failed [readers]error
	)
	requests, began := int(time.Duration(seconds)*time.Second/pace), time.Now()
	for reader := range readers {
		all.Go(func() {
			taken[reader], failed[reader] = askInTurn(ctx, documents, began, reader, requests)
		})
	}
	all.Wait()
	return slices.Concat(taken[:]...), errors.Join(failed[:]...)
}

// askInTurn makes each of the requests that is the turn of one reader, on one connection.
func askInTurn(ctx context.Context, documents []target, began time.Time, reader, requests int) (times []time.Duration, err error) {
	c, err := connect(ctx, documents[0])
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var bytes atomic.Int64
	for n := reader; n < requests; n += readers {
		due := began.Add(time.Duration(n) * pace)
		if rest := time.Until(due); rest > 0 {
			time.Sleep(rest)
			due = time.Now() // the timer was late, and not the server
		}
		c.target = documents[n%len(documents)]
		c.request = c.target.request()
		if err := c.exchange(&bytes, nil); err != nil {
			return nil, err
		}
		times = append(times, time.Since(due))
	}
	return times, nil
}

// notices makes one of the changes and undoes it: a server that does not notice changes
// would not be disturbed by them, and the first change after a start costs more.
func (c *caddy) notices(ctx context.Context, changes []change) error {
	if len(changes) == 0 {
		return nil
	}
	if err := c.makes(ctx, changes[0], true, poll); err != nil {
		return err
	}
	return errors.Join(c.makes(ctx, changes[0], false, poll), c.watches())
}
