package index

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// What is kept of a new file must not keep the names of all others in its folder: with
// each file that is published, they would be in memory once more.
func TestANewFileKeepsOnlyItsName(t *testing.T) {
	const many, added = 5000, 40
	root := t.TempDir()
	folder := filepath.Join(root, "providers", "acme", "demo")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	size := 0
	write := func(number int) {
		name := fmt.Sprintf("terraform-provider-demo_1.0.%d_linux_amd64.zip", number)
		size += len(name)
		if err := os.WriteFile(filepath.Join(folder, name), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for number := range many {
		write(number)
	}
	x := &scanner{options: Options{
		Open: Directories{Root: root}.Open,
		Now:  func() time.Time { return time.Now().Add(time.Hour) }, // nothing is too young
	}}
	scan := func() {
		t.Helper()
		if _, err := x.scan(t.Context(), nil, nil); err != nil {
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
	if grown := heap() - before; grown > added*size/4 {
		t.Errorf("the heap has grown by %d bytes with %d files beside names of %d bytes", grown, added, size)
	}
	runtime.KeepAlive(x)
}
