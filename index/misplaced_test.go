package index_test

import (
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
)

const helloZip = "terraform-provider-hello_1.0.0_linux_amd64.zip"

// A file that was meant to be offered but lies elsewhere is a problem, and the
// report says where it belongs. If that is a path, the file is offered after moving it
// there.
func TestMisplacedFiles(t *testing.T) {
	zip := indextest.ProviderZip("hello", "1.0.0", "linux_amd64")
	module := indextest.TarGz("main.tf", "# a module\n")
	key := indextest.NewPublisher(t).PublicKey()
	for _, test := range []struct {
		rule    string
		files   []string // names and contents
		path    string   // of the one problem
		says    string
		offered string // when it has been moved or renamed
	}{
		{"a package in the folder of its namespace", []string{"providers/acme/" + helloZip, zip},
			"providers/acme/" + helloZip, "move it to providers/acme/hello/", "acme/hello"},
		{"a package in the folder of a registry", []string{"providers/registry.example.com/" + helloZip, zip},
			"providers/registry.example.com/" + helloZip, "move it to providers/registry.example.com/NAMESPACE/hello/", "registry.example.com/acme/hello"},
		{"a package in providers", []string{"providers/" + helloZip, zip},
			"providers/" + helloZip, "move it to providers/NAMESPACE/hello/", "acme/hello"},
		{"a package without its namespace", []string{"providers/hello/" + helloZip, zip},
			"providers/hello/" + helloZip, "move it to providers/NAMESPACE/hello/", "acme/hello"},
		{"a version without the folder of its provider", []string{"providers/acme/1.0.0/" + helloZip, zip},
			"providers/acme/1.0.0", "move it to providers/acme/hello/1.0.0/", "acme/hello"},
		{"a version without its namespace", []string{"providers/hello/1.0.0/" + helloZip, zip},
			"providers/hello/1.0.0", "move it to providers/NAMESPACE/hello/1.0.0/", "acme/hello"},
		{"a package one folder too low", []string{"providers/acme/hello/dist/" + helloZip, zip},
			"providers/acme/hello/dist/" + helloZip, "move it to providers/acme/hello/", "acme/hello"},
		{"a package in a folder of its platform", []string{"providers/acme/hello/linux_amd64/" + helloZip, zip},
			"providers/acme/hello/linux_amd64/" + helloZip, "move it to providers/acme/hello/", "acme/hello"},
		{"a package below the folder of its version", []string{"providers/acme/hello/1.0.0/dist/" + helloZip, zip},
			"providers/acme/hello/1.0.0/dist/" + helloZip, "move it to providers/acme/hello/1.0.0/", "acme/hello"},
		{"a package with a folder too many", []string{"providers/acme/team/hello/" + helloZip, zip},
			"providers/acme/team/hello/" + helloZip, "move it to providers/acme/hello/", "acme/hello"},
		{"a version with a folder too many", []string{"providers/acme/team/hello/1.0.0/" + helloZip, zip},
			"providers/acme/team/hello/1.0.0/" + helloZip, "move it to providers/acme/hello/", "acme/hello"},
		{"a package among the modules", []string{"modules/acme/" + helloZip, zip},
			"modules/acme/" + helloZip, "move it to providers/acme/hello/", "acme/hello"},
		{"a package in the folder of a module", []string{"modules/acme/hello/linux/" + helloZip, zip},
			"modules/acme/hello/linux/" + helloZip, "move it to providers/acme/hello/", "acme/hello"},
		{"a zip of any name", []string{"providers/acme/hello.zip", zip},
			"providers/acme/hello.zip", "providers/acme/TYPE/terraform-provider-TYPE_VERSION_OS_ARCH.zip", ""},
		{"a release in another format", []string{"providers/acme/hello/terraform-provider-hello_1.0.0_linux_amd64.tar.gz", "x"},
			"providers/acme/hello/terraform-provider-hello_1.0.0_linux_amd64.tar.gz", "from zip files only", ""},
		{"a program that is not packed", []string{"providers/acme/hello/terraform-provider-hello_v1.0.0", "x"},
			"providers/acme/hello/terraform-provider-hello_v1.0.0", "pack it as providers/acme/hello/terraform-provider-hello_VERSION_OS_ARCH.zip", ""},
		{"a module package in the folder of a provider", []string{"providers/acme/hello/1.0.0.tar.gz", module},
			"providers/acme/hello/1.0.0.tar.gz", "move it to modules/acme/NAME/SYSTEM/1.0.0.tar.gz", "acme/vpc/aws"},
		{"a module in the folder of a provider", []string{"providers/acme/hello/main.tf", "x", "providers/acme/hello/outputs.tf", "x"},
			"providers/acme/hello/main.tf", "modules/acme/NAME/SYSTEM/VERSION/", ""},
		{"keys among the providers", []string{"providers/acme/acme.asc", key},
			"providers/acme/acme.asc", "move it to keys/acme.asc", ""},

		{"a signature in text form", []string{"providers/acme/hello/" + helloZip, zip, "providers/acme/hello/terraform-provider-hello_1.0.0_SHA256SUMS.asc", "x"},
			"providers/acme/hello/terraform-provider-hello_1.0.0_SHA256SUMS.asc",
			"`gpg --dearmor --output terraform-provider-hello_1.0.0_SHA256SUMS.sig terraform-provider-hello_1.0.0_SHA256SUMS.asc`", ""},
		{"a signature named by its key", []string{"providers/acme/hello/" + helloZip, zip, "providers/acme/hello/terraform-provider-hello_1.0.0_SHA256SUMS.72D7468F.sig", "x"},
			"providers/acme/hello/terraform-provider-hello_1.0.0_SHA256SUMS.72D7468F.sig", "rename it to terraform-provider-hello_1.0.0_SHA256SUMS.sig", ""},
		{"checksums of any provider", []string{"providers/acme/hello/1.0.0/" + helloZip, zip, "providers/acme/hello/1.0.0/SHA256SUMS", "x"},
			"providers/acme/hello/1.0.0/SHA256SUMS", "rename it to terraform-provider-hello_1.0.0_SHA256SUMS", ""},
		{"a manifest as it is in the provider's repository", []string{"providers/acme/hello/1.0.0/" + helloZip, zip, "providers/acme/hello/1.0.0/terraform-registry-manifest.json", "{}"},
			"providers/acme/hello/1.0.0/terraform-registry-manifest.json", "rename it to terraform-provider-hello_1.0.0_manifest.json", ""},

		{"a module package without SYSTEM", []string{"modules/acme/vpc/1.0.0.tar.gz", module},
			"modules/acme/vpc/1.0.0.tar.gz", "the folder SYSTEM (such as aws, or any) is missing: move it to modules/acme/vpc/SYSTEM/1.0.0.tar.gz", "acme/vpc/aws"},
		{"a module folder without SYSTEM", []string{"modules/acme/vpc/1.0.0/main.tf", "x"},
			"modules/acme/vpc/1.0.0", "the folder SYSTEM (such as aws, or any) is missing: move the module to modules/acme/vpc/SYSTEM/1.0.0/", "acme/vpc/aws"},
		{"a module package without NAME and SYSTEM", []string{"modules/acme/1.0.0.tgz", module},
			"modules/acme/1.0.0.tgz", "the folders NAME and SYSTEM (such as aws, or any) are missing: move it to modules/acme/NAME/SYSTEM/1.0.0.tgz", "acme/vpc/aws"},
		{"a version of a module in the folder of a namespace", []string{"modules/acme/1.0.0/main.tf", "x"},
			"modules/acme/1.0.0/main.tf", "move the module to modules/acme/NAME/SYSTEM/1.0.0/", ""},
		{"a module without VERSION", []string{"modules/acme/vpc/aws/main.tf", "x", "modules/acme/vpc/aws/variables.tf", "x", "modules/acme/vpc/aws/modules/a/main.tf", "x", "modules/acme/vpc/aws/examples/a/main.tf", "x"},
			"modules/acme/vpc/aws/main.tf", "the folder VERSION is missing: move the module to modules/acme/vpc/aws/VERSION/", ""},
		{"a module without SYSTEM and VERSION", []string{"modules/acme/vpc/a.tf", "x", "modules/acme/vpc/main.tf", "x"},
			"modules/acme/vpc/main.tf", "the folders SYSTEM (such as aws, or any) and VERSION are missing: move the module to modules/acme/vpc/SYSTEM/VERSION/", ""},
		{"a module package without a version", []string{"modules/acme/vpc.zip", "x"},
			"modules/acme/vpc.zip", "move it to modules/acme/NAME/SYSTEM/VERSION.tar.gz", ""},
		{"a module folder named after a branch", []string{"modules/acme/vpc/aws/main/main.tf", "x"},
			"modules/acme/vpc/aws/main", "rename it to its version, such as 1.0.0", ""},
		{"a module folder named after a tag", []string{"modules/acme/vpc/aws/vpc-1.0.0/main.tf", "x"},
			"modules/acme/vpc/aws/vpc-1.0.0", "rename it to 1.0.0", "acme/vpc/aws"},
		{"a module package one folder too low", []string{"modules/acme/vpc/aws/archives/1.0.0.tar.gz", module},
			"modules/acme/vpc/aws/archives/1.0.0.tar.gz", "move it to modules/acme/vpc/aws/", "acme/vpc/aws"},
		{"a module as .tar", []string{"modules/acme/vpc/aws/1.0.0.tar", "x"}, "modules/acme/vpc/aws/1.0.0.tar", "pack the module as modules/acme/vpc/aws/1.0.0.tar.gz", ""},
		{"a module as .tar.bz2", []string{"modules/acme/vpc/aws/1.0.0.tar.bz2", "x"}, "modules/acme/vpc/aws/1.0.0.tar.bz2", "pack the module as modules/acme/vpc/aws/1.0.0.tar.gz", ""},
		{"a module as .tar.xz", []string{"modules/acme/vpc/aws/1.0.0.tar.xz", "x"}, "modules/acme/vpc/aws/1.0.0.tar.xz", "pack the module as modules/acme/vpc/aws/1.0.0.tar.gz", ""},
		{"a module as .rar", []string{"modules/acme/vpc/aws/1.0.0.rar", "x"}, "modules/acme/vpc/aws/1.0.0.rar", ".tar.gz, .tgz or .zip", ""},
		{"a module as .tar without SYSTEM", []string{"modules/acme/vpc/1.0.0.tar", "x"}, "modules/acme/vpc/1.0.0.tar", "as modules/acme/vpc/SYSTEM/1.0.0.tar.gz", ""},

		{"keys in binary form", []string{"keys/acme.gpg", "\x99\x01"}, "keys/acme.gpg", "`gpg --armor --export KEY > keys/acme.asc`", ""},
		{"keys of another registry in binary form", []string{"keys/registry.example.com/acme.gpg", "\x99\x01"}, "keys/registry.example.com/acme.gpg", "`gpg --armor --export KEY > keys/registry.example.com/acme.asc`", ""},
		{"keys named .pub", []string{"keys/acme.pub", "x"}, "keys/acme.pub", "`gpg --armor --export KEY > keys/acme.asc`", ""},
		{"keys in text form, named .key", []string{"keys/acme.key", key}, "keys/acme.key", "rename it to keys/acme.asc", ""},
		{"keys without an extension", []string{"keys/acme", key}, "keys/acme", "rename it to keys/acme.asc", ""},
		{"keys in a folder", []string{"keys/acme/release.asc", key}, "keys/acme", "put them into keys/acme.asc", ""},
		{"a private key", []string{"keys/acme.key", "-----BEGIN PGP PRIVATE KEY BLOCK-----\n"}, "keys/acme.key", "it is a private key: remove it", ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			files := indextest.New(t)
			files.Provider("other/healthy", "1.0.0", "linux_amd64")
			for i := 0; i < len(test.files); i += 2 {
				files.Write(test.files[i], test.files[i+1])
			}
			s := scan(t, files)
			if !offers("other/healthy", "1.0.0")(s) {
				t.Error("the rest is not offered")
			}
			if len(s.Report().Withheld) != 1 || s.Report().IgnoredTotal != 0 {
				t.Fatalf("withheld is %+v, ignored %+v", s.Report().Withheld, s.Report().Ignored)
			}
			p := s.Report().Withheld[0]
			if p.Path != test.path || p.Reason != tree.Misplaced || !strings.Contains(p.Detail, test.says) {
				t.Errorf("the problem is %+v", p)
			}
			if test.offered == "" {
				return
			}
			follow(t, files, p)
			s = scan(t, files)
			nothingWithheld(t, s)
			if !offers(test.offered, "1.0.0")(s) {
				t.Errorf("after %q, offered is %+v, ignored %+v", p.Detail, s.Report().Offered, s.Report().Ignored)
			}
		})
	}
}

