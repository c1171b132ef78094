package index_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/index/report"
)

// A change without an event is found after Options.Rescan, also while some folder is scanned more
// often.
func TestEverythingIsScannedHoweverOftenFoldersAre(t *testing.T) {
	o := options(t, nil) // its key is of the present
	synctest.Test(t, func(t *testing.T) {
		files := indextest.New(t)
		files.Provider("acme/demo", "1.0.0", "linux_amd64")
		o.Open, o.Rescan, o.Now = files.Open, time.Minute, inAnHour
		x := newIndex(t, o)
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

// A module folder is offered a second after it was copied, also while a file elsewhere is copied
// slowly. That file is looked at again nevertheless.
func TestAModuleFolderDoesNotWaitForASlowCopy(t *testing.T) {
	o, real := options(t, nil), time.Now()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(real)) // a bubble begins before the keys were made
		files := indextest.New(t)
		o.Open = files.Open
		x := newIndex(t, o)
		x.Start()
		<-x.Ready()
		write := func(name, content string) {
			files.Write(name, content)
			if err := files.Fs.Chtimes(name, time.Now(), time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		const zip, module = "providers/acme/demo/" + zipName, "modules/acme/vpc/aws/1.0.0/main.tf"
		whole := indextest.ProviderZip("demo", "1.0.0", "linux_amd64")
		write(zip, whole[:len(whole)/2])
		time.Sleep(250 * time.Millisecond) // as the watcher waits
		x.Refresh("providers/acme/demo")
		time.Sleep(100 * time.Millisecond)
		write(module, "# a module\n")
		x.Refresh("modules/acme/vpc/aws")
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		if s := x.Snapshot(); !offers("acme/vpc/aws", "1.0.0")(s) || offers("acme/demo", "1.0.0")(s) {
			t.Errorf("offered is %+v", s.Report().Offered)
		}
		write(zip, whole) // without an event
		time.Sleep(report.CopyRest + 100*time.Millisecond)
		synctest.Wait()
		if s := x.Snapshot(); !offers("acme/demo", "1.0.0")(s) {
			t.Errorf("at last is offered %+v", s.Report().Offered)
		}
	})
}
