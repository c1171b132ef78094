package index

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// packedNames are the names in the package of a folder with these files, and the
// note on what is left out.
func packedNames(t testing.TB, files moduleFiles) ([]string, *nameList) {
	t.Helper()
	packed, left, f := files.inMemory(t).walkFolder("module", unwatched)
	if f != nil {
		t.Fatal(f)
	}
	var names []string
	for _, file := range packed {
		names = append(names, file.name)
	}
	return names, left
}

// Each kind of what is no part of a module, at the root and in a folder.
func TestWhatIsLeftOutOfAPackage(t *testing.T) {
	for _, test := range []struct {
		rule  string
		names []string // files; what is left out is their first folder if it has that name
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

// What modules use is packed, also where it looks like one of those.
func TestWhatIsPacked(t *testing.T) {
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

func TestAListOfNames(t *testing.T) {
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
