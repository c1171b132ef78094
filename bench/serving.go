package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// metadata compares documents with Caddy's `respond`, which has a port for each
// document and nothing else to do, and is asked by the same path. `respond` expands
// placeholders, and looks for them in braces; so it gets a body of the same length
// without braces.
func metadata(ctx context.Context, l *lab, s subject) ([]row, error) {
	t, err := l.tree(l.packages[0])
	if err != nil {
		return nil, err
	}
	hosted, mirrored := t.hosted(), t.mirrored()
	documents := []struct{ name, path string }{
		{"discovery", "/.well-known/terraform.json"},
		{"provider versions", hosted.originPath("versions")},
		{"provider download", hosted.originPath(hosted.versions[0] + "/download/linux/amd64")},
		{"mirror index.json", mirrored.mirrorPath("index.json")},
		{"mirror VERSION.json", mirrored.mirrorPath(mirrored.versions[0] + ".json")},
		{"module versions", t.module.path("versions")},
	}
	var paths []string
	for _, d := range documents {
		paths = append(paths, d.path)
	}
	answers, err := l.answers(ctx, s, t.root, t.providers, paths...)
	if err != nil {
		return nil, err
	}
	sites := []site{{name: "registry", handler: l.registry(t.root)}}
	plain := make([]answer, len(documents))
	for i, a := range answers {
		header := a.header.Clone()
		header.Del("Date")
		header.Del("Server") // Caddy adds both to every answer
		plain[i] = answer{a.status, header, slices.Repeat([]byte("x"), len(a.body))}
		sites = append(sites, site{name: documents[i].name, handler: respond(plain[i].body, header)})
	}
	c, err := l.serving(ctx, s, "documents", t.providers, sites...)
	if err != nil {
		return nil, err
	}
	var rows []row
	for i, d := range documents {
		response, err := c.get(ctx, d.name, "/", "")
		if err != nil {
			return nil, err
		}
		for name, values := range plain[i].header {
			if !slices.Equal(response.header[name], values) {
				return nil, fmt.Errorf("%s: `respond` has %s %q, the registry %q", d.name, name, response.header[name], values)
			}
		}
		ours := newTarget(c.addresses["registry"], c.Process.Pid, d.path, answers[i])
		theirs := newTarget(c.addresses[d.name], c.Process.Pid, d.path, &plain[i])
		rows = append(rows, row{
			what: fmt.Sprintf("%s, %d bytes: CPU time of an answer", d.name, len(answers[i].body)), unit: "s", goal: goal{atLeast: 1},
			cost:    l.asking(c, s.name+"-"+d.name, ours, l.connections, usage.perAnswer),
			against: "Caddy `respond`, as many bytes", reference: l.asking(c, "respond", theirs, l.connections, usage.perAnswer),
		})
	}
	return rows, nil
}

// answers returns a subject's answers on paths, with the whole tree read.
func (l *lab) answers(ctx context.Context, s subject, root string, providers []provider, paths ...string) (all []*answer, err error) {
	err = l.during(ctx, s, "documents", l.registry(root), func(c *caddy) error {
		if _, err := c.indexed(ctx, "site", providers...); err != nil {
			return err
		}
		for _, path := range paths {
			a, err := c.get(ctx, "site", path, "")
			if err != nil {
				return err
			}
			if !a.ok() && a.status != http.StatusNoContent {
				return fmt.Errorf("GET %s: %d: %s", path, a.status, a.body)
			}
			all = append(all, a)
		}
		return nil
	})
	return all, err
}

// serving starts a subject on one core until the experiment ends. The first
// site serves the providers without TLS, and has read them.
func (l *lab) serving(ctx context.Context, s subject, name string, providers []provider, sites ...site) (*caddy, error) {
	c, err := l.caddy(ctx, s, name, true, sites...)
	if err != nil {
		return nil, err
	}
	l.cleanup(c.stop)
	_, err = c.indexed(ctx, sites[0].name, providers...)
	return c, err
}

// asking measures a server that is asked for a target over and over.
func (l *lab) asking(c *caddy, name string, t target, connections int, cost func(usage) float64) measurement {
	return func(ctx context.Context) (float64, error) {
		var u usage
		err := l.profiled(ctx, c, strings.ReplaceAll(name, " ", "-"), func() (err error) {
			u, err = l.load(ctx, t, connections)
			return err
		})
		return cost(u), err
	}
}

// privateRules are the rules of a company with some teams. Mirrored packages are public
// (the third rule), and the client is a CI job of the group `platform` (the ninth). For
// private packages, all rules before are tried.
var privateRules = []string{
	"allow release publish team00 team01 team02",
	"deny group:contractors read team13 team14/*",
	"allow anonymous read registry.terraform.io registry.opentofu.org",
	"allow anonymous read team15/product* team16",
	"allow repo:acme/infrastructure:ref:refs/heads/main read *",
	"allow repo:acme/* read team03 team04",
	"allow group:security read *",
	"allow alice read team00/network* team05",
	"allow group:platform read team00 team01 team02",
	"allow auditor read *",
}

// signature matches the query of a signed link.
var signature = regexp.MustCompile(`\?exp=[0-9]+&sig=[A-Za-z0-9_-]+`)

