package index_test

import (
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// Where nothing is found, the report says which folder was meant, or where the
// first file goes.
func TestTheRootIsAnotherFolder(t *testing.T) {
	zip := indextest.ProviderZip("hello", "1.0.0", "linux_amd64")
	module := indextest.TarGz("main.tf", "# a module\n")
	for _, test := range []struct {
		rule  string
		files []string // names and contents, in a folder above the root
		root  string
		says  []string // nothing: there is no hint
	}{
		{"an empty root", nil, "root", []string{"nothing is in the root yet", "providers/NAMESPACE/TYPE/terraform-provider-TYPE_VERSION_OS_ARCH.zip", "modules/NAMESPACE/NAME/SYSTEM/VERSION.tar.gz"}},
		{"empty folders", []string{"root/providers/.gitkeep", "", "root/modules/README.md", "x"}, "root", []string{"nothing is in the root yet"}},
		{"any other folder", []string{"root/a/b.txt", "x", "root/main.tf", "x"}, "root", []string{"nothing is in the root yet"}},
		{"a tree", []string{"root/providers/acme/hello/" + helloZip, zip}, "root", nil},
		{"a tree with something that is withheld", []string{"root/providers/acme/hello/" + helloZip, "no zip"}, "root", nil},
		{"keys that came first", []string{"root/keys/acme.asc", indextest.NewPublisher(t).PublicKey()}, "root", nil},
		{"the folder above a tree", []string{"root/data/terraform/providers/acme/hello/" + helloZip, zip}, "root", []string{"make its folder data/terraform the root"}},
		{"the folder above a tree of modules", []string{"root/terraform/modules/acme/vpc/aws/1.0.0/main.tf", "x"}, "root", []string{"make its folder terraform the root"}},
		{"the providers folder", []string{"srv/providers/acme/hello/" + helloZip, zip}, "srv/providers", []string{"the root is the folder providers of a tree", "make the folder above it the root"}},
		{"the providers folder, with a folder for each version", []string{"srv/providers/acme/hello/1.0.0/" + helloZip, zip}, "srv/providers", []string{"make the folder above it the root"}},
		{"the modules folder", []string{"srv/modules/acme/vpc/aws/1.0.0.tar.gz", module}, "srv/modules", []string{"the root is the folder modules of a tree", "make the folder above it the root"}},
		{"the folder of a namespace", []string{"srv/providers/acme/hello/" + helloZip, zip}, "srv/providers/acme", []string{"make the folder that has providers in it the root"}},
		{"the folder of a provider", []string{"srv/providers/acme/hello/" + helloZip, zip}, "srv/providers/acme/hello", []string{"make the folder that has providers in it the root"}},
		{"what terraform providers mirror wrote", []string{"mirror/registry.terraform.io/acme/hello/" + helloZip, zip, "mirror/registry.terraform.io/acme/hello/index.json", "{}"}, "mirror",
			[]string{"providers are right in the root (registry.terraform.io/acme/hello/" + helloZip + ")", "move them to the folder providers", "option providers"}},
		{"a plugin cache", []string{"cache/registry.terraform.io/acme/hello/1.0.0/linux_amd64/terraform-provider-hello_v1.0.0_x5", "x"}, "cache",
			[]string{"providers are right in the root (registry.terraform.io/acme/hello/1.0.0/linux_amd64)", "move them to the folder providers", "option providers"}},
		{"the providers folder, with unpacked packages", []string{"srv/providers/acme/hello/1.0.0/linux_amd64/terraform-provider-hello_v1.0.0", "x"}, "srv/providers", []string{"make the folder above it the root"}},
		{"the folder above a tree, with unpacked packages", []string{"root/terraform/providers/acme/hello/1.0.0/linux_amd64/terraform-provider-hello_v1.0.0", "x"}, "root", []string{"make its folder terraform the root"}},
		{"modules right in the root", []string{"root/acme/vpc/aws/1.0.0/main.tf", "x"}, "root", []string{"modules are right in the root (acme/vpc/aws/1.0.0)"}},
		{"packages right in the root", []string{"dist/" + helloZip, zip}, "dist", []string{"the path of " + helloZip + " should be providers/NAMESPACE/hello/" + helloZip}},
		{"a folder without its s", []string{"root/provider/acme/hello/" + helloZip, zip}, "root", []string{"the folder provider in the root must be named providers"}},
		{"a folder in another case", []string{"root/Modules/acme/vpc/aws/1.0.0/main.tf", "x"}, "root", []string{"the folder Modules in the root must be named modules"}},
		{"a name that touches the terminal", []string{"root/a\x1b[2Jb/providers/acme/hello/" + helloZip, zip}, "root", []string{`make its folder "a\x1b[2Jb" the root`}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			dir := t.TempDir()
			tree := indextest.OnDisk(t, dir)
			if err := tree.Fs.MkdirAll(test.root, 0o755); err != nil {
				t.Fatal(err)
			}
			onAnother := make(fstest.MapFS)
			onAnother[test.root+"/.keep"] = new(fstest.MapFile)
			for i := 0; i < len(test.files); i += 2 {
				tree.Write(test.files[i], test.files[i+1])
				onAnother[test.files[i]] = &fstest.MapFile{Data: []byte(test.files[i+1])}
			}
			for name, open := range map[string]func() (index.Tree, error){
				"disk":  index.Directories{Root: filepath.Join(dir, test.root)}.Open,
				"named": func() (index.Tree, error) { return index.Directories{Root: test.root}.OpenIn(onAnother) },
			} {
				hint := scanWith(t, options(t, open)).Report.Hint
				if test.says == nil && hint != "" {
					t.Errorf("%s: there is the hint %q", name, hint)
				}
				for _, says := range test.says {
					if !strings.Contains(hint, says) {
						t.Errorf("%s: the hint is %q, want %q", name, hint, says)
					}
				}
				if strings.Contains(hint, dir) || strings.ContainsAny(hint, "\n\x1b") {
					t.Errorf("%s: the hint has what it should not: %q", name, hint)
				}
			}
		})
	}
}

// The root may be any folder of the machine: the search comes to an end.
func TestTheRootIsAFolderOfManyFiles(t *testing.T) {
	files := fstest.MapFS{"root/x": new(fstest.MapFile)}
	for _, a := range "abcdefghij" {
		for _, b := range "abcdefghij" {
			for _, c := range "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz" {
				files["root/"+string(a)+"/"+string(b)+"/"+string(c)+"/x/y/z/x/y/z/x/y/z"] = new(fstest.MapFile)
			}
		}
	}
	files["root/z/providers/acme/hello/"+helloZip] = new(fstest.MapFile)
	s := scanWith(t, options(t, func() (index.Tree, error) { return index.Directories{Root: "root"}.OpenIn(files) }))
	if !strings.Contains(s.Report.Hint, "nothing is in the root yet") {
		t.Errorf("the hint is %q", s.Report.Hint)
	}
}
