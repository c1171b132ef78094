package access_test

import (
	"bytes"
	"errors"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
)

const (
	linkTree = `{"Root":"/srv"}`
	linkFile = "/mirror/-/acme/demo/terraform-provider-demo_1.2.0_linux_amd64.zip"
)

var linkTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func linksOf(keys *access.LinkKeys) *access.Links {
	return &access.Links{Life: 15 * time.Minute, Keys: func() *access.LinkKeys { return keys }}
}

// sign returns the raw query of a link made at that time.
func sign(t testing.TB, l *access.Links, tree, path string, now time.Time) string {
	t.Helper()
	query, err := l.AppendQuery(nil, tree, path, l.Expiry(now))
	if err != nil {
		t.Fatal(err)
	}
	raw, ok := strings.CutPrefix(string(query), "?")
	if !ok {
		t.Fatalf("the query is %q", query)
	}
	return raw
}

// TestLinksAppendQuery pins the format: instances of different releases share keys.
func TestLinksAppendQuery(t *testing.T) {
	l := linksOf(fixedLinkKeys(1, 2))
	got, err := l.AppendQuery([]byte(linkFile), linkTree, linkFile, 1767324000)
	if err != nil {
		t.Fatal(err)
	}
	const want = linkFile + "?exp=1767324000&sig=1pP1laegM9jjU4qp3UGokNeT3yjyBZN8yim417ft7lIPIpjn"
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	parsed, err := url.Parse(string(got))
	if err != nil {
		t.Fatal(err)
	}
	if encoded := parsed.Query().Encode(); encoded != parsed.RawQuery {
		t.Errorf("encoded anew the query is %s", encoded)
	}
}

// What an earlier release has signed, the URL and a name of the registry, opens
// nothing: not even if both are read as what is signed now.
func TestLinksOfTheFormatBefore(t *testing.T) {
	const (
		realm = "registry.example.com"
		path  = "/v1/mirror/registry.example.com/acme/demo/terraform-provider-demo_1.2.0_linux_amd64.zip"
		query = "exp=1767324000&sig=1pP1lbxSMhFc6MrhjZUQjYDPad0v2SjM5psC92EQmuTaGHWq"
	)
	l := linksOf(fixedLinkKeys(1, 2))
	if err := l.Verify(realm, path, query, time.Unix(1767323000, 0)); !errors.Is(err, access.ErrLinkInvalid) {
		t.Errorf("got %v", err)
	}
}

func TestLinksAppendQueryWithoutKeys(t *testing.T) {
	got, err := linksOf(nil).AppendQuery([]byte(linkFile), linkTree, linkFile, 1)
	if !errors.Is(err, access.ErrNoLinkKeys) || string(got) != linkFile {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestLinksExpiry(t *testing.T) {
	tests := []struct {
		rule string
		life time.Duration
		now  time.Time
		want time.Time
	}{
		{"on the boundary it is exact", 16 * time.Minute, linkTime.Truncate(time.Minute), linkTime.Truncate(time.Minute).Add(16 * time.Minute)},
		{"a sixteenth is rounded up", 16 * time.Minute, linkTime, linkTime.Truncate(time.Minute).Add(17 * time.Minute)},
		{"to the nanosecond", 16 * time.Minute, linkTime.Truncate(time.Minute).Add(1), linkTime.Truncate(time.Minute).Add(17 * time.Minute)},
		{"a short life is rounded up to seconds", 10 * time.Second, linkTime.Add(1), linkTime.Add(11 * time.Second)},
		{"whole seconds stay", 10 * time.Second, linkTime, linkTime.Add(10 * time.Second)},
		{"less than a second", time.Millisecond, linkTime, linkTime.Add(time.Second)},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			l := access.Links{Life: test.life}
			if got := l.Expiry(test.now); got != test.want.Unix() {
				t.Errorf("got %v, want %v", time.Unix(got, 0).UTC(), test.want)
			}
		})
	}
}

// A document that holds links keeps its ETag for a while, and no link lives
// shorter than configured.
func TestLinksStayTheSameForAWhile(t *testing.T) {
	l := linksOf(fixedLinkKeys(1))
	seen := make(map[string]bool)
	for second := range 15 * 60 {
		now := linkTime.Add(time.Duration(second) * time.Second)
		expiry := time.Unix(l.Expiry(now), 0)
		if left := expiry.Sub(now); left < l.Life || left >= l.Life+l.Life/16 {
			t.Fatalf("a link made at %v is good for %v", now, left)
		}
		seen[sign(t, l, linkTree, linkFile, now)] = true
	}
	if n := len(seen); n < 16 || n > 18 {
		t.Errorf("there were %d different links in the time that one is good for", n)
	}
}

