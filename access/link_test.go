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
	linkRealm = "registry.example.com"
	linkPath  = "/v1/mirror/registry.example.com/acme/demo/terraform-provider-demo_1.2.0_linux_amd64.zip"
)

var linkTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func linksOf(keys *access.LinkKeys) *access.Links {
	return &access.Links{Life: 15 * time.Minute, Keys: func() *access.LinkKeys { return keys }}
}

// sign returns the raw query of a link made at that time.
func sign(t testing.TB, l *access.Links, realm, path string, now time.Time) string {
	t.Helper()
	query, err := l.AppendQuery(nil, realm, path, l.Expiry(now))
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
	got, err := l.AppendQuery([]byte(linkPath), linkRealm, linkPath, 1767324000)
	if err != nil {
		t.Fatal(err)
	}
	const want = linkPath + "?exp=1767324000&sig=1pP1lbxSMhFc6MrhjZUQjYDPad0v2SjM5psC92EQmuTaGHWq"
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

func TestLinksAppendQueryWithoutKeys(t *testing.T) {
	got, err := linksOf(nil).AppendQuery([]byte(linkPath), linkRealm, linkPath, 1)
	if !errors.Is(err, access.ErrNoLinkKeys) || string(got) != linkPath {
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
		seen[sign(t, l, linkRealm, linkPath, now)] = true
	}
	if n := len(seen); n < 16 || n > 18 {
		t.Errorf("there were %d different links in the time that one is good for", n)
	}
}

func TestLinksVerify(t *testing.T) {
	l := linksOf(fixedLinkKeys(1, 2))
	query := sign(t, l, linkRealm, linkPath, linkTime)
	exp, sig, _ := strings.Cut(query, "&")
	expiry := time.Unix(l.Expiry(linkTime), 0)
	later := strings.Replace(exp, "exp=1", "exp=2", 1)
	forged := "sig=" + sig[4:12] + strings.Repeat("A", 40)

	tests := []struct {
		rule, realm, path, query string
		now                      time.Time
		want                     error
	}{
		{"a link", linkRealm, linkPath, query, linkTime, nil},
		{"sorted the other way", linkRealm, linkPath, sig + "&" + exp, linkTime, nil},
		{"among others", linkRealm, linkPath, "archive=zip&" + sig + "&checksum=sha256%3A00&&" + exp + "&terraform-get=1", linkTime, nil},
		{"others that are twice, broken or similar", linkRealm, linkPath, query + "&a&a=%zz&=&;&SIG=&exp2=1&%73ig=1", linkTime, nil},
		{"in its last second", linkRealm, linkPath, query, expiry.Add(-1), nil},
		{"before it was made", linkRealm, linkPath, query, linkTime.Add(-time.Hour), nil},

		{"expired", linkRealm, linkPath, query, expiry, access.ErrLinkExpired},
		{"expired long ago", linkRealm, linkPath, query, expiry.Add(1e6 * time.Hour), access.ErrLinkExpired},
		{"forged and expired", linkRealm, linkPath, exp + "&" + forged, expiry, access.ErrLinkInvalid},
		{"expired, of another file", linkRealm, linkPath + "x", query, expiry, access.ErrLinkInvalid},

		{"no query", linkRealm, linkPath, "", linkTime, access.ErrNoLink},
		{"another query", linkRealm, linkPath, "archive=zip", linkTime, access.ErrNoLink},
		{"no signature", linkRealm, linkPath, exp, linkTime, access.ErrNoLink},
		{"names have a case", linkRealm, linkPath, exp + "&SIG=" + sig[4:], linkTime, access.ErrNoLink},
		{"an escaped name", linkRealm, linkPath, exp + "&%73ig=" + sig[4:], linkTime, access.ErrNoLink},

		{"another file", linkRealm, strings.Replace(linkPath, "1.2.0", "1.2.1", 1), query, linkTime, access.ErrLinkInvalid},
		{"a file with more to its name", linkRealm, linkPath + "1", query, linkTime, access.ErrLinkInvalid},
		{"no file", linkRealm, "", query, linkTime, access.ErrLinkInvalid},
		{"another registry", "other.example.com", linkPath, query, linkTime, access.ErrLinkInvalid},
		{"no registry", "", linkPath, query, linkTime, access.ErrLinkInvalid},
		{"divided elsewhere", linkRealm + linkPath[:3], linkPath[3:], query, linkTime, access.ErrLinkInvalid},
		{"a later expiry", linkRealm, linkPath, later + "&" + sig, linkTime, access.ErrLinkInvalid},
		{"a forged signature", linkRealm, linkPath, exp + "&" + forged, linkTime, access.ErrLinkInvalid},
		{"the last bit", linkRealm, linkPath, query[:len(query)-1] + otherLast(query), linkTime, access.ErrLinkInvalid},

		{"an empty signature", linkRealm, linkPath, exp + "&sig=", linkTime, access.ErrLinkInvalid},
		{"a signature without value", linkRealm, linkPath, exp + "&sig", linkTime, access.ErrLinkInvalid},
		{"a short signature", linkRealm, linkPath, query[:len(query)-4], linkTime, access.ErrLinkInvalid},
		{"a long signature", linkRealm, linkPath, query + "AAAA", linkTime, access.ErrLinkInvalid},
		{"a signature with padding", linkRealm, linkPath, query + "=", linkTime, access.ErrLinkInvalid},
		{"a signature with a line feed", linkRealm, linkPath, query[:len(query)-1] + "\n", linkTime, access.ErrLinkInvalid},
		{"a signature that is not base64", linkRealm, linkPath, query[:len(query)-1] + "!", linkTime, access.ErrLinkInvalid},
		{"a signature of standard base64", linkRealm, linkPath, query[:len(query)-1] + "+", linkTime, access.ErrLinkInvalid},
		{"no expiry", linkRealm, linkPath, sig, linkTime, access.ErrLinkInvalid},
		{"an empty expiry", linkRealm, linkPath, "exp=&" + sig, linkTime, access.ErrLinkInvalid},
		{"a leading zero", linkRealm, linkPath, "exp=0" + query[4:], linkTime, access.ErrLinkInvalid},
		{"a sign", linkRealm, linkPath, "exp=+" + query[4:], linkTime, access.ErrLinkInvalid},
		{"a negative expiry", linkRealm, linkPath, "exp=-" + query[4:], linkTime, access.ErrLinkInvalid},
		{"no number", linkRealm, linkPath, "exp=1e9&" + sig, linkTime, access.ErrLinkInvalid},
		{"an endless number", linkRealm, linkPath, "exp=" + strings.Repeat("9", 19) + "&" + sig, linkTime, access.ErrLinkInvalid},
		{"the signature twice", linkRealm, linkPath, query + "&" + sig, linkTime, access.ErrLinkInvalid},
		{"the expiry twice", linkRealm, linkPath, exp + "&" + query, linkTime, access.ErrLinkInvalid},
		{"an expiry for either", linkRealm, linkPath, query + "&" + later, linkTime, access.ErrLinkInvalid},
		{"a huge query", linkRealm, linkPath, query + "&a=" + strings.Repeat("a", 1<<20), linkTime, access.ErrLinkInvalid},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			if err := l.Verify(test.realm, test.path, test.query, test.now); err != test.want {
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
	query := sign(t, linksOf(theirs), linkRealm, linkPath, linkTime)
	forged := query[:len(query)-40] + strings.Repeat("A", 40)
	known := sign(t, linksOf(ours), linkRealm, linkPath, linkTime)
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
			if err := l.Verify(linkRealm, linkPath, test.query, linkTime); err != test.want {
				t.Errorf("got %v, want %v", err, test.want)
			}
			if asked != test.asked {
				t.Errorf("asked %d times, want %d", asked, test.asked)
			}
		})
	}
	if err := linksOf(nil).Verify(linkRealm, linkPath, query, linkTime); err != access.ErrNoLinkKeys {
		t.Errorf("without keys and without anyone to ask: %v", err)
	}
}

func TestLinksAreSafeForConcurrentUse(t *testing.T) {
	l := linksOf(fixedLinkKeys(1, 2))
	var done sync.WaitGroup
	for i := range 8 {
		path := linkPath + strings.Repeat("x", i*100)
		done.Go(func() {
			for range 200 {
				query, err := l.AppendQuery(nil, linkRealm, path, l.Expiry(linkTime))
				if err == nil {
					err = l.Verify(linkRealm, path, string(bytes.TrimPrefix(query, []byte("?"))), linkTime)
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
