package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/bench/internal/server"
	"github.com/caddy-terraform/caddy-terraform-registry/bench/internal/tree"
)

// while runs a server for as long as f takes.
func while(ctx context.Context, o server.Options, f func(*server.Process) error) error {
	p, err := server.Start(ctx, o)
	if err != nil {
		return err
	}
	return errors.Join(f(p), p.Stop())
}

// indexPatience is how long a registry may take to read a tree.
const indexPatience = 15 * time.Minute

// indexed waits until the registry offers all versions of all providers, and
// returns when that was.
func indexed(ctx context.Context, p *server.Process, site string, providers []tree.Provider) (at time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, indexPatience)
	defer cancel()
	for _, provider := range providers {
		_, at, err = p.Await(ctx, site, mirrorPath(provider, "index.json"), func(a *server.Answer) bool {
			return offers(a, len(provider.Versions))
		})
		if err != nil {
			return at, err
		}
	}
	return at, nil
}

// offers tells whether the mirror's list has so many versions.
func offers(a *server.Answer, versions int) bool {
	var list struct {
		Versions map[string]struct{} `json:"versions"`
	}
	return a.Status == http.StatusOK && json.Unmarshal(a.Body, &list) == nil && len(list.Versions) == versions
}

func ok(a *server.Answer) bool { return a.Status == http.StatusOK }

func mirrorPath(p tree.Provider, file string) string {
	host := p.Hostname
	if host == "" {
		host = server.Host
	}
	return fmt.Sprintf("/v1/mirror/%s/%s/%s/%s", host, p.Namespace, p.Type, file)
}

func versionsPath(p tree.Provider) string {
	return fmt.Sprintf("/v1/providers/%s/%s/versions", p.Namespace, p.Type)
}
