package index

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"
	"weak"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/changes"
	"github.com/caddy-terraform/caddy-terraform-registry/index/memo"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
)

// unreadTree returns an index whose archives nobody reads: a test scans by itself. write writes
// a file of its tree.
func unreadTree(t *testing.T) (x *Index, write func(name string)) {
	root := t.TempDir()
	x = New(Options{
		Open: source.Directories{Root: root}.Open,
		Now:  func() time.Time { return time.Now().Add(time.Hour) }, // nothing is too young
	})
	t.Cleanup(func() { x.Close() })
	return x, func(name string) {
		t.Helper()
		file := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("not read yet"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// While the archives of a folder are read, a scan lists the folder again if it has changed. The
// archives must not keep earlier listings in memory: while a million archives are read, there are
// many scans.
func TestUnreadArchivesKeepOnlyTheNewestListing(t *testing.T) {
	x, write := unreadTree(t)
	write("providers/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip")
	write("providers/acme/demo/1.1.0/linux_amd64/terraform-provider-demo_v1.1.0")
	write("modules/acme/vpc/aws/1.0.0.tar.gz")
	write("modules/acme/vpc/aws/1.1.0/main.tf")
	listings := func() (all []*listing) {
		t.Helper()
		// The scanner leaves archives to the queue, which this test does not fill.
		if _, err := x.scanner.scan(t.Context(), changes.Everything(), false, 0); err != nil {
			t.Fatal(err)
		}
		for _, a := range []address.Address{{Namespace: "acme", Name: "demo"}, {Namespace: "acme", Name: "vpc", System: "aws"}} {
			l := x.scanner.last.group(a).entry("").listing
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
	provider, module = weak.Make(first[0].found.(*providerFolder)), weak.Make(first[1].found.(*moduleFolder))
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

// An askedMemo is a shared memo that cannot be read. It tells when it is asked.
type askedMemo struct {
	memo.Shared
	asked func()
}

func (m *askedMemo) List(context.Context) ([]string, error) {
	m.asked()
	return nil, context.Canceled
}

// A scan during the first read of a large tree must not list a million archives twice: only
// a folder that has changed is listed again.
func TestAScanKeepsTheListingOfAnUnchangedFolderThatIsBeingRead(t *testing.T) {
	x, writeFile := unreadTree(t)
	write := func(version string) {
		t.Helper()
		writeFile("providers/acme/demo/terraform-provider-demo_" + version + "_linux_amd64.zip")
	}
	write("1.0.0")
	write("1.1.0")
	write("1.2.0")
	last := func() *entry { return x.scanner.last.group(address.Address{Namespace: "acme", Name: "demo"}).entry("") }
	entryAfterScan := func() *entry {
		t.Helper()
		if _, err := x.scanner.scan(t.Context(), changes.Everything(), false, 0); err != nil {
			t.Fatal(err)
		}
		return last()
	}
	first := entryAfterScan().listing
	unread := first.walker.unread
	if len(unread) != 3 {
		t.Fatalf("the first scan leaves %d archives to be read, want 3", len(unread))
	}
	second := entryAfterScan().listing
	if second.found != first.found {
		t.Error("an unchanged folder has been listed again")
	}
	walker := weak.Make(second.walker)
	second = nil

	commit := func(a *job, r readResult) {
		a.apply(r)
		x.scanner.complete(t.Context(), []*listing{a.listing})
	}
	commit(unread[0], x.scanner.readArchive(t.Context(), unread[0]))
	third := entryAfterScan()
	if l := third.listing; l.found != first.found || !slices.Equal(l.walker.unread, unread[1:]) || unread[1].listing != l {
		t.Errorf("when one of three archives has been read, the listing is %+v with the unread archives %v", l, l.walker.unread)
	}
	if n := x.scanner.last.Recalled; n != 1 {
		t.Errorf("the scan has recalled %d archives, want the one that has been read", n)
	}
	if n := len(third.report.Withheld); n != 1 {
		t.Errorf("the archive that has been read, and is no zip, makes %d problems, want 1", n)
	}

	runtime.GC()
	runtime.GC()
	if walker.Value() != nil {
		t.Error("an archive that has been read keeps the listing before")
	}

	// A scan is broken off after it has listed the folder: what follows belongs to the entry.
	ctx, cancel := context.WithCancel(t.Context())
	x.scanner.sharing = memo.NewSharing(&x.scanner.memo, &askedMemo{asked: cancel}, func(string, string) {})
	if _, err := x.scanner.scan(ctx, changes.Everything(), false, 0); err == nil {
		t.Fatal("the scan has not been broken off")
	}
	x.scanner.sharing = nil
	commit(unread[1], readResult{failed: "the disk is broken"})
	if e := last(); e.failed != "the disk is broken" || e.listing == nil {
		t.Errorf("the entry does not know that a reading has failed: %+v", e)
	}
	fourth := entryAfterScan().listing
	if fourth.found == first.found || len(fourth.walker.unread) != 2 || slices.Contains(fourth.walker.unread, unread[1]) {
		t.Errorf("an archive whose reading has failed is not read again: %v", fourth.walker.unread)
	}

	write("1.3.0")
	if l := entryAfterScan().listing; l.found == fourth.found || len(l.walker.unread) != 3 {
		t.Errorf("after a change, the listing is %+v with the unread archives %v", l, l.walker.unread)
	}
}
