package handlers

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

func TestDocumentCache(t *testing.T) {
	const size = 1000
	newCache := func() *documentCache[string, []byte] {
		return newDocumentCache[string](10*(size+documentOverhead), func(b []byte) int { return len(b) })
	}
	t.Run("the documents used last are kept, up to a number of bytes", func(t *testing.T) {
		c := newCache()
		for i := range 100 {
			c.put(fmt.Sprint(i), make([]byte, size))
			if _, ok := c.get("0"); !ok {
				t.Fatalf("a document that is used all the time is gone after %d others", i)
			}
		}
		for i := 1; i < 100; i++ {
			if _, ok := c.get(fmt.Sprint(i)); ok != (i > 90) {
				t.Errorf("document %d is kept: %v", i, ok)
			}
		}
	})
	t.Run("a document that is replaced counts once", func(t *testing.T) {
		c := newCache()
		for range 100 {
			c.put("same", make([]byte, size))
		}
		if want := size + documentOverhead; c.bytes != want {
			t.Errorf("it counts %d bytes, want %d", c.bytes, want)
		}
	})
	t.Run("a document that is too large is not kept", func(t *testing.T) {
		c := newCache()
		c.put("large", make([]byte, 20*size))
		if _, ok := c.get("large"); ok || c.bytes != 0 {
			t.Errorf("%d bytes are kept", c.bytes)
		}
	})
}

// A cached document keeps no request line in memory, whose query can have a megabyte.
func TestMergedDocumentsDoNotKeepRequests(t *testing.T) {
	const documents, line = 64, 1 << 20
	g := new(Registry)
	g.once.Do(g.prepare)
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for i := range documents {
		path := fmt.Sprintf("registry.terraform.io/acme/demo/1.0.%d?", i) + strings.Repeat("x", line)
		path, _, _ = strings.Cut(path, "?")
		segments, err := split(path, make([]string, 0, 6))
		if err != nil {
			t.Fatal(err)
		}
		a, err := address.ParseProvider(segments[0], segments[1], segments[2])
		if err != nil {
			t.Fatal(err)
		}
		g.keepMerged(mergedID{address: a, version: segments[3]}, mergedDocument{Document: new(wire.Document)}, time.Minute)
	}
	if grown := int64(heap() - before); grown > documents*line/2 {
		t.Errorf("%d cached documents take %d bytes", documents, grown)
	}
	runtime.KeepAlive(g)
}

// No spelling of a hostname equals the segment that stands for one, and no hostname is
// normalised to it.
func TestHostedSegmentIsNotAHostname(t *testing.T) {
	for _, s := range []string{hostedSegment, "－", "‐", hostedSegment + ":443", hostedSegment + ":8443"} {
		if h, err := address.ParseHostname(s); err == nil && (s[0] == '-' || strings.HasPrefix(string(h), hostedSegment)) {
			t.Errorf("%q is the hostname %q", s, h)
		}
	}
}
