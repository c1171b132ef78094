package access

import (
	"runtime"

	"bytes"
	"errors"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	linkTree = `{"Root":"/srv"}`
	linkFile = "/mirror/-/acme/demo/terraform-provider-demo_1.2.0_linux_amd64.zip"
)

var linkTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func linksOf(keys *LinkKeys) *Links {
	return &Links{Life: 15 * time.Minute, Keys: func() *LinkKeys { return keys }}
}

// sign returns the raw query of a link made at a time.
func sign(t testing.TB, l *Links, files, path string, now time.Time) string {
	t.Helper()
	query, err := l.AppendQuery(nil, files, path, l.Expiry(now))
	if err != nil {
		t.Fatal(err)
	}
	raw, ok := strings.CutPrefix(string(query), "?")
	if !ok {
		t.Fatalf("the query is %q", query)
	}
	return raw
}

// TestLinksAppendQuery fixes the format: instances of different releases share keys.
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
		t.Errorf("encoded again the query is %s", encoded)
	}
}

// Links of format 1, which signed a name of the registry and the path of the URL,
// are invalid, even if these are presented as tree and file.
func TestLinksOfFormat1(t *testing.T) {
	const (
		realm = "registry.example.com"
		path  = "/v1/mirror/registry.example.com/acme/demo/terraform-provider-demo_1.2.0_linux_amd64.zip"
		query = "exp=1767324000&sig=1pP1lbxSMhFc6MrhjZUQjYDPad0v2SjM5psC92EQmuTaGHWq"
	)
	l := linksOf(fixedLinkKeys(1, 2))
	if err := l.Verify(realm, path, query, time.Unix(1767323000, 0)); !errors.Is(err, ErrLinkInvalid) {
		t.Errorf("got %v", err)
	}
}

func TestLinksAppendQueryWithoutKeys(t *testing.T) {
	got, err := linksOf(nil).AppendQuery([]byte(linkFile), linkTree, linkFile, 1)
	if !errors.Is(err, ErrNoLinkKeys) || string(got) != linkFile {
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
			l := Links{Life: test.life}
			if got := l.Expiry(test.now); got != test.want.Unix() {
				t.Errorf("got %v, want %v", time.Unix(got, 0).UTC(), test.want)
			}
		})
	}
}

