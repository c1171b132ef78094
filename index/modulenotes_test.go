package index_test

import (
	"slices"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// The report of an offered module names the files that its package leaves out, and the files
// that had better not be in it, even if nothing is read again.
func TestNotesOnModules(t *testing.T) {
	files := indextest.New(t)
	for name, content := range map[string]string{
		"1.0.0/main.tf": "# a module\n", "1.0.0/modules/a/main.tf": "# a submodule\n",
		"1.1.0/main.tf": "# a module\n", "1.1.0/.terraform/x": "x", "1.1.0/terraform.tfstate": "{}",
		"1.2.0/main.tf": "# a module\n", "1.2.0/.env": "x", "1.2.0/a.md": "x", "1.2.0/b.md": "x", "1.2.0/docs/c.md": "x", "1.2.0/docs/d.md": "x", "1.2.0/.terraformignore": "*.md\n",
		"1.3.0.tar.gz":  indextest.TarGz("main.tf", "# a module\n"),
		"1.4.0.tar.gz":  indextest.TarGz("vpc-1.4.0/main.tf", "# a module\n", "vpc-1.4.0/terraform.tfstate", "{}"),
		"1.5.0.zip":     indextest.Zip("main.tf", "# a module\n", ".netrc", "x"),
		"1.6.0.tar.gz":  indextest.TarGz("vpc-1.6.0/main.tf", "type =\n", "vpc-1.6.0/examples/a/main.tf", "a {\n"),
		"1.7.0/main.tf": "# a module\n", "1.7.0/a.tofu": "a =\n", "1.7.0/prod.tfvars": "",
		"1.8.0.zip":         indextest.Zip("aws/vpc/main.tf", "# a module\n"),
		"1.9.0/a/b/main.tf": "# a module\n",
	} {
		files.Write("modules/acme/vpc/aws/"+name, content)
	}
	want := map[string][]string{
		"1.0.0": nil,
		"1.1.0": {"leaves out .terraform and terraform.tfstate"},
		"1.2.0": {"leaves out .env, a.md, b.md and 2 others"},
		"1.3.0": nil,
		"1.4.0": {"contains vpc-1.4.0/terraform.tfstate (state), which everyone who downloads the module gets: pack it without"},
		"1.5.0": {"contains .netrc (credentials), which everyone who downloads the module gets: pack it without"},
		"1.6.0": {
			"correct main.tf:1, which clients cannot parse: Invalid expression: Expected the start of an expression, but found an invalid expression token.",
			"correct examples/a/main.tf:1, which clients cannot parse: Unclosed configuration block: There is no closing brace for this block before the end of the file. This may be caused by incorrect brace nesting elsewhere in this file.",
		},
		"1.7.0": {
			"correct a.tofu:1, which clients cannot parse: Invalid expression: Expected the start of an expression, but found an invalid expression token.",
			"contains prod.tfvars, which clients do not read in a module, and in which there may be secrets: pack it without",
		},
		"1.8.0": {"has no .tf file at its root or in modules/, only deeper ones such as aws/vpc/main.tf: clients find them by //aws/vpc in the source alone, so pack the module at the root"},
		"1.9.0": {"has no .tf file at its root or in modules/, only deeper ones such as a/b/main.tf: clients find them by //a/b in the source alone, so pack the module at the root"},
	}
	x := newIndex(t, options(t, files.Open))
	for _, recalled := range []int{0, len(want)} {
		s, err := x.Rescan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		nothingWithheld(t, s)
		if s.Recalled != recalled || len(s.Report().Offered) != len(want) {
			t.Errorf("%d are known, not %d, and %d are offered", s.Recalled, recalled, len(s.Report().Offered))
		}
		for _, o := range s.Report().Offered {
			if !slices.Equal(o.Notes, want[o.Version]) {
				t.Errorf("of %s it says %q", o.Version, o.Notes)
			}
		}
		for _, v := range s.Module(index.PlaceOf(ownVPC)).Versions {
			if folder := map[string]string{"1.4.0": "vpc-1.4.0", "1.6.0": "vpc-1.6.0"}[v.Version]; v.Folder != folder {
				t.Errorf("%s is in %q", v.Version, v.Folder)
			}
		}
	}
}

// The package stays the same, and the note about it does not.
func TestAFileIsAddedThatAPackageLeavesOut(t *testing.T) {
	files := indextest.New(t).Write("modules/acme/vpc/aws/1.0.0/main.tf", "# a module\n")
	x := newIndex(t, options(t, files.Open))
	rescan(t, x)
	files.Write("modules/acme/vpc/aws/1.0.0/terraform.tfstate", "{}")
	s := rescan(t, x)
	if notes := offerOf(s, "acme/vpc/aws", "1.0.0").Notes; s.Read != 0 || !slices.Equal(notes, []string{"leaves out terraform.tfstate"}) {
		t.Errorf("%d packages are read, and the report says %q", s.Read, notes)
	}
}

// A folder into which an archive of a code host was unpacked.
func TestAModuleInTheOneFolderOfAFolder(t *testing.T) {
	files := indextest.New(t)
	files.Write("modules/acme/vpc/aws/1.0.0/vpc-1.0.0/main.tf", "# a module\n").Write("modules/acme/vpc/aws/1.0.0/vpc-1.0.0/README.md", "# VPC\n")
	s := scan(t, files)
	nothingWithheld(t, s)
	if m := s.Module(index.PlaceOf(ownVPC)); m == nil || m.Versions[0].Folder != "vpc-1.0.0" {
		t.Errorf("it is %+v", m)
	}
}

// A folder with a secret withholds its version and no other, until it is gone.
func TestAModuleWithASecret(t *testing.T) {
	files := indextest.New(t)
	const folder = "modules/acme/vpc/aws/1.1.0"
	files.Write("modules/acme/vpc/aws/1.0.0/main.tf", "# a module\n")
	files.Write(folder+"/main.tf", "# a module\n").Write(folder+"/server.key", indextest.NewPublisher(t).PrivateKey())
	x := newIndex(t, options(t, files.Open))
	scanned := func() *index.Snapshot {
		s, err := x.Rescan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for range 2 { // first read, then known
		s := scanned()
		if p := problemOf(s.Report().Withheld, folder); p.Reason != tree.Secret || len(s.Report().Withheld) != 1 || !offers("acme/vpc/aws", "1.0.0")(s) {
			t.Fatalf("withheld is %+v", s.Report().Withheld)
		}
	}
	files.Write(folder+"/.terraformignore", "*.key\n")
	s := scanned()
	nothingWithheld(t, s)
	if !offers("acme/vpc/aws", "1.1.0")(s) {
		t.Error("it is not offered once its secret is ignored")
	}
}
