package offer

import (
	"testing"

	version "github.com/hashicorp/go-version"

	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/index/memo"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A version that is taken for unchanged keeps what the report and the pages say of it.
func TestWhatMakesAnotherVersion(t *testing.T) {
	made := func(change func(*ModulePackage)) *ModulePackage {
		p := &ModulePackage{
			Location: tree.Location{Dir: "acme/vpc/aws", Name: "1.2.0.zip"}, Version: version.Must(version.NewVersion("1.2.0")), Format: "zip",
			Record: memo.Record{Stamp: tree.Stamp{Size: 3, ModTime: 1, Inode: 2, Changed: 1}, Digest: archive.Digest{Size: 3}},
		}
		change(p)
		return p
	}
	before := made(func(*ModulePackage) {}).ModuleVersion("", nil).WithOffered(1)
	for name, test := range map[string]struct {
		change func(*ModulePackage)
		same   bool
	}{
		"nothing":                     {func(*ModulePackage) {}, true},
		"the folder of a staged file": {func(p *ModulePackage) { p.Location = tree.Location{Name: p.Path()} }, true},
		"its name":                    {func(p *ModulePackage) { p.Name = "v1.2.0.zip" }, false},
		"its time":                    {func(p *ModulePackage) { p.Stamp.ModTime = 2 }, false},
		"its inode":                   {func(p *ModulePackage) { p.Stamp.Inode = 3 }, false},
		"the files of a folder":       {func(p *ModulePackage) { p.Stamp.Files = "another" }, false},
		"its bytes":                   {func(p *ModulePackage) { p.SHA256 = wire.SHA256{1} }, false},
		"the hashes of its files":     {func(p *ModulePackage) { p.FileHashes = "h1:" }, false},
		"what has been read of it":    {func(p *ModulePackage) { p.Content = []byte("more") }, false},
		"the bytes it had at first":   {func(p *ModulePackage) { p.Earlier = &memo.EarlierBytes{H1: "h1:"} }, false},
		"its tag":                     {func(p *ModulePackage) { p.Tag = &Tag{Commit: "a"} }, false},
		"who signed it":               {func(p *ModulePackage) { p.Signature = &Signature{By: ByPublisher, KeyID: "A"} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			if p := made(test.change); (p.ModuleVersion("", before) == before) != test.same {
				t.Errorf("it is taken for the version before: %v", !test.same)
			}
		})
	}
}