// private serves one tree twice: to anyone, and by rules, with signed links for
// a client with a token.
func private(ctx context.Context, l *lab, s subject) ([]row, error) {
	t, err := l.tree(l.packages[0])
	if err != nil {
		return nil, err
	}
	open := l.registry(t.root)
	restricted, authorization, err := l.restricted(s, open)
	if err != nil {
		return nil, err
	}
	c, err := l.serving(ctx, s, "private", t.providers, site{name: "open", handler: open}, site{name: "private", handler: restricted})
	if err != nil {
		return nil, err
	}
	hosted := t.hosted()
	var rows []row
	for _, d := range []struct {
		name, path string
		links      int // negative: the document is public
	}{
		{"provider versions", hosted.originPath("versions"), 0},
		{"provider download", hosted.originPath(hosted.versions[0] + "/download/linux/amd64"), 3},
		{"mirror VERSION.json", hosted.mirrorPath(hosted.versions[0] + ".json"), 10},
		{"module download", t.module.path(t.module.versions[0] + "/download"), 1},
		{"mirror index.json", t.mirrored().mirrorPath("index.json"), -1},
	} {
		r, err := l.privateRow(ctx, c, d.name, d.path, d.links, authorization)
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// restricted returns a registry with the privateRules and tokens, and the
// Authorization header of the CI job.
func (l *lab) restricted(s subject, open handler) (restricted handler, authorization string, err error) {
	secret := rand.Text()
	tokens := l.path("tokens-" + s.name)
	var lines []byte
	for i, line := range []string{"ci %x groups=ci,platform", "alice %x groups=dev", "auditor %x", "bob %x groups=contractors", "release %x"} {
		line = strings.Replace(line, "%x", "sha256:%x", 1)
		lines = fmt.Appendf(lines, line+"\n", sha256.Sum256([]byte(strings.Repeat("another ", i)+secret)))
	}
	if err := os.WriteFile(tokens, lines, 0o600); err != nil {
		return nil, "", err
	}
	var rules []any
	for _, rule := range privateRules {
		words := strings.Fields(rule)
		rules = append(rules, map[string]any{"effect": words[0], "who": words[1], "right": words[2], "addresses": words[3:]})
	}
	return open.with("access", map[string]any{"rules": rules}).
		with("auth", []any{map[string]any{"provider": "terraform_tokens", "file": tokens}}), "Bearer " + secret, nil
}

// privateRow compares a document with the same document of the open site. The answers
// differ only in the signatures of that many links. The signatures change every minute,
// so later answers are compared by length.
func (l *lab) privateRow(ctx context.Context, c *caddy, name, path string, links int, authorization string) (r row, err error) {
	r = row{what: fmt.Sprintf("private %s, signed links: %d: CPU time of an answer", name, links), unit: "s", against: "the same tree, open", goal: goal{atLeast: 0.7}}
	refused := http.StatusUnauthorized
	if links < 0 {
		r.what = fmt.Sprintf("public %s of a private registry: CPU time of an answer", name)
		r.goal.atLeast = 0.97 // public packages should cost nothing more; the rest is noise
		refused, authorization, links = http.StatusOK, "", 0
	}
	anonymous, err := c.get(ctx, "private", path, "")
	if err != nil {
		return r, err
	}
	if anonymous.status != refused {
		return r, fmt.Errorf("GET %s without a token: %d, want %d", path, anonymous.status, refused)
	}
	open, err := c.get(ctx, "open", path, "")
	if err != nil {
		return r, err
	}
	private, err := c.get(ctx, "private", path, authorization)
	if err != nil {
		return r, err
	}
	text := func(a *answer) string { return fmt.Sprint(a.status, a.header["X-Terraform-Get"], string(a.body)) }
	signed := text(private)
	if n := len(signature.FindAllString(signed, -1)); n != links || signature.ReplaceAllString(signed, "") != text(open) {
		return r, fmt.Errorf("GET %s: %d signed links, want %d and otherwise the same answers: %s, and %s", path, n, links, signed, text(open))
	}
	ours := newTarget(c.addresses["private"], c.Process.Pid, path, private)
	ours.authorization = authorization
	if links > 0 && len(private.body) > 0 {
		ours.digest = ""
	}
	r.cost = l.asking(c, "private-"+name, ours, l.connections, usage.perAnswer)
	r.reference = l.asking(c, "open", newTarget(c.addresses["open"], c.Process.Pid, path, open), l.connections, usage.perAnswer)
	return r, nil
}

// archive downloads one package over and over on one connection, from the
// registry and from Caddy's `file_server`, which serves the same file.
func archive(ctx context.Context, l *lab, s subject) ([]row, error) {
	big := bigProvider("big", l.archive, 1)
	root, err := l.folder("archive", func(dir string) error { return big.write(dir, l.key) })
	if err != nil {
		return nil, err
	}
	c, err := l.serving(ctx, s, "archive", []provider{big},
		site{name: "registry", handler: l.registry(root)}, site{name: "registry-tls", tls: true, handler: l.registry(root)},
		site{name: "file", handler: fileServer(big.dir(root))}, site{name: "file-tls", tls: true, handler: fileServer(big.dir(root))})
	if err != nil {
		return nil, err
	}
	file := big.packageFile(root, big.versions[0])
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	name := filepath.Base(file)
	ours := newTarget(c.addresses["registry"], c.Process.Pid, big.mirrorPath(name), &answer{status: http.StatusOK, body: content})
	theirs := ours
	theirs.address, theirs.path = c.addresses["file"], "/"+name
	over := func(transport string) row {
		return row{
			what: fmt.Sprintf("package of %s over %s: CPU time of 1 GB", inBytes(l.archive), transport), unit: "s", goal: goal{atLeast: 1},
			cost:    l.asking(c, s.name+"-archive-"+transport, ours, 1, usage.perGigabyte),
			against: "Caddy `file_server`", reference: l.asking(c, "file_server", theirs, 1, usage.perGigabyte),
		}
	}
	rows := []row{over("HTTP")}
	if ours.tls, err = trust(l.certificate.file); err != nil {
		return nil, err
	}
	theirs.tls = ours.tls
	ours.address, theirs.address = c.addresses["registry-tls"], c.addresses["file-tls"]
	return append(rows, over("TLS")), nil
}