var moveTo = regexp.MustCompile(`(move it to|move the module to|rename it to) (\S+)$`)

// follow follows the advice of the report.
func follow(t *testing.T, files *indextest.Tree, p index.Problem) {
	t.Helper()
	m := moveTo.FindStringSubmatch(p.Detail)
	if m == nil {
		t.Fatalf("it does not say where to: %s", p.Detail)
	}
	to := strings.NewReplacer("NAMESPACE", "acme", "NAME", "vpc", "SYSTEM", "aws").Replace(m[2])
	if m[1] == "rename it to" {
		to = path.Join(path.Dir(p.Path), to)
	}
	// A folder is named with a slash: a file is moved into it, a folder becomes it.
	if info, err := files.Fs.Stat(p.Path); err == nil && strings.HasSuffix(to, "/") && !info.IsDir() {
		to = path.Join(to, path.Base(p.Path))
	}
	to = path.Clean(to)
	if err := files.Fs.MkdirAll(path.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := files.Fs.Rename(p.Path, to); err != nil {
		t.Fatal(err)
	}
}

// If nothing is found, the report says which folder should be the root, or where the
// first file goes.
func TestHintAtTheRoot(t *testing.T) {
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
			files := indextest.OnDisk(t, dir)
			if err := files.Fs.MkdirAll(test.root, 0o755); err != nil {
				t.Fatal(err)
			}
			onAnother := make(fstest.MapFS)
			onAnother[test.root+"/.keep"] = new(fstest.MapFile)
			for i := 0; i < len(test.files); i += 2 {
				files.Write(test.files[i], test.files[i+1])
				onAnother[test.files[i]] = &fstest.MapFile{Data: []byte(test.files[i+1])}
			}
			for name, open := range map[string]func() (tree.Tree, error){
				"disk":  source.Directories{Root: filepath.Join(dir, test.root)}.Open,
				"named": func() (tree.Tree, error) { return source.Directories{Root: test.root}.OpenIn(onAnother) },
			} {
				hint := scanWith(t, options(t, open)).Report().Hint
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

// The root may be any folder of the machine: the search must end.
func TestSearchForAHintEnds(t *testing.T) {
	files := fstest.MapFS{"root/x": new(fstest.MapFile)}
	for _, a := range "abcdefghij" {
		for _, b := range "abcdefghij" {
			for _, c := range "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz" {
				files["root/"+string(a)+"/"+string(b)+"/"+string(c)+"/x/y/z/x/y/z/x/y/z"] = new(fstest.MapFile)
			}
		}
	}
	files["root/z/providers/acme/hello/"+helloZip] = new(fstest.MapFile)
	s := scanWith(t, options(t, func() (tree.Tree, error) { return source.Directories{Root: "root"}.OpenIn(files) }))
	if !strings.Contains(s.Report().Hint, "nothing is in the root yet") {
		t.Errorf("the hint is %q", s.Report().Hint)
	}
}

// A module in the place of a version does not hide the versions beside it, and files of the
// module itself are not reported.
func TestMisplacedModulesHideNothing(t *testing.T) {
	files := indextest.New(t)
	for _, name := range []string{"main.tf", "modules/a/main.tf", "examples/a/main.tf", "scripts/run.sh", "vpc-1.2.0/main.tf", "old/1.1.0/main.tf"} {
		files.Write("modules/acme/vpc/aws/"+name, "# a module\n")
	}
	var got []string
	for _, p := range scan(t, files).Report().Withheld {
		got = append(got, p.Path)
	}
	want := []string{"modules/acme/vpc/aws/main.tf", "modules/acme/vpc/aws/old/1.1.0", "modules/acme/vpc/aws/vpc-1.2.0"}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("withheld are %q, want %q", got, want)
	}
}
