package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/caddy-terraform/caddy-terraform-registry/bench/internal/load"
	"github.com/caddy-terraform/caddy-terraform-registry/bench/internal/server"
	"github.com/caddy-terraform/caddy-terraform-registry/bench/internal/tree"
)

// bigProvider is the provider of large packages.
func bigProvider(content tree.Content, size int64) tree.Big {
	p := tree.Provider{Hostname: "registry.terraform.io", Namespace: "bench", Type: "big", Versions: []string{"1.0.0"}}
	return tree.Big{Provider: p, Size: size, Content: content}
}

// measureArchive downloads one file over and over on one connection, from the
// registry and from Caddy's `file_server`, which serves the very same file.
func measureArchive(ctx context.Context, l *lab) ([]result, error) {
	root := l.path("archive")
	defer os.RemoveAll(root)
	big := bigProvider(tree.Noise, int64(l.archive))
	progress("making a file of %s", bytesText(float64(l.archive)))
	file, err := big.Write(root, big.Versions[0])
	if err != nil {
		return nil, err
	}
	length, digest, err := digestFile(file)
	if err != nil {
		return nil, err
	}
	var sites []server.Site
	for _, tls := range []bool{false, true} {
		registry := l.registry(siteName("registry", tls), root, "")
		registry.TLS = tls
		sites = append(sites, registry, server.Site{Name: siteName("file", tls), TLS: tls, Handler: server.FileServer(filepath.Join(root, "providers"))})
	}
	var results []result
	err = while(ctx, l.pinned("archive", sites...), func(p *server.Process) error {
		if _, err := indexed(ctx, p, "registry", []tree.Provider{big.Provider}); err != nil {
			return err
		}
		client, err := l.client(ctx)
		if err != nil {
			return err
		}
		defer client.Close()
		name := filepath.Base(file)
		for _, tls := range []bool{false, true} {
			job := load.Job{
				Protocol: load.HTTP, Host: server.Host, Connections: 1, Warmup: l.slice / 4, Duration: l.slice,
				Length: length, SHA256: digest, Server: p.PID(),
			}
			transport := "HTTP"
			if tls {
				job.Protocol, job.CA, transport = load.HTTPS, l.certificate.File, "TLS"
			}
			ours, theirs := &contender{name: "registry", job: job}, &contender{name: "file_server", job: job}
			ours.job.Address, ours.job.Path = p.Address(siteName("registry", tls)), mirrorPath(big.Provider, name)
			theirs.job.Address, theirs.job.Path = p.Address(siteName("file", tls)), fmt.Sprintf("/%s/%s/%s/%s", big.Hostname, big.Namespace, big.Type, name)
			if err := compete(ctx, "archive over "+transport, l.rounds, client, ours, theirs); err != nil {
				return err
			}
			if err := l.profileContender(ctx, p, client, "archive-"+string(job.Protocol), ours); err != nil {
				return err
			}
			results = append(results, result{
				what: fmt.Sprintf("archive throughput, %s, %s", bytesText(float64(l.archive)), transport), against: "Caddy `file_server`",
				goal:    goal{atLeast: 1},
				values:  ratios(ours.each(load.Result.Throughput), theirs.each(load.Result.Throughput)),
				details: []string{ours.throughputDetail(), theirs.throughputDetail()},
			})
		}
		return nil
	})
	return results, err
}

func siteName(name string, tls bool) string {
	if tls {
		return name + "-tls"
	}
	return name
}

func digestFile(name string) (int64, string, error) {
	f, err := os.Open(name)
	if err != nil {
		return 0, "", err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	return n, hex.EncodeToString(h.Sum(nil)), err
}
