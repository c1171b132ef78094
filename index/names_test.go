package index

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
)

// The record of a new file must not keep the names of all files beside it in memory: with
// each published file, they would be in memory once more.
func TestRecordsKeepOnlyTheirOwnName(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector, under which tests are short, finds nothing in the size of the heap")
	}
	const many, added = 600, 10
	long := strings.Repeat("long", 12)
	for _, test := range []struct{ rule, folder, name, file string }{
		{"a file of a provider", "providers/acme/demo", "terraform-provider-demo_1.0.0-" + long + ".%d_linux_amd64.zip", ""},
		{"a version of a module", "modules/acme/vpc/aws", "1.0.0-" + long + ".%d", "main.tf"},
		{"a module", "modules/acme", long + "%d", "aws/1.0.0/main.tf"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			root, size := t.TempDir(), 0
			write := func(number int) {
				name := fmt.Sprintf(test.name, number)
				size += len(name)
				file := filepath.Join(root, test.folder, name, filepath.FromSlash(test.file))
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte("# x\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			for number := range many {
				write(number)
			}
			x := New(Options{
				Open: source.Directories{Root: root}.Open,
				Now:  func() time.Time { return time.Now().Add(time.Hour) }, // nothing is too young
			})
			defer x.Close()
			scan := func() {
				t.Helper()
				if _, err := x.Rescan(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			heap := func() int {
				var m runtime.MemStats
				runtime.GC()
				runtime.GC()
				runtime.ReadMemStats(&m)
				return int(m.HeapAlloc)
			}
			scan()
			scan()
			before := heap()
			for number := range added {
				write(many + number)
				scan()
			}
			grown := heap() - before
			t.Logf("the heap has grown by %d bytes with %d beside names of %d bytes", grown, added, size)
			if grown > added*size/4 {
				t.Error("that is too much")
			}
			runtime.KeepAlive(x)
		})
	}
}
