package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

const (
	// smallPublic is the number of packages of the tree with which a large one is compared.
	smallPublic = 1000

	// addedVersion is the version that a change adds.
	addedVersion = "9.0.0"
)

// A change is a file or folder that is renamed into a tree, and out of it again.
type change struct {
	provider        provider // whose folder changes
	versions        int      // that are offered before
	inside, outside string
}

func (c change) moveIn() error  { return os.Rename(c.outside, c.inside) }
func (c change) moveOut() error { return os.Rename(c.inside, c.outside) }

// changesFolder returns whether a change may be made in the folder of a provider. It has
// packages only, so that one of a further version is offered.
func changesFolder(p provider) bool { return p.documents == none && !p.folders }

// spread returns providers all over a tree, but at most that many, with or without changes
// of their folders.
func (t *tree) spread(most int, changing bool) (chosen []provider) {
	for _, p := range t.providers {
		if changesFolder(p) == changing {
			chosen = append(chosen, p)
		}
	}
	all, n := chosen, min(most, len(chosen))
	chosen = nil
	for i := range n {
		chosen = append(chosen, all[i*len(all)/n])
	}
	return chosen
}

// changes returns changes in folders all over a tree, but at most that many, each of one
// package: a version of a provider that is there or, if it has another type, of one that is
// not. The packages lie in a folder of the experiment.
func (l *lab) changes(t *tree, most int, another bool) (changes []change, err error) {
	name := fmt.Sprintf("outside%d", t.packages)
	if another {
		name += "-new"
	}
	aside, err := l.folder(name, func(string) error { return nil })
	if err != nil {
		return nil, err
	}
	l.cleanup(func() (err error) { // should an experiment fail in between
		for _, c := range changes {
			err = errors.Join(err, os.RemoveAll(c.inside))
		}
		return err
	})
	for _, before := range t.spread(most, true) {
		added := before
		added.versions, added.platforms, added.packages = []string{addedVersion}, []string{"linux_amd64"}, 0
		c := change{provider: before, versions: len(before.versions), inside: added.packageFile(t.root, addedVersion), outside: added.packageFile(aside, addedVersion)}
		if another {
			added.typ += "new"
			c = change{provider: added, inside: added.dir(t.root), outside: added.dir(aside)}
		}
		changes = append(changes, c)
		if _, err := os.Stat(c.outside); err == nil { // it was made for the other subject
			continue
		}
		if err := added.write(aside, l.key); err != nil {
			return nil, err
		}
	}
	return changes, writeBack()
}

// folderChanges compares the cost of a change in a large tree with its cost in a small one.
// Both servers have one core, and scan nothing by themselves.
func folderChanges(ctx context.Context, l *lab, s subject) ([]row, error) {
	large, err := l.changingPublic(ctx, s, publicRegistry(l.public))
	if err != nil {
		return nil, err
	}
	small, err := l.changingPublic(ctx, s, publicRegistry(smallPublic))
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, kind := range []struct {
		what    string
		another bool
	}{{"one folder changes", false}, {"one folder is new", true}} {
		ours, err := large.measure(l, kind.another)
		if err != nil {
			return nil, err
		}
		theirs, err := small.measure(l, kind.another)
		if err != nil {
			return nil, err
		}
		what := fmt.Sprintf("%s among %s packages: CPU time until it is served", kind.what, humanize.Comma(int64(l.public)))
		against := fmt.Sprintf("among %s packages", humanize.Comma(smallPublic))
		rows = append(rows,
			row{what: what, unit: "s", goal: goal{atMost: 3}, slowness: 2, cost: ours.served, against: against, reference: theirs.served},
			row{
				what: fmt.Sprintf("%s among %s packages and changes back: CPU time until nothing follows", kind.what, humanize.Comma(int64(l.public))), unit: "s", slowness: 2,
				cost: ours.whole(), against: against, reference: theirs.whole(),
			})
	}
	return rows, nil
}

// A changingTree is a tree that a process serves until the experiment ends.
type changingTree struct {
	*tree
	caddy *caddy
	name  string // of the process
}

// changingPublic serves a tree of the public registry that was read before.
func (l *lab) changingPublic(ctx context.Context, s subject, shape shape) (changingTree, error) {
	t, err := l.treeOf(shape)
	if err != nil {
		return changingTree{}, err
	}
	if err := l.readOnce(ctx, s, t); err != nil {
		return changingTree{}, err
	}
	return l.changingTree(ctx, s, t, publicStorage(t), l.registry(t.root))
}

// changingTree serves a tree that a process of that name has read before.
func (l *lab) changingTree(ctx context.Context, s subject, t *tree, name string, h handler) (changingTree, error) {
	c, err := l.caddy(ctx, s, name, true, site{name: "site", handler: h.with("rescan", "24h")})
	if err != nil {
		return changingTree{}, err
	}
	l.cleanup(c.stop)
	if _, err := c.indexed(ctx, "site", t.hosted()); err != nil {
		return changingTree{}, err
	}
	_, err = c.settled(ctx)
	return changingTree{t, c, s.name + "-" + name}, errors.Join(err, c.watches())
}

