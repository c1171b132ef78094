package fill

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A cached document keeps no request line in memory, whose query can have a megabyte.
func TestMergedDocumentsDoNotKeepRequests(t *testing.T) {
	const documents, line = 64, 1 << 20
	o := NewPullThrough(nil, nil).Around(nil, nil)
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
		segments := strings.Split(path, "/")
		a, err := address.ParseProvider(segments[0], segments[1], segments[2])
		if err != nil {
			t.Fatal(err)
		}
		o.keep(documentID{address: a, version: segments[3]}, nil, new(wire.Document))
	}
	if grown := int64(heap() - before); grown > documents*line/2 {
		t.Errorf("%d cached documents take %d bytes", documents, grown)
	}
	runtime.KeepAlive(o)
}
