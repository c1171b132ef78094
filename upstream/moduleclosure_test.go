package upstream_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

// Of a package, the files that a module in a folder needs are kept, at the same paths.
func TestModuleFolders(t *testing.T) {
	call := func(sources ...string) string {
		var b strings.Builder
		for i, s := range sources {
			b.WriteString("module \"m" + string(rune('a'+i)) + "\" {\n  source = \"" + s + "\"\n}\n")
		}
		return b.String()
	}
	for _, test := range []struct {
		rule   string
		files  map[string]string // a target of a link begins with an arrow
		folder string
		want   string
	}{
		{"the folder with all that is in it", map[string]string{"main.tf": "", "a/main.tf": "", "a/b/c.txt": "", "ab/main.tf": "", "b/main.tf": ""}, "a", "a/b/c.txt a/main.tf"},
		{"a folder in a folder", map[string]string{"modules/a/main.tf": "", "modules/b/main.tf": "", "modules/main.tf": ""}, "modules/a", "modules/a/main.tf"},
		{"a called folder beside it", map[string]string{"m/a/main.tf": call("../b"), "m/b/main.tf": "", "m/c/main.tf": ""}, "m/a", "m/a/main.tf m/b/main.tf"},
		{"calls of called folders", map[string]string{"a/main.tf": call("../b"), "b/main.tf": call("../c/d"), "c/d/main.tf": call("../../b", "../../a"), "c/e/main.tf": ""}, "a", "a/main.tf b/main.tf c/d/main.tf"},
		{"calls of modules in it, which are used by //", map[string]string{"a/modules/x/main.tf": call("../../../b"), "b/main.tf": "", "c/main.tf": ""}, "a", "a/modules/x/main.tf b/main.tf"},
		{"in JSON, and for OpenTofu alone", map[string]string{"a/main.tf.json": `{"module":{"b":{"source":"../b"}}}`, "a/x.tofu": call("../c"), "b/main.tf": "", "c/main.tf": "", "d/main.tf": ""}, "a", "a/main.tf.json a/x.tofu b/main.tf c/main.tf"},
		{"a call of the whole package", map[string]string{"a/main.tf": call("../"), "b/main.tf": "", "README": ""}, "a", "README a/main.tf b/main.tf"},
		{"a call of a folder above", map[string]string{"m/a/main.tf": call("../"), "m/b/main.tf": "", "main.tf": ""}, "m/a", "m/a/main.tf m/b/main.tf"},
		{"calls that lead out or nowhere", map[string]string{"a/main.tf": call("../../etc", "../gone", "acme/vpc/aws", "git::https://example.com/x//../b"), "b/main.tf": ""}, "a", "a/main.tf"},
		{"the folder of a source with a variable in it, as OpenTofu allows", map[string]string{"a/main.tf": call("../b/${var.x}"), "b/x/main.tf": "", "c/main.tf": ""}, "a", "a/main.tf b/x/main.tf"},
		{"calls in a file that OpenTofu replaces or that is overridden", map[string]string{"a/main.tf": call("../b"), "a/main.tofu": call("../c"), "a/x_override.tf": call("../d"), "b/main.tf": "", "c/main.tf": "", "d/main.tf": "", "e/main.tf": ""}, "a", "a/main.tf a/main.tofu a/x_override.tf b/main.tf c/main.tf d/main.tf"},
		{"files that it reads", map[string]string{"a/main.tf": `x = file("${path.module}/../files/x.json")`, "files/x.json": "", "files/y.json": ""}, "a", "a/main.tf files/x.json"},
		{"a file with an error", map[string]string{"a/main.tf": call("../b") + "}}}", "b/main.tf": ""}, "a", "a/main.tf b/main.tf"},
		{"the targets of links", map[string]string{"a/versions.tf": "->../versions.tf", "versions.tf": "->shared/versions.tf", "shared/versions.tf": call("../c"), "shared/other": "", "c/main.tf": ""}, "a", "a/versions.tf->../versions.tf shared/versions.tf versions.tf->shared/versions.tf"},
		{"folders that links lead to", map[string]string{"a/b": "->../b", "b/main.tf": call("../c"), "c/main.tf": "", "d/main.tf": ""}, "a", "a/b->../b b/main.tf c/main.tf"},
		{"a call through a link", map[string]string{"a/main.tf": call("../l/x"), "l": "->b", "b/x/main.tf": "", "c/main.tf": ""}, "a", "a/main.tf b/x/main.tf l->b"},
		{"a call through a link, by its own path and by the target's", map[string]string{"a/main.tf": call("../l/x"), "l": "->d/b", "d/b/x/main.tf": call("../../c"), "d/c/main.tf": "", "c/main.tf": "", "e/main.tf": ""}, "a", "a/main.tf c/main.tf d/b/x/main.tf d/c/main.tf l->d/b"},
		{"calls below a file, and of names that no file has", map[string]string{"a/main.tf": call("../README/x", "../"+strings.Repeat("b", 300)), "README": ""}, "a", "a/main.tf"},
		{"a call through links in a circle", map[string]string{"a/main.tf": call("../l/x"), "l": "->k", "k": "->l", "b/main.tf": ""}, "a", "a/main.tf k->l l->k"},
		{"a call through a link that leads out", map[string]string{"a/main.tf": call("../l/x"), "l": "->../../etc", "b/main.tf": ""}, "a", "a/main.tf l->../../etc"},
		{"a link that leads out is not followed", map[string]string{"a/l": "->../../etc", "b/main.tf": ""}, "a", "a/l->../../etc"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			dir := moduleFolder(t, test.files)
			if err := upstream.KeepNeeded(background(), dir, test.folder); err != nil {
				t.Fatal(err)
			}
			if got := listed(t, dir); got != test.want {
				t.Errorf("got %s", got)
			}
		})
	}
}

