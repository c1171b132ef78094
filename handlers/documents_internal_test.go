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
