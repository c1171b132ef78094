package access_test

import (
	"bytes"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
)

// Whatever is asked for, only the query that was signed is good, and whoever
// reads it differently comes to the same end.
func FuzzLinksVerify(f *testing.F) {
	l := linksOf(fixedLinkKeys(1))
	good := sign(f, l, linkTree, linkFile, linkTime)
	exp, sig, _ := strings.Cut(good, "&")
	for _, query := range []string{
		good, sig + "&" + exp, "archive=zip&" + good, good + "&" + sig, good + "&" + exp, exp, sig, "", "&", "=",
		"exp=0&" + sig, "exp=1&sig=", exp + "&sig=" + strings.Repeat("A", 48), exp + "&sig=" + strings.Repeat("\n", 48),
		exp + "&%73ig=" + sig[4:], good + ";a", good + "%", exp + "&sig=" + url.QueryEscape("+/=="),
	} {
		f.Add(linkTree, linkFile, query)
		f.Add(linkTree, linkFile+"x", query)
		f.Add("other.example.com", linkFile, query)
	}
	f.Add("a\x00b", "c", good)
	f.Fuzz(func(t *testing.T, tree, path, query string) {
		err := l.Verify(tree, path, query, linkTime)
		switch {
		case err == nil:
			if tree != linkTree || path != linkFile {
				t.Fatalf("it is good for %q %q", tree, path)
			}
			parsed, _ := url.ParseQuery(query) // others may be broken
			if parsed.Get("exp") != exp[4:] || parsed.Get("sig") != sig[4:] {
				t.Fatalf("query %q is good", query)
			}
		case errors.Is(err, access.ErrNoLink):
			if strings.HasPrefix(query, "sig=") || strings.Contains(query, "&sig=") {
				t.Fatalf("query %q has a signature", query)
			}
		case errors.Is(err, access.ErrLinkExpired):
			t.Fatalf("query %q was never signed and has expired", query)
		case !errors.Is(err, access.ErrLinkInvalid):
			t.Fatal(err)
		}
	})
}

// Whatever is signed is good for that, once clients have encoded it anew as
// well, and for nothing else.
func FuzzLinksAppendQuery(f *testing.F) {
	f.Add(linkTree, linkFile, int64(900), "archive", "zip")
	f.Add("", "", int64(1), "sig", "")
	f.Add("a", "b\x00c", int64(60), "exp", "1")
	f.Add("xn--bcher-kva.example:8443", "/é %?&#", int64(1e6), "a b", "&=;%")
	f.Fuzz(func(t *testing.T, tree, path string, life int64, name, value string) {
		if life <= 0 || life > 1e9 || strings.ContainsRune(tree+path, 0) || len(name)+len(value) > 1000 {
			return
		}
		l := linksOf(fixedLinkKeys(3, 1))
		l.Life = time.Duration(life) * time.Second
		query := sign(t, l, tree, path, linkTime)
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		if name != "exp" && name != "sig" {
			values.Add(name, value)
		}
		for _, query := range []string{query, values.Encode()} {
			if err := l.Verify(tree, path, query, linkTime); err != nil {
				t.Fatalf("query %q of %q %q: %v", query, tree, path, err)
			}
			if err := l.Verify(tree, path, query, time.Unix(l.Expiry(linkTime), 0)); err != access.ErrLinkExpired {
				t.Fatalf("query %q has not expired: %v", query, err)
			}
			for _, other := range [][2]string{{tree + "x", path}, {tree, path + "x"}, {tree + "/", path}, {path, tree + "x"}} {
				if err := l.Verify(other[0], other[1], query, linkTime); err != access.ErrLinkInvalid {
					t.Fatalf("query %q of %q %q, for %q: %v", query, tree, path, other, err)
				}
			}
		}
	})
}

// Whatever is in the storage, it is a set of keys that comes back as it was, or
// an error that quotes nothing of it.
func FuzzDecodeLinkKeys(f *testing.F) {
	f.Add(fixedLinkKeys(1).Encode())
	f.Add(fixedLinkKeys(1, 2).Encode())
	f.Add([]byte(`{"version":1,"rotated":"9999-12-31T23:59:59-23:59","keys":["` + linkSecret(1) + `"]}`))
	f.Add([]byte(`{"version":1,"rotated":"0000-01-01T00:00:00+23:59","keys":["` + linkSecret(1) + `"]}`))
	f.Add([]byte(`{"version":1,"VERSION":1,"rotated":"2026-01-02T03:04:05.9Z","keys":null}`))
	f.Fuzz(func(t *testing.T, document []byte) {
		keys, err := access.DecodeLinkKeys(document)
		if err != nil {
			if len(document) >= 20 && strings.Contains(err.Error(), string(document[len(document)/2:])) {
				t.Fatalf("error %q quotes the document", err)
			}
			return
		}
		again, err := access.DecodeLinkKeys(keys.Encode())
		if err != nil {
			t.Fatalf("%s comes back as %v", document, err)
		}
		if !bytes.Equal(again.Encode(), keys.Encode()) {
			t.Fatalf("%s comes back as another", document)
		}
		if query := sign(t, linksOf(keys), linkTree, linkFile, linkTime); linksOf(again).Verify(linkTree, linkFile, query, linkTime) != nil {
			t.Fatalf("%s does not verify what it signs", document)
		}
	})
}
