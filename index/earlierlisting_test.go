package index

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/changes"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
)

// While the archives of a folder are read, each scan lists the folder again. The archives
// must not keep earlier listings in memory: while a million archives are read, there are
// many scans.
func TestUnreadArchivesKeepOnlyTheNewestListing(t *testing.T) {
	root := t.TempDir()
	write := func(name string) {
		t.Helper()
		file := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("not read yet"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("providers/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip")
	write("providers/acme/demo/1.1.0/linux_amd64/terraform-provider-demo_v1.1.0")
	write("modules/acme/vpc/aws/1.0.0.tar.gz")
	write("modules/acme/vpc/aws/1.1.0/main.tf")
	x := New(Options{
		Open: source.Directories{Root: root}.Open,
		Now:  func() time.Time { return time.Now().Add(time.Hour) }, // nothing is too young
	})
	defer x.Close()
	listings := func() (all []*listing) {
		t.Helper()
		// The scanner leaves archives to the queue, which this test does not fill.
		if _, err := x.scanner.scan(t.Context(), changes.Everything(), false, 0); err != nil {
			t.Fatal(err)
		}
		for _, a := range []address.Address{{Namespace: "acme", Name: "demo"}, {Namespace: "acme", Name: "vpc", System: "aws"}} {
			l := x.scanner.last.group(a).at("").listing
			if l == nil || len(l.walker.unread) != 2 {
				t.Fatalf("%s: the listing is %+v", a, l)
			}
			all = append(all, l)
		}
		return all
	}
	var provider weak.Pointer[providerFolder]
	var module weak.Pointer[moduleFolder]
	first := listings()
	unread := first[0].walker.unread[0]
	provider, module = weak.Make(first[0].provider), weak.Make(first[1].module)
	first = nil
	write("providers/acme/demo/terraform-provider-demo_1.2.0_linux_amd64.zip.part")
	write("modules/acme/vpc/aws/LICENSE")
	if again := listings(); again[0].walker.unread[0] != unread {
		t.Error("the archives of the earlier listing are not used again")
	}
	runtime.GC()
	runtime.GC()
	if provider.Value() != nil || module.Value() != nil {
		t.Error("the earlier listings are still in memory")
	}
	runtime.KeepAlive(x)
}
