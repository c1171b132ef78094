package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/dustin/go-humanize"
)

func inBytes(n int64) string { return humanize.Bytes(uint64(n)) }

// warmStart starts a registry again on a tree that it has read before, until the first
// answer, and until everything is offered. In the same round it measures how long Caddy needs to
// start `respond` alone, and subtracts that time, unless two builds are compared.
func warmStart(ctx context.Context, l *lab, s subject) ([]row, error) {
	return l.bySize(func(t *tree, packages string) ([]row, error) {
		path := t.hosted().originPath("versions")
		answers, err := l.answers(ctx, s, t.root, t.providers, path)
		if err != nil {
			return nil, err
		}
		return l.startingAgain(s, "documents", t, fmt.Sprintf("warm start, %s packages", packages), path, answers[0].equals), nil
	})
}

// bySize returns the rows for the tree of each size. The function gets the number of its packages.
func (l *lab) bySize(measure func(t *tree, packages string) ([]row, error)) (rows []row, err error) {
	for _, packages := range l.packages {
		t, err := l.tree(packages)
		if err != nil {
			return nil, err
		}
		more, err := measure(t, humanize.Comma(int64(packages)))
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
	}
	return rows, nil
}

// startingAgain measures starts of processes of that name, which have read the tree before: until
// they give the right answer on a path, and until everything is offered.
func (l *lab) startingAgain(s subject, name string, t *tree, what, path string, right func(*answer) bool) []row {
	start := func(what, path string, right func(*answer) bool) row {
		return row{
			what: what, unit: "s",
			cost:    l.startOf(s, name, l.registry(t.root), path, right),
			against: "`find ROOT -type f -printf '%s %T@\\n'`",
			reference: func(ctx context.Context) (float64, error) {
				return timeCommand(ctx, "find", t.root, "-type", "f", "-printf", `%s %T@\n`)
			},
		}
	}
	first := start(what, path, right)
	first.goal = goal{atMost: 2.5}
	return []row{first, start(what+", until everything is offered", absentPath, isAbsent)}
}

// startOf measures starts of processes of that name until they give the right answer on a
// path.
func (l *lab) startOf(s subject, name string, h handler, path string, right func(*answer) bool) measurement {
	startWith := func(ctx context.Context, name string, h handler, path string, right func(*answer) bool) (seconds float64, err error) {
		err = l.during(ctx, s, name, h, func(c *caddy) error {
			at, err := c.await(ctx, "site", path, right)
			seconds = at.Sub(c.started).Seconds()
			return err
		})
		return seconds, err
	}
	return func(ctx context.Context) (float64, error) {
		seconds, err := startWith(ctx, name, h, path, right)
		if err != nil || l.against != "" { // both builds have the same start of Caddy
			return seconds, err
		}
		alone, err := startWith(ctx, "respond", respond(nil, nil), "/", (*answer).ok)
		return seconds - alone, err
	}
}

// rescan has a running registry scan a tree that has not changed.
func rescan(ctx context.Context, l *lab, s subject) ([]row, error) {
	return l.bySize(func(t *tree, packages string) ([]row, error) {
		return []row{{
			what: fmt.Sprintf("rescan of %s packages", packages), unit: "s", goal: goal{atMost: 1},
			cost: l.rescanOf(s, "documents", t, t.providers),
		}}, nil
	})
}

// rescanOf measures scans of a tree that processes of that name have read before. They are ready
// when they offer the providers.
func (l *lab) rescanOf(s subject, name string, t *tree, providers []provider) measurement {
	return func(ctx context.Context) (seconds float64, err error) {
		err = l.during(ctx, s, name, l.registry(t.root), func(c *caddy) error {
			if _, err := c.indexed(ctx, "site", providers...); err != nil {
				return err
			}
			began := time.Now()
			_, err := c.adminRequest(ctx, http.MethodPost, "/terraform_registry/rescan")
			seconds = time.Since(began).Seconds()
			return err
		})
		return seconds, err
	}
}

// fresh runs a subject that has not read anything yet, for as long as f takes.
func (l *lab) fresh(ctx context.Context, s subject, h handler, f func(*caddy) error) error {
	if err := os.RemoveAll(l.storage(s, "fresh")); err != nil {
		return err
	}
	return l.during(ctx, s, "fresh", h, f)
}

