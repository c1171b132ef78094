package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/access/tokenfile"
	"github.com/caddy-terraform/caddy-terraform-registry/bench/internal/server"
)

// What a rule costs depends on how many come before it.
func TestPrivateRules(t *testing.T) {
	var rules []access.Rule
	for _, line := range privateRules {
		rule, err := access.ParseRule(strings.Fields(line)...)
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, rule)
	}
	all := access.NewRules(rules...)

	const secret = "secret"
	tokens, errs := tokenfile.Parse(tokensFile(secret))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if n := len(tokens.Entries()); n != len(privateTokens) {
		t.Errorf("the file has %d tokens, want %d", n, len(privateTokens))
	}
	for _, c := range []struct {
		name, address, secret string
		rule                  int // 0: none
	}{
		{"the client reads a provider", "team00/product0000", secret, 9},
		{"the client reads a module", "team00/network0000/aws", secret, 9},
		{"anonymous does not", "team00/product0000", "", 0},
		{"everybody reads what is mirrored", "registry.terraform.io/team01/product0001", "", 3},
	} {
		address, err := access.ParseResource(c.address)
		if err != nil {
			t.Fatal(err)
		}
		var subject access.Subject
		if c.secret != "" {
			if subject, err = tokens.Find(c.secret, time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		d := all.Decide(subject, access.Read, address)
		switch {
		case d.Allowed != (c.rule > 0):
			t.Errorf("%s: allowed is %t", c.name, d.Allowed)
		case c.rule > 0 && d.Rule.String() != privateRules[c.rule-1]:
			t.Errorf("%s: decided by %q, want %q", c.name, d.Rule, privateRules[c.rule-1])
		case all.Public(address) != (c.rule > 0 && c.secret == ""):
			t.Errorf("%s: public is %t", c.name, all.Public(address))
		}
	}
}

// Two answers that say different things are not to be compared.
func TestSameButSignatures(t *testing.T) {
	answer := func(status int, location, body string) *server.Answer {
		header := http.Header{}
		if location != "" {
			header.Set("X-Terraform-Get", location)
		}
		return &server.Answer{Status: status, Header: header, Body: []byte(body)}
	}
	const query = "?exp=1767225600&sig=aB-_9"
	for _, c := range []struct {
		name          string
		open, private *server.Answer
		links         int
		fails         string
	}{
		{"no links", answer(200, "", "{}"), answer(200, "", "{}"), 0, ""},
		{"links in the body", answer(200, "", `["a","b"]`), answer(200, "", `["a`+query+`","b`+query+`"]`), 2, ""},
		{"a link in the header", answer(204, "/a", ""), answer(204, "/a"+query, ""), 1, ""},
		{"a link that is not signed", answer(200, "", `["a","b"]`), answer(200, "", `["a`+query+`","b"]`), 2, "1 signed links, want 2"},
		{"another file", answer(204, "/a", ""), answer(204, "/b"+query, ""), 1, "says"},
		{"another body", answer(200, "", "{}"), answer(200, "", "[]"), 0, "says"},
		{"another status", answer(200, "", "{}"), answer(404, "", "{}"), 0, "says"},
	} {
		err := sameButSignatures(c.open, c.private, c.links)
		if (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%s: the error is %v, want %q in it", c.name, err, c.fails)
		}
	}
}
