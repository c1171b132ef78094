package index_test

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
)

// A staged release is verified as if it lay in the tree.
func TestStagedReleases(t *testing.T) {
	acme := indextest.NewPublisher(t)
	const sums = "terraform-provider-demo_1.0.0_SHA256SUMS"
	for _, test := range []struct {
		rule   string
		change func(files *indextest.Tree, dir string)
		reason tree.Reason // empty: it is offered
	}{
		{"a good one", func(*indextest.Tree, string) {}, ""},
		{"a wrong signature", func(files *indextest.Tree, dir string) {
			files.Write(dir+sums+".sig", acme.Sign("another"))
		}, tree.BadSignature},
		{"a wrong sum", func(files *indextest.Tree, dir string) {
			files.Write(dir+zipName, indextest.ProviderZip("demo", "1.0.0", "another"))
		}, tree.ChecksumMismatch},
		{"a package that is not listed", func(files *indextest.Tree, dir string) {
			files.Write(dir+"terraform-provider-demo_1.0.0_linux_arm64.zip", indextest.ProviderZip("demo", "1.0.0", "linux_arm64"))
		}, tree.NotListed},
		{"no signature where it is required", func(files *indextest.Tree, dir string) {
			files.Remove(dir + sums + ".sig")
		}, tree.Unsigned},
	} {
		t.Run(test.rule, func(t *testing.T) {
			const stage = "providers/" + tree.StagingName + "/one"
			var reports [2]*index.Report
			for i, providers := range []string{"providers", stage} {
				files := indextest.New(t).Keys("acme", acme)
				dir := path.Join(providers, "acme/demo/1.0.0") + "/"
				files.ProviderIn(dir, "demo", "1.0.0", "linux_amd64").Signed(acme)
				test.change(files, dir)
				o := options(t, func() (tree.Tree, error) {
					open, err := files.Open()
					return open.Staged(treetest.On(files.Fs, providers)), err
				})
				o.RequireSignatures = true
				reports[i] = scanWith(t, o).Report()
			}
			inTree, staged := reports[0], reports[1]
			if !slices.Equal(staged.Withheld, inTree.Withheld) || len(staged.Offered) != len(inTree.Offered) {
				t.Errorf("staged it is %+v, in the tree %+v", staged, inTree)
			}
			offered := test.reason == ""
			if offered != (len(staged.Withheld) == 0) || !offered && staged.Withheld[0].Reason != test.reason {
				t.Errorf("withheld is %+v", staged.Withheld)
			}
		})
	}
}

// Files that are being staged are neither offered nor reported. In other places a folder of
// that name is like any hidden folder.
func TestTheStagingFolderIsPassedOver(t *testing.T) {
	files := indextest.New(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64")
	files.ProviderIn("providers/"+tree.StagingName+"/acme@demo@2.0.0/acme/demo/2.0.0", "demo", "2.0.0", "linux_amd64")
	files.Write("modules/"+tree.StagingName+"/acme/vpc/aws/1.0.0/main.tf", "")
	s := scan(t, files)
	nothingWithheld(t, s)
	if len(s.Report().Offered) != 1 || s.Report().IgnoredTotal != 0 {
		t.Errorf("offered is %+v, ignored is %+v", s.Report().Offered, s.Report().Ignored)
	}
	files.Write("providers/acme/"+tree.StagingName+"/x", "")
	files.Write("keys/"+tree.StagingName, "x")
	if s = scan(t, files); s.Report().TemporaryTotal != 2 || !strings.HasSuffix(s.Report().Ignored[0].Path, tree.StagingName) {
		t.Errorf("ignored is %+v", s.Report().Ignored)
	}
}