func TestLinksVerify(t *testing.T) {
	l := linksOf(fixedLinkKeys(1, 2))
	query := sign(t, l, linkTree, linkFile, linkTime)
	exp, sig, _ := strings.Cut(query, "&")
	expiry := time.Unix(l.Expiry(linkTime), 0)
	later := strings.Replace(exp, "exp=1", "exp=2", 1)
	forged := "sig=" + sig[4:12] + strings.Repeat("A", 40)

	tests := []struct {
		rule, tree, path, query string
		now                     time.Time
		want                    error
	}{
		{"a link", linkTree, linkFile, query, linkTime, nil},
		{"sorted the other way", linkTree, linkFile, sig + "&" + exp, linkTime, nil},
		{"among others", linkTree, linkFile, "archive=zip&" + sig + "&checksum=sha256%3A00&&" + exp + "&terraform-get=1", linkTime, nil},
		{"others that are twice, broken or similar", linkTree, linkFile, query + "&a&a=%zz&=&;&SIG=&exp2=1&%73ig=1", linkTime, nil},
		{"in its last second", linkTree, linkFile, query, expiry.Add(-1), nil},
		{"before it was made", linkTree, linkFile, query, linkTime.Add(-time.Hour), nil},

		{"expired", linkTree, linkFile, query, expiry, access.ErrLinkExpired},
		{"expired long ago", linkTree, linkFile, query, expiry.Add(1e6 * time.Hour), access.ErrLinkExpired},
		{"forged and expired", linkTree, linkFile, exp + "&" + forged, expiry, access.ErrLinkInvalid},
		{"expired, of another file", linkTree, linkFile + "x", query, expiry, access.ErrLinkInvalid},

		{"no query", linkTree, linkFile, "", linkTime, access.ErrNoLink},
		{"another query", linkTree, linkFile, "archive=zip", linkTime, access.ErrNoLink},
		{"no signature", linkTree, linkFile, exp, linkTime, access.ErrNoLink},
		{"names have a case", linkTree, linkFile, exp + "&SIG=" + sig[4:], linkTime, access.ErrNoLink},
		{"an escaped name", linkTree, linkFile, exp + "&%73ig=" + sig[4:], linkTime, access.ErrNoLink},

		{"another file", linkTree, strings.Replace(linkFile, "1.2.0", "1.2.1", 1), query, linkTime, access.ErrLinkInvalid},
		{"a file with more to its name", linkTree, linkFile + "1", query, linkTime, access.ErrLinkInvalid},
		{"no file", linkTree, "", query, linkTime, access.ErrLinkInvalid},
		{"another tree", `{"Root":"/other"}`, linkFile, query, linkTime, access.ErrLinkInvalid},
		{"no tree", "", linkFile, query, linkTime, access.ErrLinkInvalid},
		{"divided elsewhere", linkTree + linkFile[:3], linkFile[3:], query, linkTime, access.ErrLinkInvalid},
		{"a later expiry", linkTree, linkFile, later + "&" + sig, linkTime, access.ErrLinkInvalid},
		{"a forged signature", linkTree, linkFile, exp + "&" + forged, linkTime, access.ErrLinkInvalid},
		{"the last bit", linkTree, linkFile, query[:len(query)-1] + otherLast(query), linkTime, access.ErrLinkInvalid},

		{"an empty signature", linkTree, linkFile, exp + "&sig=", linkTime, access.ErrLinkInvalid},
		{"a signature without value", linkTree, linkFile, exp + "&sig", linkTime, access.ErrLinkInvalid},
		{"a short signature", linkTree, linkFile, query[:len(query)-4], linkTime, access.ErrLinkInvalid},
		{"a long signature", linkTree, linkFile, query + "AAAA", linkTime, access.ErrLinkInvalid},
		{"a signature with padding", linkTree, linkFile, query + "=", linkTime, access.ErrLinkInvalid},
		{"a signature with a line feed", linkTree, linkFile, query[:len(query)-1] + "\n", linkTime, access.ErrLinkInvalid},
		{"a signature that is not base64", linkTree, linkFile, query[:len(query)-1] + "!", linkTime, access.ErrLinkInvalid},
		{"a signature of standard base64", linkTree, linkFile, query[:len(query)-1] + "+", linkTime, access.ErrLinkInvalid},
		{"no expiry", linkTree, linkFile, sig, linkTime, access.ErrLinkInvalid},
		{"an empty expiry", linkTree, linkFile, "exp=&" + sig, linkTime, access.ErrLinkInvalid},
		{"a leading zero", linkTree, linkFile, "exp=0" + query[4:], linkTime, access.ErrLinkInvalid},
		{"a sign", linkTree, linkFile, "exp=+" + query[4:], linkTime, access.ErrLinkInvalid},
		{"a negative expiry", linkTree, linkFile, "exp=-" + query[4:], linkTime, access.ErrLinkInvalid},
		{"no number", linkTree, linkFile, "exp=1e9&" + sig, linkTime, access.ErrLinkInvalid},
		{"an endless number", linkTree, linkFile, "exp=" + strings.Repeat("9", 19) + "&" + sig, linkTime, access.ErrLinkInvalid},
		{"the signature twice", linkTree, linkFile, query + "&" + sig, linkTime, access.ErrLinkInvalid},
		{"the expiry twice", linkTree, linkFile, exp + "&" + query, linkTime, access.ErrLinkInvalid},
		{"an expiry for either", linkTree, linkFile, query + "&" + later, linkTime, access.ErrLinkInvalid},
		{"a huge query", linkTree, linkFile, query + "&a=" + strings.Repeat("a", 1<<20), linkTime, access.ErrLinkInvalid},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			if err := l.Verify(test.tree, test.path, test.query, test.now); err != test.want {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
}

// otherLast is a last character of base64 that differs in its last bit.
func otherLast(query string) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	i := strings.IndexByte(alphabet, query[len(query)-1])
	return alphabet[i^1 : i^1+1]
}

func TestLinksVerifyIsNotFooledByNUL(t *testing.T) {
	l := linksOf(fixedLinkKeys(1))
	query := sign(t, l, "a\x00b", "c", linkTime)
	if err := l.Verify("a", "b\x00c", query, linkTime); err != access.ErrLinkInvalid {
		t.Errorf("divided elsewhere: got %v", err)
	}
	query = sign(t, l, "a", "b\x00c", linkTime)
	if err := l.Verify("a\x00b", "c", query, linkTime); err != access.ErrLinkInvalid {
		t.Errorf("divided elsewhere: got %v", err)
	}
}

func TestLinksVerifyAsksForUnknownKeys(t *testing.T) {
	ours, theirs := fixedLinkKeys(1), fixedLinkKeys(2, 1)
	query := sign(t, linksOf(theirs), linkTree, linkFile, linkTime)
	forged := query[:len(query)-40] + strings.Repeat("A", 40)
	known := sign(t, linksOf(ours), linkTree, linkFile, linkTime)
	tests := []struct {
		rule          string
		before, after *access.LinkKeys
		query         string
		asked         int
		want          error
	}{
		{"a known key needs nothing", ours, theirs, known, 0, nil},
		{"a new key is asked for", ours, theirs, query, 1, nil},
		{"a key that remains unknown is asked for once", ours, ours, query, 1, access.ErrLinkInvalid},
		{"a forgery with a known key is not asked for", theirs, theirs, forged, 0, access.ErrLinkInvalid},
		{"a forgery with a new key is one", ours, theirs, forged, 1, access.ErrLinkInvalid},
		{"the first keys are asked for", nil, theirs, query, 1, nil},
		{"without any keys nothing can be said", nil, nil, query, 1, access.ErrNoLinkKeys},
		{"what is no link is not asked for", ours, theirs, "sig=AAAA", 0, access.ErrLinkInvalid},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			keys, asked := test.before, 0
			l := &access.Links{
				Keys:    func() *access.LinkKeys { return keys },
				Unknown: func() { keys, asked = test.after, asked+1 },
			}
			if err := l.Verify(linkTree, linkFile, test.query, linkTime); err != test.want {
				t.Errorf("got %v, want %v", err, test.want)
			}
			if asked != test.asked {
				t.Errorf("asked %d times, want %d", asked, test.asked)
			}
		})
	}
	if err := linksOf(nil).Verify(linkTree, linkFile, query, linkTime); err != access.ErrNoLinkKeys {
		t.Errorf("without keys and without anyone to ask: %v", err)
	}
}

func TestLinksAreSafeForConcurrentUse(t *testing.T) {
	l := linksOf(fixedLinkKeys(1, 2))
	var done sync.WaitGroup
	for i := range 8 {
		path := linkFile + strings.Repeat("x", i*100)
		done.Go(func() {
			for range 200 {
				query, err := l.AppendQuery(nil, linkTree, path, l.Expiry(linkTime))
				if err == nil {
					err = l.Verify(linkTree, path, string(bytes.TrimPrefix(query, []byte("?"))), linkTime)
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	done.Wait()
}
