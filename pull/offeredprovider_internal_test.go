package pull

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A cached document keeps no request line in memory, whose query can have a megabyte.
func TestMergedDocumentsDoNotKeepRequests(t *testing.T) {
	const documents, line = 64, 1 << 20
	o := NewPullThrough(oneVersion{}, nil).Around(new(index.Snapshot), func() (context.Context, time.Time) { return t.Context(), time.Now() })
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for i := range documents {
		path := fmt.Sprintf("registry.terraform.io/acme/demo%[1]d/1.0.%[1]d?", i) + strings.Repeat("x", line)
		path, _, _ = strings.Cut(path, "?")
		segments := strings.Split(path, "/")
		a, err := address.ParseProvider(segments[0], segments[1], segments[2])
		if err != nil {
			t.Fatal(err)
		}
		o.keep(documentID{address: a, version: segments[3]}, nil, new(wire.Document))
		if _, err := o.Provider(index.PlaceOf(a)); err != nil {
			t.Fatal(err)
		}
		if a, err = address.ParseModule(segments[0], segments[1], segments[2], "aws"); err != nil {
			t.Fatal(err)
		}
		if _, err := o.Module(index.PlaceOf(a)); err != nil {
			t.Fatal(err)
		}
	}
	if grown := int64(heap() - before); grown > documents*line/2 {
		t.Errorf("%d cached documents take %d bytes", documents, grown)
	}
	runtime.KeepAlive(o)
}

// A oneVersion is an origin that lists one version of everything.
type oneVersion struct{ Upstream }

func (oneVersion) Versions(context.Context, address.Address) (Offering, error) {
	return Offering{Versions: []wire.ProviderVersion{{Version: "1.0.0"}}, Age: time.Minute}, nil
}
