package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/bench/internal/server"
	"github.com/caddy-terraform/caddy-terraform-registry/bench/internal/tree"
)

// measurePublish renames something into the tree of a registry that serves,
// and asks until it is there: a file into a provider's folder, and the folder
// of a new provider.
func measurePublish(ctx context.Context, l *lab) ([]result, error) {
	t, err := l.tree(ctx, l.packages.values[0])
	if err != nil {
		return nil, err
	}
	p := publication{lab: l, root: t.Root, provider: tree.Provider{Namespace: "bench", Type: "published"}}
	namespace := filepath.Dir(p.provider.Dir(p.root))
	defer os.RemoveAll(namespace)
	if err := p.stageAndRename("1.0.0"); err != nil {
		return nil, err
	}
	file := l.publishResult("file", t.Packages)
	folder := l.publishResult("folder of a new provider", t.Packages)
	o := l.server(fmt.Sprint("warm", t.Packages), l.registry("site", t.Root, l.rescan))
	err = while(ctx, o, func(process *server.Process) error {
		if _, err := indexed(ctx, process, "site", t.Providers); err != nil {
			return err
		}
		p.process = process
		if err := p.rounds(ctx, &file, p.file); err != nil {
			return err
		}
		return p.rounds(ctx, &folder, p.folder)
	})
	return []result{file, folder}, err
}

func (l *lab) publishResult(what string, packages int) result {
	rescan := "its default"
	if l.rescan != "" {
		rescan = l.rescan
	}
	return result{
		what: fmt.Sprintf("%s renamed in → served, beside %d packages", what, packages), against: "–",
		goal: goal{atMost: 1}, text: secondsText,
		details: []string{"asked every " + server.Poll.String() + ", `rescan` is " + rescan},
	}
}

// A publication puts things into a tree.
type publication struct {
	*lab
	root     string
	provider tree.Provider
	process  *server.Process
}

// rounds publishes again and again until it takes too long once.
func (p *publication) rounds(ctx context.Context, r *result, publish func(round int) (path string, err error)) error {
	for round := range p.lab.rounds {
		progress("%s: round %d of %d", r.what, round+1, p.lab.rounds)
		path, err := publish(round)
		began := time.Now()
		if err != nil {
			return err
		}
		waiting, cancel := context.WithTimeout(ctx, p.patience)
		_, at, err := p.process.Await(waiting, "site", path, holdsPackage)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			r.values, r.missed = nil, true
			r.problem = "not within " + secondsText(p.patience.Seconds())
			return nil
		}
		if err != nil {
			return err
		}
		r.values = append(r.values, at.Sub(began).Seconds())
	}
	return nil
}

// holdsPackage tells the mirror's answer for a version it has from that for one
// that it has not.
func holdsPackage(a *server.Answer) bool { return ok(a) && len(a.Body) > len(`{"archives":{}}`) }

func (p *publication) stageAndRename(version string) error {
	file, name, err := p.provider.Stage(p.provider.Dir(p.root), version)
	if err != nil {
		return err
	}
	return os.Rename(file, name)
}

func (p *publication) file(round int) (string, error) {
	version := fmt.Sprintf("1.%d.0", round+1)
	return mirrorPath(p.provider, version+".json"), p.stageAndRename(version)
}

// folder makes the folder where the registry does not look: its name is hidden.
func (p *publication) folder(round int) (string, error) {
	provider := p.provider
	provider.Type = fmt.Sprintf("new%d", round)
	const version = "1.0.0"
	namespace := filepath.Dir(provider.Dir(p.root))
	hidden := filepath.Join(namespace, "."+provider.Type)
	file, name, err := provider.Stage(hidden, version)
	if err != nil {
		return "", err
	}
	if err := os.Rename(file, name); err != nil {
		return "", err
	}
	return mirrorPath(provider, version+".json"), os.Rename(hidden, provider.Dir(p.root))
}