// coldIndex has a registry read packages for the first time, on all cores, and the
// tools of the system, on one.
func coldIndex(_ context.Context, l *lab, s subject) ([]row, error) {
	const size = 32e6
	big := bigProvider("big", size, int(l.cold/size)+1)
	root, err := l.folder("cold", func(dir string) error { return big.write(dir, l.key) })
	if err != nil {
		return nil, err
	}
	const script = `for f; do sha256sum "$f" && unzip -p "$f" | sha256sum || exit 1; done`
	tools := []string{"sh", "-c", script, "sh"}
	for _, version := range big.versions {
		tools = append(tools, big.packageFile(root, version))
	}
	return []row{{
		what: fmt.Sprintf("cold index, %s of zips", inBytes(l.cold)), unit: "s", goal: goal{atMost: 0.3}, slowness: 8,
		cost:      func(ctx context.Context) (float64, error) { return l.read(ctx, s, root, big) },
		against:   "`sha256sum` and `unzip -p | sha256sum` on one core",
		reference: func(ctx context.Context) (float64, error) { return timeCommand(ctx, tools...) },
	}}, nil
}

// read returns the time until a registry without a memo offers a provider, for which it
// is asked all the time.
func (l *lab) read(ctx context.Context, s subject, root string, p provider) (seconds float64, err error) {
	err = l.fresh(ctx, s, l.registry(root), func(c *caddy) (err error) {
		seconds, err = c.indexed(ctx, "site", p)
		return err
	})
	return seconds, err
}

