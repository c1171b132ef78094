package archive

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/disk"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
)

// packedNames returns the names in the package of a folder with these files, and
// those left out.
func packedNames(t testing.TB, files moduleFiles) ([]string, *nameList) {
	t.Helper()
	packed, left, f := walkFolder(files.inMemory(t), "module", unwatched)
	if f != nil {
		t.Fatal(f)
	}
	var names []string
	for _, file := range packed {
		names = append(names, file.Name)
	}
	return names, left
}

// Each kind of name that is not part of a module, at the root and in a folder.
func TestNamesLeftOutOfAModulePackage(t *testing.T) {
	for _, test := range []struct {
		rule  string
		names []string // files; the first folder of a file is left out if it has that name
	}{
		{"Git", []string{".git/config", ".git/objects/ab/cd"}},
		{"Git in a work tree", []string{".git"}},
		{"Subversion", []string{".svn/wc.db"}},
		{"Mercurial", []string{".hg/store"}},
		{"Bazaar", []string{".bzr/branch"}},
		{"Jujutsu", []string{".jj/repo"}},
		{"CVS", []string{"CVS/Entries"}},
		{"what init installs", []string{".terraform/providers/x", ".terraform/terraform.tfstate"}},
		{"Terragrunt's cache", []string{".terragrunt-cache/a/b/main.tf"}},
		{"state", []string{"terraform.tfstate", "prod.tfstate", "errored.tfstate"}},
		{"backups of state", []string{"terraform.tfstate.backup", "terraform.tfstate.1767322800.backup"}},
		{"a lock of state", []string{".terraform.tfstate.lock.info"}},
		{"state of workspaces", []string{"terraform.tfstate.d/prod/terraform.tfstate"}},
		{"crash logs", []string{"crash.log", "crash.20260102.log"}},
		{"environments", []string{".env", ".env.local", ".env.production", ".envrc"}},
		{"a virtual environment", []string{".env/bin/python"}},
		{"passwords of hosts", []string{".netrc", "_netrc", ".git-credentials"}},
		{"settings of clients", []string{".terraformrc", "terraform.rc", ".tofurc", "tofu.rc", "credentials.tfrc.json", ".vault-token"}},
		{"keys of SSH", []string{".ssh/id_ed25519", ".ssh/config"}},
		{"keys of OpenPGP", []string{".gnupg/private-keys-v1.d/x.key"}},
		{"credentials of clouds", []string{".aws/credentials", ".azure/msal_token_cache.json", ".kube/config", "application_default_credentials.json"}},
		{"backups of editors", []string{"main.tf~"}},
		{"files that Vim edits", []string{".main.tf.swp", ".main.tf.swo", ".main.tf.swn"}},
		{"files that Emacs edits", []string{"#main.tf#", ".#main.tf"}},
		{"what macOS leaves", []string{".DS_Store"}},
		{"what Kubernetes keeps in a volume", []string{"..data/main.tf", "..2026_01_02_03_04_05.123456789/main.tf"}},
		{"files under temporary names", []string{"main.tf.tmp", "main.tf.part"}},
		{"files that rsync copies", []string{".main.tf.Kx3gPq", ".main.tf.abcdef", ".LICENSE.a1B2c3"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			files := moduleFiles{"main.tf": "", "modules/a/main.tf": ""}
			left := make(map[string]bool)
			for _, name := range test.names {
				top, _, _ := strings.Cut(name, "/")
				for _, dir := range []string{"", "modules/a"} {
					files[path.Join(dir, name)] = "x"
					left[path.Join(dir, top)] = true
				}
			}
			names, list := packedNames(t, files)
			if !slices.Equal(names, []string{"main.tf", "modules/a/main.tf"}) {
				t.Errorf("packed is %q", names)
			}
			if list.total != len(left) || !left[list.first[0]] {
				t.Errorf("of %d left out it says %q", len(left), list)
			}
		})
	}
}

