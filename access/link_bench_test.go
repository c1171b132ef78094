package access_test

import (
	"runtime"
	"strings"
	"testing"
)

// Whoever may not read anything must not make the registry work.
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
		// It is next to nothing, but under the race detector pools lose things.
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
		{"good", query},
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
