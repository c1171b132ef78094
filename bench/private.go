package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/access/tokenfile"
	"github.com/caddy-terraform/caddy-terraform-registry/bench/internal/load"
	"github.com/caddy-terraform/caddy-terraform-registry/bench/internal/server"
	"github.com/caddy-terraform/caddy-terraform-registry/bench/internal/tree"
)

// privateRules are those of a company with some teams. It mirrors what is
// public for everybody (the third rule), and the client is a CI job of the
// group `platform` (the ninth). Each request for what is not public goes
// through them three times: to see that it is not, to see that anonymous may
// not, and for the one who asks.
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

// privateTokens are who has a token, with the rest of the line; the first is
// the client.
var privateTokens = []string{"ci groups=ci,platform", "alice groups=dev", "auditor", "bob groups=contractors", "release"}

// A privateDocument is one that the client may read and anonymous may not.
type privateDocument struct {
	document
	links int // how many are in it
}

// privateDocumentsOf are of the registry's own content: what it mirrors is
// public. A network mirror serves both alike.
func privateDocumentsOf(t *tree.Tree) []privateDocument {
	own, module := t.Own(), t.Module
	modules := fmt.Sprintf("/v1/modules/%s/%s/%s/", module.Namespace, module.Name, module.System)
	return []privateDocument{
		{document{name: "provider versions", path: versionsPath(own)}, 0},
		{document{name: "provider download", path: fmt.Sprintf("/v1/providers/%s/%s/%s/download/linux/amd64", own.Namespace, own.Type, own.Versions[0])}, 3},
		{document{name: "mirror VERSION.json", path: mirrorPath(own, own.Versions[0]+".json")}, 10},
		{document{name: "module versions", path: modules + "versions"}, 0},
		{document{name: "module download", path: modules + module.Versions[0] + "/download"}, 1},
	}
}

// measurePrivate asks one process that serves a tree twice: to everybody, and
// by rules and with signed links to those with a token.
func measurePrivate(ctx context.Context, l *lab) ([]result, error) {
	t, err := l.tree(ctx, l.packages.values[0])
	if err != nil {
		return nil, err
	}
	documents := privateDocumentsOf(t)
	// A short one, so that what a request costs whatever it asks for shows most.
	all := []document{{name: "mirror index.json", path: mirrorPath(t.Mirrored(), "index.json")}}
	for _, d := range documents {
		all = append(all, d.document)
	}
	if err := l.askFor(ctx, t, all); err != nil {
		return nil, err
	}
	public := all[0]
	for i := range documents {
		documents[i].document = all[1+i]
	}
	tokens, secret := l.path("tokens"), tokenfile.Generate()
	if err := os.WriteFile(tokens, tokensFile(secret), 0o600); err != nil {
		return nil, err
	}
	open := l.registry("open", t.Root, "")
	private := server.Site{Name: "private", Handler: server.Private(open.Handler, tokens, privateRules)}
	var results []result
	err = while(ctx, l.pinned("documents", open, private), func(p *server.Process) error {
		if _, err := indexed(ctx, p, "open", t.Providers); err != nil { // the tree of both
			return err
		}
		client, err := l.client(ctx)
		if err != nil {
			return err
		}
		defer client.Close()
		for _, d := range documents {
			row, err := l.comparePrivate(ctx, p, client, d, "Bearer "+secret)
			if err != nil {
				return err
			}
			results = append(results, row)
		}
		row, err := l.comparePublic(ctx, p, client, public)
		results = append(results, row)
		return err
	})
	return results, err
}

// tokensFile has the secret for the client, and others that nobody knows.
func tokensFile(secret string) []byte {
	var file []byte
	for _, line := range privateTokens {
		name, options, _ := strings.Cut(line, " ")
		file = fmt.Appendf(file, "%s sha256:%x %s\n", name, sha256.Sum256([]byte(secret)), options)
		secret = tokenfile.Generate()
	}
	return file
}