// A document that contains links keeps its ETag for a while, and no link is valid
// for less time than configured.
func TestLinksChangeRarely(t *testing.T) {
	l := linksOf(fixedLinkKeys(1))
	seen := make(map[string]bool)
	for second := range 15 * 60 {
		now := linkTime.Add(time.Duration(second) * time.Second)
		expiry := time.Unix(l.Expiry(now), 0)
		if left := expiry.Sub(now); left < l.Life || left >= l.Life+l.Life/16 {
			t.Fatalf("a link made at %v is valid for %v", now, left)
		}
		seen[sign(t, l, linkTree, linkFile, now)] = true
	}
	if n := len(seen); n < 16 || n > 18 {
		t.Errorf("there were %d different links within the life of one", n)
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
		{"a valid link", linkTree, linkFile, query, linkTime, nil},
		{"sorted the other way", linkTree, linkFile, sig + "&" + exp, linkTime, nil},
		{"among other parameters", linkTree, linkFile, "archive=zip&" + sig + "&checksum=sha256%3A00&&" + exp + "&terraform-get=1", linkTime, nil},
		{"beside repeated, malformed and similar parameters", linkTree, linkFile, query + "&a&a=%zz&=&;&SIG=&exp2=1&%73ig=1", linkTime, nil},
		{"in its last second", linkTree, linkFile, query, expiry.Add(-1), nil},
		{"before it was made", linkTree, linkFile, query, linkTime.Add(-time.Hour), nil},

		{"expired", linkTree, linkFile, query, expiry, ErrLinkExpired},
		{"expired long ago", linkTree, linkFile, query, expiry.Add(1e6 * time.Hour), ErrLinkExpired},
		{"forged and expired", linkTree, linkFile, exp + "&" + forged, expiry, ErrLinkInvalid},
		{"expired, of another file", linkTree, linkFile + "x", query, expiry, ErrLinkInvalid},

		{"no query", linkTree, linkFile, "", linkTime, ErrNoLink},
		{"another query", linkTree, linkFile, "archive=zip", linkTime, ErrNoLink},
		{"no signature", linkTree, linkFile, exp, linkTime, ErrNoLink},
		{"names are case-sensitive", linkTree, linkFile, exp + "&SIG=" + sig[4:], linkTime, ErrNoLink},
		{"an escaped name", linkTree, linkFile, exp + "&%73ig=" + sig[4:], linkTime, ErrNoLink},

		{"another file", linkTree, strings.Replace(linkFile, "1.2.0", "1.2.1", 1), query, linkTime, ErrLinkInvalid},
		{"a file with a longer name", linkTree, linkFile + "1", query, linkTime, ErrLinkInvalid},
		{"no file", linkTree, "", query, linkTime, ErrLinkInvalid},
		{"another tree", `{"Root":"/other"}`, linkFile, query, linkTime, ErrLinkInvalid},
		{"no tree", "", linkFile, query, linkTime, ErrLinkInvalid},
		{"divided elsewhere", linkTree + linkFile[:3], linkFile[3:], query, linkTime, ErrLinkInvalid},
		{"a later expiry", linkTree, linkFile, later + "&" + sig, linkTime, ErrLinkInvalid},
		{"a forged signature", linkTree, linkFile, exp + "&" + forged, linkTime, ErrLinkInvalid},
		{"the last bit", linkTree, linkFile, query[:len(query)-1] + otherLast(query), linkTime, ErrLinkInvalid},

		{"an empty signature", linkTree, linkFile, exp + "&sig=", linkTime, ErrLinkInvalid},
		{"a signature without value", linkTree, linkFile, exp + "&sig", linkTime, ErrLinkInvalid},
		{"a short signature", linkTree, linkFile, query[:len(query)-4], linkTime, ErrLinkInvalid},
		{"a long signature", linkTree, linkFile, query + "AAAA", linkTime, ErrLinkInvalid},
		{"a signature with padding", linkTree, linkFile, query + "=", linkTime, ErrLinkInvalid},
		{"a signature with a line feed", linkTree, linkFile, query[:len(query)-1] + "\n", linkTime, ErrLinkInvalid},
		{"a signature that is not base64", linkTree, linkFile, query[:len(query)-1] + "!", linkTime, ErrLinkInvalid},
		{"a signature of standard base64", linkTree, linkFile, query[:len(query)-1] + "+", linkTime, ErrLinkInvalid},
		{"no expiry", linkTree, linkFile, sig, linkTime, ErrLinkInvalid},
		{"an empty expiry", linkTree, linkFile, "exp=&" + sig, linkTime, ErrLinkInvalid},
		{"a leading zero", linkTree, linkFile, "exp=0" + query[4:], linkTime, ErrLinkInvalid},
		{"a sign", linkTree, linkFile, "exp=+" + query[4:], linkTime, ErrLinkInvalid},
		{"a negative expiry", linkTree, linkFile, "exp=-" + query[4:], linkTime, ErrLinkInvalid},
		{"not an integer", linkTree, linkFile, "exp=1e9&" + sig, linkTime, ErrLinkInvalid},
		{"a number that is too long", linkTree, linkFile, "exp=" + strings.Repeat("9", 19) + "&" + sig, linkTime, ErrLinkInvalid},
		{"the signature twice", linkTree, linkFile, query + "&" + sig, linkTime, ErrLinkInvalid},
		{"the expiry twice", linkTree, linkFile, exp + "&" + query, linkTime, ErrLinkInvalid},
		{"two different expiries", linkTree, linkFile, query + "&" + later, linkTime, ErrLinkInvalid},
		{"a huge query", linkTree, linkFile, query + "&a=" + strings.Repeat("a", 1<<20), linkTime, ErrLinkInvalid},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			if err := l.Verify(test.tree, test.path, test.query, test.now); err != test.want {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
}

// otherLast returns a last character that differs in its last bit.
func otherLast(query string) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	i := strings.IndexByte(alphabet, query[len(query)-1])
	return alphabet[i^1 : i^1+1]
}

func TestLinksVerifyRefusesNUL(t *testing.T) {
	l := linksOf(fixedLinkKeys(1))
	query := sign(t, l, "a\x00b", "c", linkTime)
	if err := l.Verify("a", "b\x00c", query, linkTime); err != ErrLinkInvalid {
		t.Errorf("divided elsewhere: got %v", err)
	}
	query = sign(t, l, "a", "b\x00c", linkTime)
	if err := l.Verify("a\x00b", "c", query, linkTime); err != ErrLinkInvalid {
		t.Errorf("divided elsewhere: got %v", err)
	}
}

func TestLinksVerifyReloadsUnknownKeys(t *testing.T) {
	ours, theirs := fixedLinkKeys(1), fixedLinkKeys(2, 1)
	query := sign(t, linksOf(theirs), linkTree, linkFile, linkTime)
	forged := query[:len(query)-40] + strings.Repeat("A", 40)
	known := sign(t, linksOf(ours), linkTree, linkFile, linkTime)
	tests := []struct {
		rule          string
		before, after *LinkKeys
		query         string
		reloads       int
		want          error
	}{
		{"a known key needs no reload", ours, theirs, known, 0, nil},
		{"a new key is loaded", ours, theirs, query, 1, nil},
		{"a key that remains unknown is reloaded once", ours, ours, query, 1, ErrLinkInvalid},
		{"a forgery with a known key causes no reload", theirs, theirs, forged, 0, ErrLinkInvalid},
		{"a forgery with a new key is invalid", ours, theirs, forged, 1, ErrLinkInvalid},
		{"the first keys are loaded", nil, theirs, query, 1, nil},
		{"without keys nothing can be verified", nil, nil, query, 1, ErrNoLinkKeys},
		{"an invalid link causes no reload", ours, theirs, "sig=AAAA", 0, ErrLinkInvalid},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			keys, reloads := test.before, 0
			l := &Links{
				Keys:   func() *LinkKeys { return keys },
				Reload: func() bool { keys, reloads = test.after, reloads+1; return true },
			}
			if err := l.Verify(linkTree, linkFile, test.query, linkTime); err != test.want {
				t.Errorf("got %v, want %v", err, test.want)
			}
			if reloads != test.reloads {
				t.Errorf("reloaded %d times, want %d", reloads, test.reloads)
			}
		})
	}
	if err := linksOf(nil).Verify(linkTree, linkFile, query, linkTime); err != ErrNoLinkKeys {
		t.Errorf("without keys and without Reload: %v", err)
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

// Clients without any rights must not cause much work.
func TestLinksAllocateLittle(t *testing.T) {
	l := linksOf(fixedLinkKeys(1))
	query := sign(t, l, linkTree, linkFile, linkTime)
	expiry := l.Expiry(linkTime)
	buffer := make([]byte, 0, 512)
	huge := strings.Repeat("&sig="+strings.Repeat("a", 1000), 1000)
	long := strings.Repeat("a", 1<<20)
	tests := []struct {
		rule string
		do   func()
	}{
		{"signing", func() { buffer, _ = l.AppendQuery(buffer[:0], linkTree, linkFile, expiry) }},
		{"verifying", func() { l.Verify(linkTree, linkFile, query, linkTime) }},
		{"a huge query", func() { l.Verify(linkTree, linkFile, huge, linkTime) }},
		{"many parameters", func() { l.Verify(linkTree, linkFile, huge[:4000], linkTime) }},
		{"a long path", func() { l.Verify(linkTree, long, query, linkTime) }},
	}
	for _, test := range tests {
		const runs, limit = 100, 4 << 10
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range runs {
			test.do()
		}
		runtime.ReadMemStats(&after)
		// It is next to nothing, but under the race detector pools drop items.
		if n := (after.TotalAlloc - before.TotalAlloc) / runs; n > limit {
			t.Errorf("%s allocates %d bytes", test.rule, n)
		}
	}
}

func BenchmarkLinksAppendQuery(b *testing.B) {
	l := linksOf(fixedLinkKeys(1))
	buffer := make([]byte, 0, 512)
	expiry := l.Expiry(linkTime)
	b.ReportAllocs()
	for b.Loop() {
		buffer, _ = l.AppendQuery(buffer[:0], linkTree, linkFile, expiry)
	}
}

func BenchmarkLinksVerify(b *testing.B) {
	l := linksOf(fixedLinkKeys(1))
	query := sign(b, l, linkTree, linkFile, linkTime)
	rows := []struct{ name, query string }{
		{"valid", query},
		{"no link", "archive=zip"},
		{"huge", query + strings.Repeat("&a=a", 1<<18)},
	}
	for _, row := range rows {
		b.Run(row.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				l.Verify(linkTree, linkFile, row.query, linkTime)
			}
		})
	}
}