// moduleFolder writes files to a folder.
func moduleFolder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		name = filepath.Join(dir, filepath.FromSlash(name))
		err := os.MkdirAll(filepath.Dir(name), 0o755)
		if target, isLink := strings.CutPrefix(content, "->"); isLink {
			err = errors.Join(err, os.Symlink(filepath.FromSlash(target), name))
		} else {
			err = errors.Join(err, os.WriteFile(name, []byte(content), 0o644))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A disk that fails says nothing about the links of a module.
func TestLinksThatCannotBeFollowed(t *testing.T) {
	if os.Geteuid() <= 0 { // root may read everything, and Windows has other rights
		t.Skip("nothing is unreadable")
	}
	dir := moduleFolder(t, map[string]string{"a": "->d/b", "d/b": ""})
	if err := os.Chmod(filepath.Join(dir, "d"), 0); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(filepath.Join(dir, "d"), 0o700)
	if err := upstream.CheckLinks(background(), dir); errors.Is(err, upstream.ErrUnsafe) || !errors.Is(err, fs.ErrPermission) {
		t.Errorf("got %v", err)
	}
}

func TestModuleFolderIsNotThere(t *testing.T) {
	for rule, files := range map[string]map[string]string{
		"no folder":           {"b/main.tf": ""},
		"a file":              {"a": ""},
		"a link":              {"a": "->b", "b/main.tf": ""},
		"a folder of another": {"b/a/main.tf": ""},
	} {
		t.Run(rule, func(t *testing.T) {
			err := upstream.KeepNeeded(background(), moduleFolder(t, files), "a")
			if !errors.Is(err, upstream.ErrMalformed) || !strings.Contains(err.Error(), `no folder "a"`) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// Configuration without end causes an error, and does not take hours.
func TestModuleFoldersAreBounded(t *testing.T) {
	large := "# ./" + strings.Repeat(" ", 2300<<10)
	files := make(map[string]string)
	for i := range 16 {
		files["a/"+strings.Repeat("b", i+1)+"/main.tf"] = large
	}
	err := upstream.KeepNeeded(background(), moduleFolder(t, files), "a")
	if !errors.Is(err, upstream.ErrTooLarge) {
		t.Errorf("got %v", err)
	}
}
