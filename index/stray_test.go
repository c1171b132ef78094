package index_test

import (
	"reflect"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
)

// Files that tools and file systems leave behind in a tree are not reported at all.
func TestHarmlessFiles(t *testing.T) {
	files := indextest.New(t)
	files.Provider("acme/hello", "1.0.0", "linux_amd64").Checksums()
	const sums = "providers/acme/hello/terraform-provider-hello_1.0.0_SHA256SUMS"
	files.Keys("acme", indextest.NewPublisher(t))
	files.Write("modules/acme/vpc/aws/1.0.0/main.tf", "x")
	for _, dir := range []string{"providers/", "providers/acme/", "providers/acme/hello/", "modules/", "modules/acme/vpc/", "modules/acme/vpc/aws/", "keys/"} {
		for _, name := range []string{"README.md", "LICENSE", "CHANGELOG.md", "NOTICE.txt", ".gitkeep", ".gitignore", ".gitattributes", ".git/config",
			".DS_Store", "Thumbs.db", "lost+found/x", ".snapshot/x", "@eaDir/x", ".nfs0000000001", ".terraform.lock.hcl"} {
			files.Write(dir+name, "x")
		}
	}
	for _, name := range []string{"index.json", "1.0.0.json", "2.0.0.json", ".versions.json", ".versions.json.damaged", ".1.0.0.packages.json", "artifacts.json", "config.yaml", "metadata.json",
		"terraform-provider-hello_1.0.0_linux_amd64.tar.gz", "terraform-provider-hello_1.0.0_linux_amd64.deb", "terraform-provider-hello_1.0.0_linux_amd64.zip.sbom.json",
		"hello_linux_amd64_v1/terraform-provider-hello_v1.0.0", "terraform-provider-hello_v1.0.0"} {
		files.Write("providers/acme/hello/"+name, "x")
	}
	for _, name := range []string{".versions.json", ".versions.json.damaged", ".1.0.0.source.json", ".1.0.0-rc.1+b.source.json"} {
		files.Write("modules/acme/vpc/aws/"+name, "x")
	}
	files.Write(sums+".sig", "").Write(sums+".asc", "x").Write(sums+".72D7468F.sig", "x")
	s := scan(t, files)
	if s.Report().IgnoredTotal != 0 {
		t.Errorf("ignored is %+v", s.Report().Ignored)
	}
	for _, p := range s.Report().Withheld {
		if p.Path != sums+".sig" {
			t.Errorf("withheld is %+v", p)
		}
	}
	if !offers("acme/vpc/aws", "1.0.0")(s) {
		t.Error("the module is not offered")
	}
}

// Other files are reported as ignored, with advice. Temporary files have their own reason.
func TestIgnoredFiles(t *testing.T) {
	files := indextest.New(t)
	files.Provider("acme/hello", "1.0.0", "linux_amd64")
	ignored := []string{"providers/notes.txt", "providers/acme/hello/notes.txt", "modules/acme/notes", "modules/acme/vpc/aws/notes", "keys/notes"}
	temporary := []string{"providers/acme/hello/" + helloZip + ".part", "providers/acme/hello/." + helloZip + ".Ab12Cd", "modules/acme/vpc/aws/1.0.0.zip~", "keys/acme.asc.tmp"}
	for _, name := range append(ignored, temporary...) {
		files.Write(name, "x")
	}
	s := scan(t, files)
	nothingWithheld(t, s)
	if s.Report().IgnoredTotal != len(ignored)+len(temporary) || s.Report().TemporaryTotal != len(temporary) {
		t.Errorf("%d are ignored, %d of them temporary: %+v", s.Report().IgnoredTotal, s.Report().TemporaryTotal, s.Report().Ignored)
	}
	for reason, names := range map[tree.Reason][]string{tree.NotPartOfTree: ignored, tree.Temporary: temporary} {
		for _, name := range names {
			if p := problemOf(s.Report().Ignored, name); p.Reason != reason || !strings.Contains(p.Detail, ": ") {
				t.Errorf("of %s, the report says %+v", name, p)
			}
		}
	}
}

// The advice for a folder depends on what is in it. If that cannot be read, it is tried again.
func TestAMisplacedFolderThatCannotBeRead(t *testing.T) {
	real := time.Now()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(real)) // a bubble begins before the keys were made
		const folder = "providers/acme/1.0.0"
		files := indextest.New(t)
		files.ProviderIn(folder, "demo", "1.0.0", "linux_amd64")
		var faults treetest.Faults
		faults.When(func(_ int, o treetest.Operation) error {
			if o.Path == folder {
				return syscall.EIO
			}
			return nil
		})
		x := newIndex(t, options(t, faults.Open(files.Open)))
		x.Start()
		for _, step := range []struct{ rule, advice string }{
			{"while the folder cannot be read", "move it to providers/acme/TYPE/1.0.0/"},
			{"a minute after it can", "move it to providers/acme/demo/1.0.0/"},
		} {
			synctest.Wait()
			if p := problemOf(x.Snapshot().Report().Withheld, folder); !strings.Contains(p.Detail, step.advice) {
				t.Errorf("%s, the report says %+v", step.rule, p)
			}
			faults.End()
			time.Sleep(time.Minute)
		}
	})
}

// A store may have a file with the name of a folder, as after a wrong `aws s3 cp`. It hides nothing of
// what is in the folder.
func TestAFileWithTheNameOfAFolder(t *testing.T) {
	for name, says := range map[string]string{
		"providers/acme":                 "there are only folders here: move or remove it",
		"providers/acme/demo":            "there are only folders here: move or remove it",
		"providers/acme/demo/1.0.0":      "it is not a file of a provider release: move or remove it",
		"modules/acme":                   "there are only folders here: move or remove it",
		"modules/acme/vpc/aws/1.0.0":     "a module is a folder or an archive named after its version, such as 1.0.0.tar.gz: move or remove it",
		"keys/registry.terraform.io":     "public keys are in files named NAMESPACE.asc: move or remove it",
		"providers/registry.example.org": "there are only folders here: move or remove it",
	} {
		b := new(treetest.Bucket)
		files := indextest.InBucket(t, b)
		files.ProviderIn("providers/acme/demo/1.0.0", "demo", "1.0.0", "linux_amd64")
		files.ProviderIn("providers/registry.example.org/acme/demo/1.0.0", "demo", "1.0.0", "linux_amd64")
		files.Write("modules/acme/vpc/aws/1.0.0/main.tf", "")
		files.Write("keys/registry.terraform.io/acme.asc", "x")
		o := options(t, nil)
		o.Open, o.Listed = nil, source.Directories{Root: "."}.Listed(b)
		o.Now = inAnHour
		x := index.New(o)
		before := rescan(t, x).Report()
		x.Close()
		b.Put(name, "x", time.Now())
		x = index.New(o)
		for range 2 {
			now := rescan(t, x).Report()
			if !reflect.DeepEqual(now.Offered, before.Offered) || !reflect.DeepEqual(now.Withheld, before.Withheld) {
				t.Errorf("%s: offered is %+v, withheld is %+v", name, now.Offered, now.Withheld)
			}
			if len(now.Ignored) != 1 || now.Ignored[0].Path != name || now.Ignored[0].Detail != says {
				t.Errorf("%s: ignored is %+v", name, now.Ignored)
			}
		}
		x.Close()
	}
}