// Only the signed query is valid, and url.ParseQuery reads the same values from it.
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
	f.Fuzz(func(t *testing.T, files, path, query string) {
		err := l.Verify(files, path, query, linkTime)
		switch {
		case err == nil:
			if files != linkTree || path != linkFile {
				t.Fatalf("it is valid for %q %q", files, path)
			}
			parsed, _ := url.ParseQuery(query) // other parameters may be malformed
			if parsed.Get("exp") != exp[4:] || parsed.Get("sig") != sig[4:] {
				t.Fatalf("query %q is valid", query)
			}
		case errors.Is(err, ErrNoLink):
			if strings.HasPrefix(query, "sig=") || strings.Contains(query, "&sig=") {
				t.Fatalf("query %q has a signature", query)
			}
		case errors.Is(err, ErrLinkExpired):
			t.Fatalf("query %q was never signed but has expired", query)
		case !errors.Is(err, ErrLinkInvalid):
			t.Fatal(err)
		}
	})
}

// A signed link is valid for the signed file and for nothing else, even if clients have
// encoded it again.
func FuzzLinksAppendQuery(f *testing.F) {
	f.Add(linkTree, linkFile, int64(900), "archive", "zip")
	f.Add("", "", int64(1), "sig", "")
	f.Add("a", "b\x00c", int64(60), "exp", "1")
	f.Add("xn--bcher-kva.example:8443", "/é %?&#", int64(1e6), "a b", "&=;%")
	f.Fuzz(func(t *testing.T, files, path string, life int64, name, value string) {
		if life <= 0 || life > 1e9 || strings.ContainsRune(files+path, 0) || len(name)+len(value) > 1000 {
			return
		}
		l := linksOf(fixedLinkKeys(3, 1))
		l.Life = time.Duration(life) * time.Second
		query := sign(t, l, files, path, linkTime)
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		if name != "exp" && name != "sig" {
			values.Add(name, value)
		}
		for _, query := range []string{query, values.Encode()} {
			if err := l.Verify(files, path, query, linkTime); err != nil {
				t.Fatalf("query %q of %q %q: %v", query, files, path, err)
			}
			if err := l.Verify(files, path, query, time.Unix(l.Expiry(linkTime), 0)); err != ErrLinkExpired {
				t.Fatalf("query %q has not expired: %v", query, err)
			}
			for _, other := range [][2]string{{files + "x", path}, {files, path + "x"}, {files + "/", path}, {path, files + "x"}} {
				if err := l.Verify(other[0], other[1], query, linkTime); err != ErrLinkInvalid {
					t.Fatalf("query %q of %q %q, for %q: %v", query, files, path, other, err)
				}
			}
		}
	})
}
