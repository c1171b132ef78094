package publish

import (
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

func TestUnfitPackages(t *testing.T) {
	call := func(source string) string { return "module \"net\" {\n  source = \"" + source + "\"\n}\n" }
	const pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n"
	for _, test := range []struct {
		rule, name, content string
		says                string // empty: nothing
	}{
		{"a module beside it", "main.tf", call("../subnet"), `main.tf: the module "net" has the source "../subnet", which is not in the package: call `},
		{"in JSON", "main.tf.json", `{"module":{"net":{"source":"../subnet"}}}`, `main.tf.json: the module "net" has the source "../subnet"`},
		{"of OpenTofu", "main.tofu", call("../subnet"), "main.tofu: "},
		{"in an override", "override.tf", call("../subnet"), "override.tf: "},
		{"in a file of more than a pointer's size", "main.tf", "# " + strings.Repeat("x", 2*maxLFSPointer) + "\n" + call("../subnet"), "main.tf: "},
		{"after what cannot be read", "main.tf", "resource \"a\" {\n]\n}\n" + call("../subnet"), "main.tf: "},
		{"a folder of the package", "main.tf", call("./modules/subnet"), ""},
		{"the package itself, from an example", "examples/a/main.tf", call("../.."), ""},
		{"beside the package, from an example", "examples/a/main.tf", call("../../../subnet"), "examples/a/main.tf: "},
		{"far below modules", "modules/a/b/c/main.tf", call("../../../../../x"), "modules/a/b/c/main.tf: "},
		{"out of the package and back into it", "main.tf", call("../vpc/modules/subnet"), "main.tf: "},
		{"as Windows writes it", "main.tf", call(`..\\subnet`), "main.tf: "},
		{"an absolute path", "main.tf", call("/srv/modules/subnet"), "main.tf: "},
		{"a registry's address", "main.tf", call("acme/subnet/aws"), ""},
		{"a repository", "main.tf", call("git::https://example.com/acme/modules.git//subnet"), ""},
		{"no configuration", "README.md", call("../subnet"), ""},
		{"an editor's file", ".main.tf", call("../subnet"), ""},
		{"a pointer of Git LFS", "files/logo.png", pointer, "files/logo.png is only the pointer to a file in Git LFS: "},
		{"a text about Git LFS", "README.md", "A pointer begins with " + pointer, ""},
	} {
		unfit, err := unfitPackage(strings.NewReader(indextest.TarGz("variables.tf", "", test.name, test.content)))
		switch got := strings.Join(unfit, "\n"); {
		case err != nil:
			t.Errorf("%s: %v", test.rule, err)
		case (got == "") != (test.says == "") || !strings.HasPrefix(got, test.says):
			t.Errorf("%s: got %q", test.rule, got)
		}
	}
}

func TestUnfitPackagesAreDescribedInShort(t *testing.T) {
	content := strings.Repeat("module \"a\" { source = \"../a\" }\n", 10)
	var files []string
	for _, name := range strings.Split(strings.Repeat("abcdefghij", 10), "") {
		files = append(files, name+".tf", strings.ReplaceAll(content, "\"a\"", "\""+name+"\""))
	}
	unfit, err := unfitPackage(strings.NewReader(indextest.TarGz(files...)))
	if err != nil || len(unfit) != maxUnfit {
		t.Errorf("got %d problems, %v", len(unfit), err)
	}
}

func TestUnfitPackageOfWhatIsNone(t *testing.T) {
	whole := indextest.TarGz("main.tf", strings.Repeat("#", 4096))
	for _, size := range []int{0, 9, len(whole) / 2} {
		if _, err := unfitPackage(strings.NewReader(whole[:size])); err == nil {
			t.Errorf("of %d bytes of %d: no error", size, len(whole))
		}
	}
}