// Names that modules use are packed, even if they look like clutter.
func TestNamesKeptInAModulePackage(t *testing.T) {
	names := []string{
		".editorconfig", ".env.example", ".env.local.sample", ".env.template", ".github/workflows/test.yaml", ".gitattributes", ".gitignore", ".gitmodules",
		".pre-commit-config.yaml", ".swp", ".terraform-docs.yml", ".terraform-version", ".terraform.lock.hcl", ".terraformignore", ".terraformrc.sample",
		".tflint.hcl", ".tool.config", "#", "#readme", "CVS.md", "README.part.md", "auto.auto.tfvars", "backend.tfstate.tf", "certs/ca.pem", "crash.tf", "cvs/main.tf",
		"env", "examples/a/main.tf", "main.tf", "netrc.tftpl", "remote.tfstate.tf.json", "ssh/config", "state.tf", "terraform.tfvars", "tfplan", "tfplan.json", "tmp/x",
	}
	files := make(moduleFiles)
	for _, name := range names {
		files[name] = "# x\n"
	}
	got, left := packedNames(t, files)
	slices.Sort(got)
	slices.Sort(names)
	if !slices.Equal(got, names) || left.total > 0 {
		t.Errorf("packed is %q, left out is %q", got, left)
	}
}

func TestNameList(t *testing.T) {
	for _, test := range []struct {
		names []string
		want  string
	}{
		{nil, ""},
		{[]string{"a"}, "a"},
		{[]string{"a", "b"}, "a and b"},
		{[]string{"a", "b", "c", "d"}, "a, b, c and d"},
		{[]string{"a", "b", "c", "d", "e"}, "a, b, c and 2 others"},
		{slices.Repeat([]string{"a"}, 10_000), "a, a, a and 9997 others"},
		{[]string{strings.Repeat("ü", 1<<20)}, strings.Repeat("ü", maxListedName/2) + "…"},
		{[]string{"a" + strings.Repeat("ü", 1<<20)}, "a" + strings.Repeat("ü", maxListedName/2-1) + "…"},
	} {
		var l nameList
		for _, name := range test.names {
			l.add(name)
		}
		if l.String() != test.want {
			t.Errorf("it is %.300q", l.String())
		}
	}
}

// The cases come from go-slug's tests, as far as they are about files.
func TestIgnoreRules(t *testing.T) {
	for _, test := range []struct {
		rule     string
		patterns string
		files    []string // files with an exclamation mark are packed
	}{
		{"nothing", "", []string{"!a"}},
		{"comments and blank lines", "# a\n\n  # b\n \t \n", []string{"!a", "!b", "!# a"}},
		{"a name, in any folder", "secrets.auto.tfvars\n", []string{"secrets.auto.tfvars", "a/b/secrets.auto.tfvars", "!with-secrets.auto.tfvars", "!secrets.auto.tfvars.md"}},
		{"space around it, and Windows line ends", "  a.txt \r\n\tb.txt\t\r\n", []string{"a.txt", "b.txt", "!c.txt"}},
		{"the last line without an end", "a.txt\nb.txt", []string{"a.txt", "b.txt"}},
		{"a folder by its name", "test", []string{"test/a", "a/test/b", "!tests/a"}},
		{"a folder", "test/\n", []string{"test/a", "test/b/c", "a/test/b", "!a/tests"}},
		{"a folder, and no file of its name", "terraform.d/", []string{"a/terraform.d/x", "!b/terraform.d"}},
		{"a folder at the root", "/test/\n", []string{"test/a", "!a/test/b"}},
		{"a file at the root", "/a.txt\n", []string{"a.txt", "!b/a.txt"}},
		{"a path", "foo/bar.tf", []string{"foo/bar.tf", "a/foo/bar.tf", "!bar.tf"}},
		{"a path in any folder", "**/foo/bar.tf", []string{"foo/bar.tf", "a/b/foo/bar.tf", "!foo/b.tf"}},
		{"all below a folder", "foo/**", []string{"foo/a", "foo/b/c", "!bar/a"}},
		{"an ending", "*.md", []string{"README.md", "a/b.md", "!README.mdx"}},
		{"an ending in a folder", "foo/*.md", []string{"foo/a.md", "a/foo/b.md", "!a.md", "!foo/bar/a.md"}},
		{"a character", "?.md", []string{"a.md", "!ab.md"}},
		{"a character of several", "something-[a-c].txt", []string{"something-a.txt", "!something-d.txt"}},
		{"what else a regular expression would have", "a+b(c).{d}\n", []string{"a+b(c).{d}", "!aab(c).{d}"}},
		{"a character that means itself", `\*.md`, []string{"*.md", "!a.md"}},
		{"all but some", "*.md\n!README.md\n", []string{"a.md", "b/c.md", "!README.md", "!b/README.md"}},
		{"all but one at the root", "boop.txt\n!/boop.txt\n", []string{"b/boop.txt", "!boop.txt"}},
		{"a folder but for a file in it", "docs/\n!docs/keep.md\n", []string{"docs/a.md", "docs/b/c.md", "!docs/keep.md"}},
		{"what a later line ignores again", "*.md\n!a.md\na.md\n", []string{"a.md", "b.md"}},
		{"everything but", "/*\n!*.tf\n!/.terraformignore\n", []string{"a.md", "!x.tf"}},
		{"the first line behind a byte order mark", "\ufeff*.md\n", []string{"a.md"}},
		{"itself", ".terraformignore", []string{".terraformignore"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			files := moduleFiles{"main.tf": "", ".terraformignore": test.patterns}
			want := []string{"main.tf", ".terraformignore"}
			if test.rule == "itself" {
				want = want[:1]
			}
			ignored := 0
			for _, name := range test.files {
				name, kept := strings.CutPrefix(name, "!")
				if files[name] = test.patterns; kept {
					want = append(want, name)
				} else {
					ignored++
				}
			}
			got, left := packedNames(t, files)
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, slices.Compact(want)) || left.total > ignored || ignored > 0 && left.total == 0 {
				t.Errorf("packed is %q, left out is %q", got, left)
			}
		})
	}
}

