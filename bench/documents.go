package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/bench/internal/load"
	"github.com/caddy-terraform/caddy-terraform-registry/bench/internal/server"
	"github.com/caddy-terraform/caddy-terraform-registry/bench/internal/tree"
)

// A document is one that clients ask for, with the registry's answer, which
// the other contenders are given to answer with.
type document struct {
	name, path string
	answer     *server.Answer
}

// documentsOf are those of a tree's first provider and module.
func documentsOf(t *tree.Tree) []document {
	own, mirrored, module := t.Own(), t.Mirrored(), t.Module
	return []document{
		{name: "discovery", path: "/.well-known/terraform.json"},
		{name: "provider versions", path: versionsPath(own)},
		{name: "provider download", path: fmt.Sprintf("/v1/providers/%s/%s/%s/download/linux/amd64", own.Namespace, own.Type, own.Versions[0])},
		{name: "mirror index.json", path: mirrorPath(mirrored, "index.json")},
		{name: "mirror VERSION.json", path: mirrorPath(mirrored, mirrored.Versions[0]+".json")},
		{name: "module versions", path: fmt.Sprintf("/v1/modules/%s/%s/%s/versions", module.Namespace, module.Name, module.System)},
	}
}

// askFor fills in the registry's answers.
func (l *lab) askFor(ctx context.Context, t *tree.Tree, documents []document) error {
	o := l.server("documents", l.registry("registry", t.Root, ""))
	return while(ctx, o, func(p *server.Process) error {
		if _, err := indexed(ctx, p, "registry", t.Providers); err != nil {
			return err
		}
		for i := range documents {
			d := &documents[i]
			answer, err := p.Get(ctx, "registry", d.path)
			if err != nil {
				return err
			}
			if answer.Status != http.StatusOK && answer.Status != http.StatusNoContent {
				return fmt.Errorf("%s: the registry answers %d: %s", d.path, answer.Status, answer.Body)
			}
			d.answer = answer
		}
		return nil
	})
}

// header is the answer's, without what Caddy adds to every answer.
func (d document) header() http.Header {
	h := d.answer.Header.Clone()
	h.Del("Date")
	h.Del("Server")
	return h
}

// filePath is where `file_server` has the document. The file has the ending
// that tells its type.
func (d document) filePath() string {
	if strings.HasSuffix(d.path, ".json") {
		return d.path
	}
	return d.path + ".json"
}

func (d document) writeFile(root string) error {
	file := filepath.Join(root, filepath.FromSlash(d.filePath()))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, d.answer.Body, 0o644)
}

// respond answers with the document. plain answers with as many bytes that
// have no braces: `respond` expands placeholders, and so looks through what
// stands in braces for each answer.
func (d document) respond(name string, tls bool) server.Site {
	return server.Site{Name: name, TLS: tls, Handler: server.Respond(d.answer.Body, d.header())}
}

func (d document) plain(name string) server.Site {
	return server.Site{Name: name, Handler: server.Respond(d.plainBody(), d.header())}
}

func (d document) plainBody() []byte { return bytes.Repeat([]byte("x"), len(d.answer.Body)) }

// job asks for the document.
func (d document) job(l *lab, p *server.Process, protocol load.Protocol, site, path string, body []byte) load.Job {
	j := load.Job{
		Protocol: protocol, Address: p.Address(site), Host: server.Host, Path: path,
		Connections: l.connections, Warmup: l.slice / 4, Duration: l.slice,
		Status: d.answer.Status, Length: int64(len(body)), SHA256: load.Digest(body), Server: p.PID(),
	}
	if protocol != load.HTTP {
		j.CA = l.certificate.File
	}
	return j
}