// comparePrivate makes the row of a document that is not for everybody.
func (l *lab) comparePrivate(ctx context.Context, p *server.Process, client *load.Client, d privateDocument, authorization string) (result, error) {
	refusal, err := p.Get(ctx, "private", d.path)
	if err != nil {
		return result{}, err
	}
	if refusal.Status != http.StatusUnauthorized {
		return result{}, fmt.Errorf("%s: anonymous gets %d, want %d: the rules do not keep it private", d.path, refusal.Status, http.StatusUnauthorized)
	}
	answer, err := p.GetAs(ctx, "private", d.path, authorization)
	if err != nil {
		return result{}, err
	}
	if err := sameButSignatures(d.answer, answer, d.links); err != nil {
		return result{}, fmt.Errorf("%s: %w", d.path, err)
	}
	ours := &contender{name: "private", job: d.job(l, p, load.HTTP, "private", d.path, answer.Body)}
	ours.job.Authorization = authorization
	if d.links > 0 && len(answer.Body) > 0 {
		ours.job.SHA256 = "" // signatures change while it is measured
	}
	open := &contender{name: "open", job: d.job(l, p, load.HTTP, "open", d.path, d.answer.Body)}
	row, err := l.compareWithOpen(ctx, p, client, d.document, ours, open)
	row.what = fmt.Sprintf("private %s, %s, requests/s", d.name, linksText(d.links))
	row.goal = goal{atLeast: 0.7}
	row.details = append(row.details, fmt.Sprintf("bytes of the body: %d private, %d open", len(answer.Body), len(d.answer.Body)))
	return row, err
}

// comparePublic makes the row of a document that a private registry has for
// everybody.
func (l *lab) comparePublic(ctx context.Context, p *server.Process, client *load.Client, d document) (result, error) {
	ours := &contender{name: "public", job: d.job(l, p, load.HTTP, "private", d.path, d.answer.Body)}
	open := &contender{name: "open", job: d.job(l, p, load.HTTP, "open", d.path, d.answer.Body)}
	row, err := l.compareWithOpen(ctx, p, client, d, ours, open)
	row.what = fmt.Sprintf("public %s in a private registry, requests/s", d.name)
	row.goal = goal{atLeast: 0.97} // as many, but for the noise
	return row, err
}

func (l *lab) compareWithOpen(ctx context.Context, p *server.Process, client *load.Client, d document, ours, open *contender) (result, error) {
	name := ours.name + " " + d.name
	if err := compete(ctx, name, l.rounds, client, ours, open); err != nil {
		return result{}, err
	}
	return result{
		against: "the same tree, open to everybody",
		values:  rateRatios(ours, open),
		details: []string{ours.rateDetail(), open.rateDetail(), cpuDetail(ours, open)},
	}, l.profileContender(ctx, p, client, strings.ReplaceAll(name, " ", "-"), ours)
}

func linksText(links int) string {
	switch links {
	case 0:
		return "no links"
	case 1:
		return "1 signed link"
	}
	return fmt.Sprintf("%d signed links", links)
}

// signature is what makes a link a signed one.
var signature = regexp.MustCompile(`\?exp=[0-9]+&sig=[A-Za-z0-9_-]+`)

// sameButSignatures makes sure that two answers say the same, and that one of
// them has so many signed links.
func sameButSignatures(open, private *server.Answer, links int) error {
	text := func(a *server.Answer) string {
		return fmt.Sprintf("%d %s\n%s", a.Status, a.Header.Get("X-Terraform-Get"), a.Body)
	}
	got, want := text(private), text(open)
	if n := len(signature.FindAllString(got, -1)); n != links {
		return fmt.Errorf("the private answer has %d signed links, want %d: %s", n, links, got)
	}
	if unsigned := signature.ReplaceAllLiteralString(got, ""); unsigned != want {
		return fmt.Errorf("the private answer says %s, the open one %s", unsigned, want)
	}
	return nil
}
