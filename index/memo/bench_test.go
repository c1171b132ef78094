package memo

import (
	"fmt"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// BenchmarkStart measures what the memo adds to a warm start of 100,000 packages: reading its
// file, and a scan that finds every file unchanged.
func BenchmarkStart(b *testing.B) {
	const folders, files = 1000, 100
	var m Memo
	var paths []string
	stamp := tree.Stamp{Size: 1e6, ModTime: long.UnixNano(), Inode: 1 << 40, Changed: long.UnixNano()}
	for i := range folders {
		for j := range files {
			path := fmt.Sprintf("mirrors/registry.terraform.io/acme/demo%d/terraform-provider-demo%d_%d.0.0_linux_amd64.zip", i, i, j)
			paths = append(paths, path)
			m.Adopt(tree.LocationOf(path), Record{Stamp: stamp, Digest: archive.Digest{SHA256: wire.SHA256Of([]byte(path)), H1: "h1:0123456789012345678901234567890123456789012=", Size: stamp.Size}})
		}
	}
	content := m.Encode("a tree")
	b.SetBytes(int64(len(content)))
	for b.Loop() {
		var m Memo
		if err := m.Decode(content, "a tree"); err != nil {
			b.Fatal(err)
		}
		m.Begin(long.Add(time.Hour))
		for _, path := range paths {
			if _, ok := m.Get(tree.LocationOf(path), stamp); !ok {
				b.Fatal(path)
			}
		}
	}
}
