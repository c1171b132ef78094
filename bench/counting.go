package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
)

// withinNoise is the goal of what must cost the same.
var withinNoise = goal{atLeast: 1 / 1.02}

// counting serves one tree twice: with counts of downloads, and without. Documents are not
// counted; packages are, of which a small one shows the cost of a count.
func counting(ctx context.Context, l *lab, s subject) ([]row, error) {
	t, err := l.tree(l.packages[0])
	if err != nil {
		return nil, err
	}
	hosted, mirrored := t.hosted(), t.mirrored()
	without := l.registry(t.root)
	c, err := l.serving(ctx, s, "counting", t.providers, site{name: "without", handler: without}, site{name: "with", handler: without.with("usage", map[string]any{})})
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, asked := range []struct{ name, path string }{
		{"provider versions", hosted.originPath("versions")},
		{"mirror VERSION.json", mirrored.mirrorPath(mirrored.versions[0] + ".json")},
		{"module versions", t.module.path("versions")},
		{"a module's package", t.module.path(t.module.versions[0] + "/archive.tar.gz")},
	} {
		a, err := c.get(ctx, "with", asked.path, "")
		if err != nil {
			return nil, err
		}
		if !a.ok() {
			return nil, fmt.Errorf("GET %s: %d: %s", asked.path, a.status, a.body)
		}
		on := func(name string) measurement {
			return l.asking(c, s.name+"-"+name+"-"+asked.name, newTarget(c.addresses[name], c.Process.Pid, asked.path, a), l.connections, usage.perAnswer)
		}
		rows = append(rows, row{
			what: fmt.Sprintf("%s, %d bytes, with `usage`: CPU time of an answer", asked.name, len(a.body)), unit: "s", goal: withinNoise,
			cost: on("with"), against: "the same tree, without", reference: on("without"),
		})
	}
	large, err := l.countingLarge(ctx, s)
	return append(rows, large), err
}

// countingLarge downloads one large package over and over on one connection.
func (l *lab) countingLarge(ctx context.Context, s subject) (row, error) {
	big := bigProvider("big", l.archive, 1)
	root, err := l.folder("archive", func(dir string) error { return big.write(dir, l.key) })
	if err != nil {
		return row{}, err
	}
	c, err := l.serving(ctx, s, "counting-large", []provider{big},
		site{name: "without", handler: l.registry(root)}, site{name: "with", handler: l.registry(root).with("usage", map[string]any{})})
	if err != nil {
		return row{}, err
	}
	file := big.packageFile(root, big.versions[0])
	content, err := os.ReadFile(file)
	if err != nil {
		return row{}, err
	}
	on := func(name string) measurement {
		t := newTarget(c.addresses[name], c.Process.Pid, big.mirrorPath(filepath.Base(file)), &answer{status: http.StatusOK, body: content})
		return l.asking(c, s.name+"-large-"+name, t, 1, usage.perGigabyte)
	}
	return row{
		what: fmt.Sprintf("package of %s over HTTP, with `usage`: CPU time of 1 GB", inBytes(l.archive)), unit: "s", goal: withinNoise,
		cost: on("with"), against: "the same tree, without", reference: on("without"),
	}, nil
}
