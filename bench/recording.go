package main

import (
	"bytes"
	"context"
	"fmt"
	"strconv"

	"github.com/dustin/go-humanize"
)

const without = "without a log"

// recording compares a registry that has a transparency log with the same registry without
// one: a first read, and a warm start.
func recording(ctx context.Context, l *lab, s subject) ([]row, error) {
	t, err := l.onRecord(ctx, s)
	if err != nil {
		return nil, err
	}
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
	what := t.onRecord()
	return []row{
		{
			what: what + "CPU time of the first read, until they are", unit: "s", slowness: 8,
			cost:    read(logged(plain), func(c *caddy) error { return c.records(ctx, t) }),
			against: without, reference: read(plain, func(*caddy) error { return nil }),
		},
		{
			what: what + "warm start, until everything is offered", unit: "s", goal: goal{atMost: 1.1},
			cost:    l.startOf(s, "with-log", logged(plain), absentPath, isAbsent),
			against: without, reference: l.startOf(s, "without-log", plain, absentPath, isAbsent),
		},
	}, nil
}

// onRecord has a process with a log and one without it read the largest tree, so that later
// ones know it.
func (l *lab) onRecord(ctx context.Context, s subject) (*tree, error) {
	t, err := l.tree(l.packages[len(l.packages)-1])
	if err != nil {
		return nil, err
	}
	plain := l.registry(t.root)
	err = l.during(ctx, s, "with-log", logged(plain), func(c *caddy) error { return c.records(ctx, t) })
	if err != nil {
		return nil, err
	}
	return t, l.during(ctx, s, "without-log", plain, func(c *caddy) error {
		_, err := c.indexed(ctx, "site", t.providers...)
		return err
	})
}

func (t *tree) onRecord() string {
	return humanize.Comma(int64(t.packages)) + " packages on record: "
}

// appending compares the costs of changes of a tree for a process with a log and for
// one without it.
func appending(ctx context.Context, l *lab, s subject) ([]row, error) {
	t, err := l.onRecord(ctx, s)
	if err != nil {
		return nil, err
	}
	plain := l.registry(t.root)
	with, err := l.changingTree(ctx, s, t, "with-log", logged(plain))
	if err != nil {
		return nil, err
	}
	unlogged, err := l.changingTree(ctx, s, t, "without-log", plain)
	if err != nil {
		return nil, err
	}
	ours, err := with.measure(l, false)
	if err != nil {
		return nil, err
	}
	theirs, err := unlogged.measure(l, false)
	if err != nil {
		return nil, err
	}
	return []row{
		{
			what: t.onRecord() + "one folder changes: CPU time until it is served", unit: "s", goal: goal{atMost: 1.1}, slowness: 2,
			cost: ours.served, against: without, reference: theirs.served,
		},
		{
			what: t.onRecord() + "one folder changes and changes back: CPU time until nothing follows", unit: "s", slowness: 2,
			cost: ours.whole(), against: without, reference: theirs.whole(),
		},
	}, nil
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

// lookup asks for the entries of one version of a module in the log of a mirror of the public
// registry, and compares that with the versions of the module.
func lookup(ctx context.Context, l *lab, s subject) ([]row, error) {
	t, err := l.treeOf(publicRegistry(l.public))
	if err != nil {
		return nil, err
	}
	if err := l.readOnce(ctx, s, t); err != nil {
		return nil, err
	}
	c, err := l.caddy(ctx, s, publicStorage(t), true, site{name: "site", handler: logged(l.registry(t.root)).with("rescan", "24h")})
	if err != nil {
		return nil, err
	}
	l.cleanup(c.stop)
	if err := c.records(ctx, t); err != nil {
		return nil, err
	}
	if _, err := c.settled(ctx); err != nil {
		return nil, err
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
		return nil, err
	}
	theirs, err := target(module.path("versions"))
	if err != nil {
		return nil, err
	}
	return []row{{
		what: fmt.Sprintf("lookup in a log of %s entries: CPU time of an answer", humanize.Comma(int64(t.packages+t.moduleVersions()))), unit: "s", goal: goal{atLeast: 0.3},
		cost:    l.asking(c, s.name+"-lookup", ours, l.connections, usage.perAnswer),
		against: "`versions` of the module", reference: l.asking(c, "versions", theirs, l.connections, usage.perAnswer),
	}}, nil
}