// askedForFirst asks a registry without a memo for one of many packages, and then for
// the same package in a tree without others. The others are links to a few files, which
// saves space on the disk; each path is read.
func askedForFirst(_ context.Context, l *lab, s subject) ([]row, error) {
	const size = 100e6
	wanted := bigProvider("wanted", min(l.archive, size), 1)
	alone, err := l.folder("alone", func(dir string) error { return wanted.write(dir, l.key) })
	if err != nil {
		return nil, err
	}
	root, err := l.folder("backlog", func(dir string) error {
		files := bigProvider("backlog", min(l.archive, size), 10)
		if err := errors.Join(wanted.write(dir, l.key), files.write(dir, l.key)); err != nil {
			return err
		}
		for i := int64(len(files.versions)); i < l.backlog/files.size; i++ {
			original := files.packageFile(dir, files.versions[i%int64(len(files.versions))])
			if err := os.Link(original, files.packageFile(dir, fmt.Sprintf("2.%d.0", i))); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return []row{{
		what: fmt.Sprintf("package of %s asked for with %s unread", inBytes(wanted.size), inBytes(l.backlog)), unit: "s", goal: goal{atMost: 1.5}, slowness: 8,
		cost:      func(ctx context.Context) (float64, error) { return l.read(ctx, s, root, wanted) },
		against:   "that package alone",
		reference: func(ctx context.Context) (float64, error) { return l.read(ctx, s, alone, wanted) },
	}}, nil
}

// heap compares the live memory with the live memory of a process with an empty tree.
func heap(_ context.Context, l *lab, s subject) ([]row, error) {
	return l.bySize(func(t *tree, packages string) ([]row, error) {
		return []row{{
			what: fmt.Sprintf("heap of each of %s packages", packages), unit: "B", goal: goal{atMost: 1000},
			cost: l.heapOfEach(s, "documents", t, t.providers),
		}}, nil
	})
}

// heapOfEach measures the live memory for each package of a tree. Processes of that name know the
// tree when they offer the providers.
func (l *lab) heapOfEach(s subject, name string, t *tree, providers []provider) measurement {
	live := func(ctx context.Context, name, root string, providers []provider) (size float64, err error) {
		err = l.during(ctx, s, name, l.registry(root), func(c *caddy) error {
			_, err := c.await(ctx, "site", "/.well-known/terraform.json", (*answer).ok)
			if err == nil {
				_, err = c.indexed(ctx, "site", providers...)
			}
			if err != nil {
				return err
			}
			size, err = c.liveHeap(ctx)
			return err
		})
		return size, err
	}
	return func(ctx context.Context) (float64, error) {
		empty, err := l.folder("empty", func(string) error { return nil })
		if err != nil {
			return 0, err
		}
		without, err := live(ctx, "empty", empty, nil)
		if err != nil {
			return 0, err
		}
		with, err := live(ctx, name, t.root, providers)
		return (with - without) / float64(t.packages), err
	}
}

// renamedIn renames the second package of a provider into the tree of a running
// registry, and asks until it is offered.
func renamedIn(_ context.Context, l *lab, s subject) ([]row, error) {
	t, err := l.tree(l.packages[0])
	if err != nil {
		return nil, err
	}
	before, after := bigProvider("added", 0, 1), bigProvider("added", 0, 2)
	file := after.packageFile(t.root, after.versions[1])
	l.cleanup(func() error { return os.RemoveAll(filepath.Dir(after.dir(t.root))) })
	return []row{{
		what: fmt.Sprintf("file renamed in → served, beside %s packages", humanize.Comma(int64(t.packages))), unit: "s", goal: goal{atMost: 1}, slowness: 3,
		cost: func(ctx context.Context) (seconds float64, err error) {
			if err := errors.Join(after.write(t.root, l.key), os.Rename(file, file+".tmp")); err != nil {
				return 0, err
			}
			err = l.during(ctx, s, "documents", l.registry(t.root), func(c *caddy) error {
				if _, err := c.indexed(ctx, "site", append(slices.Clone(t.providers), before)...); err != nil {
					return err
				}
				renamed := time.Since(c.started).Seconds()
				if err := os.Rename(file+".tmp", file); err != nil {
					return err
				}
				seconds, err = c.indexed(ctx, "site", after)
				seconds -= renamed
				return err
			})
			return seconds, err
		},
	}}, nil
}

// largePackage watches the heap of a registry with an empty tree, and then while
// a large package appears there, is read and is downloaded.
func largePackage(_ context.Context, l *lab, s subject) ([]row, error) {
	big := bigProvider("large", l.large, 1)
	aside, err := l.folder("aside", func(dir string) error { return big.write(dir, l.key) })
	if err != nil {
		return nil, err
	}
	root, err := l.folder("large", func(string) error { return nil })
	if err != nil {
		return nil, err
	}
	appear := func(ctx context.Context, c *caddy) error {
		file := big.packageFile(root, big.versions[0])
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.Link(big.packageFile(aside, big.versions[0]), file); err != nil {
			return err
		}
		if _, err := c.indexed(ctx, "site", big); err != nil {
			return err
		}
		for _, url := range []string{"http://" + c.addresses["site"], "https://" + c.addresses["site-tls"]} {
			if _, err := l.download(ctx, url+big.mirrorPath(filepath.Base(file))); err != nil {
				return err
			}
		}
		return nil
	}
	return []row{{
		what: fmt.Sprintf("%s zip indexed and served: peak heap above idle", inBytes(l.large)), unit: "B", goal: goal{atMost: 32e6}, slowness: 8,
		cost: func(ctx context.Context) (float64, error) {
			if err := errors.Join(os.RemoveAll(big.dir(root)), os.RemoveAll(l.storage(s, "large"))); err != nil {
				return 0, err
			}
			h := l.registry(root).with("rescan", "1s")
			c, err := l.caddy(ctx, s, "large", false, site{name: "site", handler: h}, site{name: "site-tls", tls: true, handler: h})
			if err != nil {
				return 0, err
			}
			above, err := c.peakAboveIdle(ctx, appear)
			return above, errors.Join(err, c.stop())
		},
	}}, nil
}

// peakAboveIdle returns the largest heap while f runs, garbage included, minus the
// largest heap while there are only rescans. Both include the cost of measuring.
func (c *caddy) peakAboveIdle(ctx context.Context, f func(context.Context, *caddy) error) (float64, error) {
	if _, err := c.await(ctx, "site", "/.well-known/terraform.json", (*answer).ok); err != nil {
		return 0, err
	}
	if _, err := c.liveHeap(ctx); err != nil { // collects the garbage of the start
		return 0, err
	}
	idle, err := c.peak(ctx, func(context.Context, *caddy) error {
		time.Sleep(2 * time.Second)
		return nil
	})
	if err != nil {
		return 0, err
	}
	busy, err := c.peak(ctx, f)
	return busy - idle, err
}

func (c *caddy) peak(ctx context.Context, f func(context.Context, *caddy) error) (peak float64, err error) {
	const interval = 10 * time.Millisecond
	done := make(chan error, 1)
	go func() { done <- f(ctx, c) }()
	for {
		select {
		case err := <-done:
			return peak, err
		case <-time.After(interval):
			size, err := c.heap(ctx)
			if err != nil {
				return 0, err
			}
			peak = max(peak, size)
		}
	}
}
