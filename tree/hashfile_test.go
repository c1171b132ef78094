package tree_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// A first read hashes a million small files. Each must not cost a buffer of its own.
func TestHashingSmallFilesAllocatesLittle(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector, under which tests are short, drops buffers that could be used again")
	}
	const files = 1000
	allocated := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.TotalAlloc
	}
	before := allocated()
	for range files {
		if _, err := tree.DigestFile(t.Context(), strings.NewReader("x")); err != nil {
			t.Fatal(err)
		}
	}
	if each := (allocated() - before) / files; each > 4<<10 {
		t.Errorf("each allocates %d bytes", each)
	}
}
