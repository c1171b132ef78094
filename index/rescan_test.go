package index_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// A change without an event is found after Options.Rescan, also while some folder is scanned more
// often.
func TestEverythingIsScannedHoweverOftenFoldersAre(t *testing.T) {
	o := options(t, nil) // its key is of the present
	synctest.Test(t, func(t *testing.T) {
		files := indextest.New(t)
		files.Provider("acme/demo", "1.0.0", "linux_amd64")
		o.Open, o.Rescan, o.Now = files.Open, time.Minute, inAnHour
		x := index.New(o)
		defer x.Close()
		x.Start()
		<-x.Ready()
		files.Provider("acme/other", "1.0.0", "linux_amd64")
		for range 10 {
			x.Changed("providers/acme/demo")
			time.Sleep(20 * time.Second)
		}
		if !offers("acme/other", "1.0.0")(x.Snapshot()) {
			t.Error("it is not found")
		}
	})
}