// publicStorage is the name of the processes that serve a tree of the public registry.
func publicStorage(t *tree) string { return fmt.Sprintf("public%d", t.packages) }

// readOnce has a process read a tree to its end, so that later processes know the packages.
// Only the first time takes long.
func (l *lab) readOnce(ctx context.Context, s subject, t *tree) error {
	progress("reading %s packages", humanize.Comma(int64(t.packages)))
	return l.during(ctx, s, publicStorage(t), l.registry(t.root), func(c *caddy) error {
		// A package that has been read says that the admin endpoint knows the tree by now.
		if _, err := c.indexed(ctx, "site", t.hosted()); err != nil {
			return err
		}
		scanned, err := c.adminRequest(ctx, http.MethodPost, "/terraform_registry/rescan") // waits for all packages
		if err != nil {
			return c.failure(err)
		}
		if !bytes.Contains(scanned, []byte(`"pending":0`)) {
			return fmt.Errorf("not all packages have been read: %s", scanned)
		}
		progress("read after %v, with %v of CPU time and %s of memory", time.Since(c.started).Round(time.Millisecond),
			cpuTime(c.Process.Pid).Round(time.Millisecond), inBytes(peakMemory(c.Process.Pid)))
		return nil
	})
}

// watches returns an error if a process cannot watch all folders of its tree.
func (c *caddy) watches() error {
	log, err := os.ReadFile(c.log)
	if err == nil && strings.Contains(string(log), "changes are not noticed at once") {
		err = c.failure(errors.New("the registry cannot watch all folders"))
	}
	return err
}

// A changeCost measures changes in one tree, and records the costs of the whole of them.
type changeCost struct {
	changingTree
	lab     *lab
	changes []change
	made    int
	wholes  []float64
}

func (t changingTree) measure(l *lab, another bool) (*changeCost, error) {
	const most = 24
	changes, err := l.changes(t.tree, most, another)
	return &changeCost{changingTree: t, lab: l, changes: changes}, err
}

// served makes the next change, undoes it and waits until nothing follows. It returns the
// CPU time of the server until the change is served. The server is asked seldom, since that
// costs CPU time too.
func (m *changeCost) served(ctx context.Context) (seconds float64, err error) {
	const seldom = 50 * time.Millisecond
	c, change := m.caddy, m.changes[m.made%len(m.changes)]
	m.made++
	err = m.lab.profiled(ctx, c, m.name, func() error {
		before := cpuTime(c.Process.Pid)
		if err := c.makes(ctx, change, true, seldom); err != nil {
			return err
		}
		seconds = (cpuTime(c.Process.Pid) - before).Seconds()
		if _, err := c.settled(ctx); err != nil {
			return err
		}
		if err := c.makes(ctx, change, false, seldom); err != nil {
			return err
		}
		end, err := c.settled(ctx)
		m.wholes = append(m.wholes, (end - before).Seconds())
		return err
	})
	return seconds, err
}

// whole returns the CPU time of each change, of undoing it and of what followed.
func (m *changeCost) whole() measurement {
	next := 0
	return func(context.Context) (float64, error) {
		next++
		return m.wholes[next-1], nil
	}
}

// makes has a change made or undone, and asks until that is served, with a pause before each
// request.
func (c *caddy) makes(ctx context.Context, change change, in bool, pause time.Duration) error {
	versions, rename := change.versions, change.moveOut
	if in {
		versions, rename = versions+1, change.moveIn
	}
	if err := rename(); err != nil {
		return err
	}
	_, err := c.awaitEvery(ctx, pause, "site", change.provider.mirrorPath("index.json"), offers(versions))
	return err
}

// settled waits until a process has had nothing to do for longer than the registry waits
// with what follows a change. It returns the CPU time at the end of its work.
func (c *caddy) settled(ctx context.Context) (time.Duration, error) {
	const (
		interval = 250 * time.Millisecond
		idle     = interval / 40 // CPU time in an interval: Go returns memory for minutes, with a hundredth
		enough   = 7             // intervals
	)
	used := cpuTime(c.Process.Pid)
	worked := used
	for quiet := 0; quiet < enough; {
		select {
		case <-time.After(interval):
		case <-c.exited:
			return 0, c.failure(errors.New("the server ended early"))
		case <-ctx.Done():
			return 0, ctx.Err()
		}
		now := cpuTime(c.Process.Pid)
		if quiet++; now-used > idle {
			quiet, worked = 0, now
		}
		used = now
	}
	return worked, nil
}

// everySecond makes one change a second, if there are any, until it has made that many,
// which is an even number: every other one undoes the change before.
func everySecond(ctx context.Context, changes []change, count int) error {
	if len(changes) == 0 {
		return nil
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for n := range count {
		c := changes[n/2%len(changes)]
		make := c.moveIn
		if n%2 == 1 {
			make = c.moveOut
		}
		if err := make(); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
