package index_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// Other instances are told of a folder when its archives have been read, whatever else is
// still to be read.
func TestFoldersAreAnnouncedWhenTheyHaveBeenRead(t *testing.T) {
	files := indextest.New(t)
	g := indextest.Gate{Fs: files.Fs, Opened: make(chan struct{})} // which holds back all zips
	o := options(t, indextest.On(t, g).Open)
	o.Workers = 2
	x := newIndex(t, o)
	told := make(chan string, 10)
	x.Observe(&index.Observer{
		Changed: func(folders []string) { told <- strings.Join(folders, " ") },
	})
	rescan(t, x)
	x.Start()
	next := func() (folders string) {
		t.Helper()
		select {
		case folders = <-told:
		case <-time.After(30 * time.Second):
			t.Fatal("nothing is announced")
		}
		return folders
	}
	files.Provider("acme/slow", "1.0.0", "linux_amd64")
	x.Changed("providers/acme/slow")
	files.Write("modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", "x"))
	x.Changed("modules/ACME/vpc/aws") // in any spelling
	if got := next(); got != "modules/ACME/vpc/aws" {
		t.Errorf("the first is %q", got)
	}
	x.Changed("keys")
	if got := next(); got != "keys" {
		t.Errorf("then %q", got)
	}
	x.Changed("modules/acme/vpc/aws", "providers/acme/slow")
	files.Write("modules/acme/net/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", "x"))
	x.Changed("modules/acme/net/aws")
	if got := next(); got != "modules/acme/net/aws" {
		t.Errorf("then %q", got)
	}
	close(g.Opened)
	last := []string{next(), next()}
	slices.Sort(last)
	if want := []string{"modules/acme/vpc/aws providers/acme/slow", "providers/acme/slow"}; !slices.Equal(last, want) {
		t.Errorf("at last %q, want %q", last, want)
	}
}
