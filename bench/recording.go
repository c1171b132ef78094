package main

import (
	"bytes"
	"context"
	"fmt"
	"strconv"

	"github.com/dustin/go-humanize"
)

// recording compares a registry that has a transparency log with the same registry without
// one: a first read, a warm start and a change. The last row looks a version up in a log of
// all of the public registry.
func recording(ctx context.Context, l *lab, s subject) ([]row, error) {
	t, err := l.tree(l.packages[len(l.packages)-1])
	if err != nil {
		return nil, err
	}
	what := humanize.Comma(int64(t.packages)) + " packages on record: "
	const without = "without a log"
	plain := l.registry(t.root)
	read := func(h handler, done func(*caddy) error) measurement {
		return func(ctx context.Context) (seconds float64, err error) {
			err = l.fresh(ctx, s, h, func(c *caddy) error {
				if _, err := c.indexed(ctx, "site", t.providers...); err != nil {
					return err
				}
				err := done(c)
				seconds = cpuTime(c.Process.Pid).Seconds()
				return err
			})
			return seconds, err
		}
	}
	rows := []row{{
		what: what + "CPU time of the first read, until they are", unit: "s", slowness: 8,
		cost:    read(logged(plain), func(c *caddy) error { return c.records(ctx, t) }),
		against: without, reference: read(plain, func(*caddy) error { return nil }),
	}}

	path := t.hosted().originPath("versions")
	var right *answer
	for _, h := range []struct {
		name    string
		handler handler
	}{{"without-log", plain}, {"with-log", logged(plain)}} {
		err := l.during(ctx, s, h.name, h.handler, func(c *caddy) (err error) {
			if _, err := c.indexed(ctx, "site", t.providers...); err != nil {
				return err
			}
			if right, err = c.get(ctx, "site", path, ""); err != nil || h.name == "without-log" {
				return err
			}
			return c.records(ctx, t)
		})
		if err != nil {
			return nil, err
		}
	}
	rows = append(rows, row{
		what: what + "warm start", unit: "s", goal: goal{atMost: 1.1},
		cost:    l.startOf(s, "with-log", logged(plain), path, right),
		against: without, reference: l.startOf(s, "without-log", plain, path, right),
	})

	changes, err := l.changesOnRecord(ctx, s, t, plain)
	if err != nil {
		return nil, err
	}
	changes.what, changes.against = what+"one folder changes: CPU time until it is served", without
	lookup, err := l.lookup(ctx, s)
	return append(rows, changes, lookup), err
}

// logged is a registry with a log in its data directory.
func logged(h handler) handler {
	return h.with("tlog", map[string]any{"origin": host + "/v1/tlog"})
}

// records waits until everything in a tree is on record.
func (c *caddy) records(ctx context.Context, t *tree) error {
	entries := []byte(strconv.Itoa(t.packages + t.moduleVersions()))
	_, err := c.await(ctx, "site", "/v1/tlog/checkpoint", func(a *answer) bool {
		lines := bytes.Split(a.body, []byte("\n"))
		return a.ok() && len(lines) > 1 && bytes.Equal(lines[1], entries)
	})
	return err
}

// changesOnRecord compares the same changes of a tree, noticed by two processes at once.
func (l *lab) changesOnRecord(ctx context.Context, s subject, t *tree, plain handler) (row, error) {
	with, err := l.changingTree(ctx, s, t, "with-log", logged(plain))
	if err != nil {
		return row{}, err
	}
	without, err := l.changingTree(ctx, s, t, "without-log", plain)
	if err != nil {
		return row{}, err
	}
	ours, err := with.measure(l, false)
	if err != nil {
		return row{}, err
	}
	theirs, err := without.measure(l, false)
	return row{unit: "s", goal: goal{atMost: 1.1}, slowness: 2, cost: ours.served, reference: theirs.served}, err
}

// lookup asks for the entries of one version of a module in the log of a mirror of the public
// registry, and compares that with the versions of the module.
func (l *lab) lookup(ctx context.Context, s subject) (row, error) {
	t, err := l.treeOf(publicRegistry(l.public))
	if err != nil {
		return row{}, err
	}
	if err := l.readOnce(ctx, s, t); err != nil {
		return row{}, err
	}
	c, err := l.caddy(ctx, s, publicStorage(t), true, site{name: "site", handler: logged(l.registry(t.root)).with("rescan", "24h")})
	if err != nil {
		return row{}, err
	}
	l.cleanup(c.stop)
	if err := c.records(ctx, t); err != nil {
		return row{}, err
	}
	if _, err := c.settled(ctx); err != nil {
		return row{}, err
	}
	module := t.module
	target := func(path string) (target, error) {
		a, err := c.get(ctx, "site", path, "")
		if err == nil && !a.ok() {
			err = fmt.Errorf("GET %s: %d: %s", path, a.status, a.body)
		}
		return newTarget(c.addresses["site"], c.Process.Pid, path, a), err
	}
	ours, err := target(fmt.Sprintf("/v1/tlog/lookup/modules/%s/%s/aws/%s", module.namespace, module.name, module.versions[0]))
	if err != nil {
		return row{}, err
	}
	theirs, err := target(module.path("versions"))
	return row{
		what: fmt.Sprintf("lookup in a log of %s entries: CPU time of an answer", humanize.Comma(int64(t.packages+t.moduleVersions()))), unit: "s", goal: goal{atLeast: 0.3},
		cost:    l.asking(c, s.name+"-lookup", ours, l.connections, usage.perAnswer),
		against: "`versions` of the module", reference: l.asking(c, "versions", theirs, l.connections, usage.perAnswer),
	}, err
}