// A .terraformignore cannot add files that are never part of a module, and one in a folder
// of the module has no effect.
func TestIgnoreRulesHaveLimitedScope(t *testing.T) {
	got, _ := packedNames(t, moduleFiles{
		".terraformignore": "!.env\n!.git/\n!.terraform/modules/\n", "main.tf": "", ".env": "x", ".git/config": "x", ".terraform/modules/modules.json": "x",
		"modules/a/.terraformignore": "*.md\n/main.tf\n", "modules/a/main.tf": "", "modules/a/README.md": "",
	})
	if want := []string{".terraformignore", "main.tf", "modules/a/.terraformignore", "modules/a/README.md", "modules/a/main.tf"}; !slices.Equal(got, want) {
		t.Errorf("packed is %q", got)
	}
}

// opened records the names that are opened.
type opened struct {
	afero.Fs
	names *[]string
}

func (o opened) Open(name string) (afero.File, error) {
	*o.names = append(*o.names, name)
	return o.Fs.Open(name)
}

// A folder is not read if no later pattern can add something in it.
func TestAnIgnoredFolderIsNotRead(t *testing.T) {
	part := moduleFiles{
		"main.tf": "", ".terraformignore": "docs/\n!docs/keep.md\nnode_modules/\n/vendored\n",
		"docs/keep.md": "", "node_modules/a/b": "", "vendored/a/b": "", ".terraform/a/b": "",
	}.inMemory(t)
	var names []string
	treetest.Wrap(&part, func(fsys afero.Fs) afero.Fs { return opened{fsys, &names} })
	files, left, f := walkFolder(part, "module", unwatched)
	if f != nil || len(files) != 3 || left.String() != ".terraform, node_modules and vendored" {
		t.Errorf("packed are %d, left out is %s, %v", len(files), left, f)
	}
	if want := []string{"module", "module/.terraformignore", "module/docs"}; !slices.Equal(names, want) {
		t.Errorf("opened is %q", names)
	}
}

func TestInvalidIgnoreRules(t *testing.T) {
	for _, test := range []struct {
		rule     string
		patterns string
		reason   tree.Reason
		says     string
	}{
		{"that are no pattern", "a\n[b\n", tree.BadName, `".terraformignore" in it: line 2 is not a pattern`},
		{"that are no regular expression", "[z-a]", tree.BadName, "line 1 is not a pattern"},
		{"that bring back nothing", "a\n!\n", tree.BadName, "line 2 is not a pattern"},
		{"that are nothing", "a\n/\n\\\n", tree.BadName, "line 3 is not a pattern"},
		{"that leave the folder", "!../*.md", tree.BadName, "it leaves the folder"},
		{"that are no text", "a\n\xff\n", tree.BadName, "not a text in UTF-8"},
		{"that are UTF-16", "a\x00b\x00", tree.BadName, "not a text in UTF-8"},
		{"that are too large", strings.Repeat("# x\n", maxIgnoreSize/4+1), tree.TooLarge, "larger than 16384 bytes"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			_, _, f := walkFolder(moduleFiles{"main.tf": "", ".terraformignore": test.patterns}.inMemory(t), "module", unwatched)
			if f == nil || f.Reason != test.reason || !strings.Contains(f.Detail, test.says) {
				t.Errorf("the finding is %+v", f)
			}
		})
	}
	t.Run("that are a folder", func(t *testing.T) {
		_, _, f := walkFolder(moduleFiles{"main.tf": "", ".terraformignore/x": ""}.inMemory(t), "module", unwatched)
		if f == nil || f.Reason != tree.Unreadable || !strings.Contains(f.Detail, `".terraformignore" in it: it is not a regular file`) {
			t.Errorf("the finding is %+v", f)
		}
	})
}

// Matching ends for all patterns: the work for each file is bounded by the size of
// the patterns, and the work for all files is counted.
func TestIgnoringIsBounded(t *testing.T) {
	skipInShort(t)
	rules, err := parseIgnoreRules([]byte(strings.Repeat("*a", maxIgnoreSize/2)))
	if err != nil {
		t.Fatal(err)
	}
	name := strings.Repeat("a", 200) + "/b"
	allowed := maxIgnoreWork / (rules.weight * len(name))
	rules.work = (allowed - 1) * rules.weight * len(name)
	if ignored, err := rules.ignoresFile(name, folderMatch{}); ignored || err != nil {
		t.Errorf("the last one is %v, %v", ignored, err)
	}
	_, err = rules.ignoresFile(name, folderMatch{})
	if f := tree.AsFinding(err); f.Reason != tree.TooLarge || !strings.Contains(f.Detail, "too many patterns for so many files") {
		t.Errorf("one more is %+v", f)
	}
	_, _, err = rules.ignoresFolder(name, folderMatch{})
	if f := tree.AsFinding(err); f.Reason != tree.TooLarge {
		t.Errorf("a folder more is %+v", f)
	}
}

// Rules that were parsed can be matched with any name.
func FuzzIgnoreRules(f *testing.F) {
	f.Add("*.md\n!README.md\n/docs/\n", "docs/a.md")
	f.Add("a/**/b\n[a-c]?\n\\*\n", "a/x/y/b")
	f.Add("!\n/\n**\n", "a")
	f.Fuzz(func(t *testing.T, patterns, name string) {
		if len(patterns) > 1000 || len(name) > 1000 || name == "" {
			return
		}
		rules, err := parseIgnoreRules([]byte(patterns))
		if err != nil {
			if f := tree.AsFinding(err); f.Reason != tree.BadName {
				t.Errorf("the finding is %+v", f)
			}
			return
		}
		_, within, err := rules.ignoresFolder(name, folderMatch{})
		if err == nil {
			_, err = rules.ignoresFile(name+"/a", within)
		}
		if err != nil && tree.AsFinding(err).Reason != tree.TooLarge {
			t.Error(err)
		}
	})
}

func BenchmarkIgnoring(b *testing.B) {
	for rule, patterns := range map[string]string{
		"usual":   "*.md\ntest/\n/examples/\n**/.cache\n!README.md\n",
		"hostile": strings.Repeat("*a", maxIgnoreSize/2-1),
		"many":    strings.Repeat("*a*\n", maxIgnoreSize/4),
		"classes": strings.Repeat("*[!b]", maxIgnoreSize/5),
		"stars":   strings.Repeat("**/", maxIgnoreSize/3),
	} {
		rules, err := parseIgnoreRules([]byte(patterns))
		if err != nil {
			b.Fatal(err)
		}
		name := strings.Repeat("a", 100) + "/" + strings.Repeat("c", 100)
		b.Run(rule, func(b *testing.B) {
			for b.Loop() {
				rules.work = 0
				rules.ignoresFile(name, folderMatch{})
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)*float64(maxIgnoreWork)/float64(rules.weight*len(name))/1e9, "s/all")
		})
	}
}

// An editor's lock is a dangling symlink, and so may be every file that is left out.
func TestLeftOutSymlinksAreNotFollowed(t *testing.T) {
	dir := t.TempDir()
	os.MkdirAll(filepath.Join(dir, "module/modules/a"), 0o755)
	for _, name := range []string{"module/main.tf", "module/modules/a/main.tf", "module/.terraformignore"} {
		content := ""
		if strings.HasSuffix(name, "ignore") {
			content = "/local\n"
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{
		"module/.#main.tf": "me@host.12345:1767322800", "module/modules/a/.#main.tf": "me@host.12345:1767322800",
		"module/.terraform": "/var/cache/terraform", "module/terraform.tfstate": "loop", "module/.env": "../../../secrets", "module/local": "/home/me/local",
	} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Skip(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	files, left, f := walkFolder(disk.NewPart(root, ""), "module", unwatched)
	if f != nil || len(files) != 3 || left.total != 6 {
		t.Errorf("packed is %+v, left out is %s, %v", files, left, f)
	}
}
