package e2e_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A registry may answer with any location: text that git or a shell might take for an
// option, another protocol, or a place inside the network. A repository may contain
// anything. Clients show why such a module is refused, nothing of it is in the tree,
// and no program is run.
func TestHostileModules(t *testing.T) {
	t.Parallel()
	outside := newOutside(t, newTree(t))
	code := outside.CodeHost(t)
	marker := filepath.Join(t.TempDir(), "marker")
	run := "touch " + marker
	escaped := strings.ReplaceAll(run, " ", "%20")

	good := code.Repository("good")
	good.Commit(map[string]string{"main.tf": `output "text" { value = "good" }` + "\n"})
	leading := code.Repository("leading")
	if err := os.Symlink("../../../../../../etc", leading.path("etc")); err != nil {
		t.Fatal(err)
	}
	leading.Commit(map[string]string{"main.tf": "\n"})
	inside := code.Repository("inside")
	inside.Commit(map[string]string{"main.tf": "\n"})
	empty := code.Repository("empty")
	empty.Commit(map[string]string{"README.md": "# There is no module here\n"})
	forgotten := code.Repository("forgotten")
	lost := forgotten.Commit(map[string]string{"main.tf": "\n"})
	forgotten.Rewrite()
	forgotten.Commit(map[string]string{"main.tf": "# pushed with --force\n"})
	forgotten.Forget()
	const refusedSubmodule = `its submodule \"modules/sub\"`
	submodules := map[string]struct{ url, says string }{
		"subfile": {"file:///etc", refusedSubmodule},
		"subext":  {"ext::sh -c " + run, refusedSubmodule},
		"subopt":  {"--upload-pack=" + run, refusedSubmodule},
		"subpriv": {"https://10.0.0.7/private.git", "it is in a private network"},
	}
	for name, of := range submodules {
		code.Repository(name).WithSubmodule("modules/sub", of.url, good)
	}
	code.Fails(codeHostGit, func(w http.ResponseWriter, r *http.Request, origin http.Handler) {
		if strings.HasPrefix(r.URL.Path, "/inside.git/") {
			http.Redirect(w, r, "https://10.0.0.7"+r.URL.RequestURI(), http.StatusFound)
			return
		}
		origin.ServeHTTP(w, r)
	})

	const git = "git::https://" + codeHostGit
	cases := map[string]struct{ source, says string }{
		"option":        {"git::" + good.URL + "?ref=--upload-pack=" + escaped, "names a ref that is not the name of a tag"},
		"optionforhost": {"git::https://--upload-pack=" + escaped + "/good.git", codeHostRegistry},
		"ext":           {"ext::sh -c " + run, "in a command, which is not fetched"},
		"gitext":        {"git::ext::sh -c " + run, codeHostRegistry},
		"file":          {"git::file:///etc", "in a file on a disk, which is not fetched"},
		"localfile":     {"file:///etc/passwd", "in a file on a disk, which is not fetched"},
		"path":          {"/etc", codeHostRegistry},
		"mercurial":     {"hg::https://git.example.com/good", "a Mercurial repository, which is not fetched"},
		"ssh":           {"git::ssh://git@git.example.com/good.git", "is an SSH address, which is not fetched"},
		"withouttls":    {"git::http://git.example.com/good.git", "is without TLS"},
		"password":      {"git::https://user:secret@git.example.com/good.git", "a user name or password in it"},
		"private":       {"git::https://10.0.0.7/good.git", "it is in a private network"},
		"privatezip":    {"https://169.254.169.254/latest/module.zip", "it is in a private network"},
		"localhost":     {"https://localhost/module.zip", "it is the server itself"},
		"redirect":      {"git::" + inside.URL, "it is in a private network"},
		"outside":       {"git::" + good.URL + "//../../etc", "leads out of the package"},
		"symlink":       {"git::" + leading.URL, `\"etc\" in the module is a symlink that leads out of the repository`},
		"nomodule":      {"git::" + empty.URL, codeHostRegistry},
		"nofolder":      {"git::" + good.URL + "//modules/missing", `the folder \"modules/missing\" of a repository, which is not there`},
		"noref":         {"git::" + good.URL + "?ref=v9.9.9", "a tag, branch or commit that is not in the repository"},
		"norepository":  {git + "/missing.git", codeHostGit},
		"forgotten":     {"git::" + forgotten.URL + "?ref=" + lost, "a tag, branch or commit that is not in the repository"},
		"nothing":       {"registry.example.com/acme/vpc/aws", "the address of another registry"},
	}
	for name, of := range submodules {
		cases[name] = struct{ source, says string }{git + "/" + name + ".git", of.says}
	}
	for name, of := range cases {
		code.Publish("acme/"+name+"/aws/1.0.0", of.source)
	}
	folders := newTree(t)
	mirror := outside.StartMirror(t, mirrorOf(codeHostRegistry, folders, "modules", "timeout 5s"))

	for name, of := range cases {
		t.Run(name, func(t *testing.T) {
			point := len(mirror.Log.Entries())
			url := moduleOfCode("acme/"+name+"/aws", "1.0.0/download")
			answer := mirror.Get(t, url)
			if answer.Status != 422 || !strings.Contains(answer.Body, of.says) {
				t.Errorf("%d %s, want a sentence with %q", answer.Status, answer.Body, of.says)
			}
			for _, secret := range []string{folders.Dir, mirror.path(), "127.0.0.1:", "secret"} {
				if strings.Contains(answer.Body, secret) {
					t.Errorf("it reveals %s: %s", secret, answer.Body)
				}
			}
			mirror.Log.waitAnswers(t, point, 1, url)
			lines := mirror.Log.Find(point, func(e Entry) bool {
				return (e.Level == "warn" || e.Level == "error") && !e.access() && strings.Contains(e.Line, codeHostRegistry)
			})
			if len(lines) > 1 {
				t.Errorf("the log has %d lines: %v", len(lines), lines)
			}
		})
	}
	eachClient(t, func(t *testing.T, c Client) {
		ws := newWorkspace(t, mirror, calling("code.example.com/acme/symlink/aws", "1.0.0"))
		ws.CLIConfig(t, standingIn(codeHostRegistry))
		expect(t, c.Refused(t, ws, "init"), "is a symlink that leads out of the repository")
	})

	if files := slices.DeleteFunc(folders.files(), isRecord); len(files) > 0 {
		t.Errorf("the tree has %v", files)
	}
	if left := mirror.temporary(t); len(left) > 0 {
		t.Errorf("there are the temporary folders %v", left)
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("a program was run")
	}
}

// WithSubmodule commits a module and a submodule with a URL, at the commit of another
// repository.
func (r *Repository) WithSubmodule(name, url string, of *Repository) {
	r.host.t.Helper()
	writeFile(r.host.t, r.path("main.tf"), "module \"sub\" {\n  source = \"./"+name+"\"\n}\n\noutput \"text\" {\n  value = module.sub.text\n}\n")
	writeFile(r.host.t, r.path(".gitmodules"), fmt.Sprintf("[submodule %q]\n\tpath = %s\n\turl = %s\n", name, name, url))
	commit := of.git(of.work, "rev-parse", "HEAD")
	r.git(r.work, "add", "main.tf", ".gitmodules")
	r.git(r.work, "update-index", "--add", "--cacheinfo", "160000,"+commit+","+name)
	r.git(r.work, "commit", "--quiet", "--message", "A submodule")
	r.git(r.work, "push", "--quiet", r.bare, "main")
}

// Repositories may have submodules, pointers to large files, symlinks inside them and
// files that look like hooks. They are packed as clients would check them out, and run
// nothing. Of a large repository, only the module is fetched.
func TestUnusualRepositories(t *testing.T) {
	t.Parallel()
	outside := newOutside(t, newTree(t))
	code := outside.CodeHost(t)
	good := code.Repository("good")
	good.Commit(map[string]string{"main.tf": `output "text" { value = "good" }` + "\n"})

	code.Repository("submodule").WithSubmodule("modules/sub", "../good.git", good)
	const pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"
	code.Repository("lfs").Commit(map[string]string{
		"main.tf":        "\n",
		".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n",
		"large.bin":      pointer,
	})
	linked := code.Repository("symlink")
	if err := os.Symlink("main.tf", linked.path("linked.tf")); err != nil {
		t.Fatal(err)
	}
	linked.Commit(map[string]string{"main.tf": "# linked\n"})
	code.Repository("hooks").Commit(map[string]string{
		"main.tf":              "\n",
		"hooks/post-checkout":  "#!/bin/sh\nexit 1\n",
		".githooks/pre-commit": "#!/bin/sh\nexit 1\n",
	})
	large := code.Repository("large")
	create(t, large.path("large.bin"), func(w io.Writer) error {
		_, err := io.Copy(w, incompressible(24<<20))
		return err
	})
	large.git(large.work, "config", "core.compression", "0")
	large.Commit(map[string]string{"modules/small/main.tf": "# small\n"})

	want := map[string]struct {
		folder string
		files  map[string]string // some of them
	}{
		"submodule": {"", map[string]string{"modules/sub/main.tf": `output "text" { value = "good" }` + "\n"}},
		"lfs":       {"", map[string]string{"large.bin": pointer}},
		"symlink":   {"", map[string]string{"main.tf": "# linked\n"}},
		"hooks":     {"", map[string]string{"hooks/post-checkout": "#!/bin/sh\nexit 1\n"}},
		"large":     {"modules/small", map[string]string{"modules/small/main.tf": "# small\n"}},
	}
	for name, of := range want {
		source := "git::https://" + codeHostGit + "/" + name + ".git"
		if of.folder != "" {
			source += "//" + of.folder
		}
		code.Publish("acme/"+name+"/aws/1.0.0", source+"?ref=main&depth=1")
	}

	// The configuration of the user that Caddy runs as has a hook for each checkout.
	files := newTree(t)
	mirror := outside.newMirror(t)
	marker := filepath.Join(t.TempDir(), "marker")
	hook := mirror.path("hooks", "post-checkout")
	writeFile(t, hook, "#!/bin/sh\ntouch "+marker+"\n")
	if err := os.Chmod(hook, 0o755); err != nil {
		t.Fatal(err)
	}
	writeFile(t, mirror.path(".gitconfig"), "[core]\n\thooksPath = "+filepath.Dir(hook)+"\n")
	mirror.start(t, []Site{mirrorOf(codeHostRegistry, files, "modules")})

	for name, of := range want {
		files, folder := mirror.module(t, "acme/"+name+"/aws", "1.0.0")
		if folder != of.folder {
			t.Errorf("%s: the module is in %q", name, folder)
		}
		for file, content := range of.files {
			if files[file] != content {
				t.Errorf("%s: %s is %q, want %q; there are %v", name, file, files[file], content, slices.Sorted(maps.Keys(files)))
			}
		}
		for file := range files {
			if file == ".git" || strings.HasPrefix(file, ".git/") {
				t.Errorf("%s: the package has %s", name, file)
			}
		}
	}
	if n := code.Sent(codeHostGit); n > 1<<20 {
		t.Errorf("the code host sent %d bytes, though the modules are small", n)
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("a hook was run")
	}
	if left := mirror.temporary(t); len(left) > 0 {
		t.Errorf("there are the temporary folders %v", left)
	}
	eachClient(t, func(t *testing.T, c Client) {
		ws := newWorkspace(t, mirror, calling("code.example.com/acme/submodule/aws", "1.0.0"))
		ws.CLIConfig(t, standingIn(codeHostRegistry))
		c.Run(t, ws, "init")
		expect(t, c.Run(t, ws, "apply", "-auto-approve"), `text = "good"`)
	})
}

// If a tag has moved since a version was first fetched, fetching the version again is
// refused, with one line in the log. A branch that was pushed with --force does not
// matter if the registry names a commit.
func TestMovedTag(t *testing.T) {
	t.Parallel()
	outside := newOutside(t, newTree(t))
	code := outside.CodeHost(t)
	moving := code.Repository("moving")
	first := moving.Commit(map[string]string{"main.tf": `output "text" { value = "first" }` + "\n"})
	moving.Tag("v1.0.0")
	code.Publish("acme/bytag/aws/1.0.0", "git::"+moving.URL+"?ref=v1.0.0")
	code.Publish("acme/bycommit/aws/1.0.0", "git::"+moving.URL+"?ref="+first)
	files := newTree(t)
	mirror := outside.StartMirror(t, mirrorOf(codeHostRegistry, files, "modules"))
	for _, name := range []string{"acme/bytag/aws", "acme/bycommit/aws"} {
		mirror.module(t, name, "1.0.0")
	}
	moving.Rewrite()
	moving.Commit(map[string]string{"main.tf": `output "text" { value = "second" }` + "\n"})
	moving.Tag("v1.0.0")

	// The package stays the same, whatever the tag says.
	if files, _ := mirror.module(t, "acme/bytag/aws", "1.0.0"); !strings.Contains(files["main.tf"], "first") {
		t.Errorf("after the tag has moved, the package has %v", files)
	}
	for _, name := range []string{"acme/bytag/aws", "acme/bycommit/aws"} {
		mirror.removeModule(t, files, name, "1.0.0")
	}
	if files, _ := mirror.module(t, "acme/bycommit/aws", "1.0.0"); !strings.Contains(files["main.tf"], "first") {
		t.Errorf("fetched again by its commit, the package has %v", files)
	}
	point := len(mirror.Log.Entries())
	url := moduleOfCode("acme/bytag/aws", "1.0.0/download")
	for range 2 {
		if answer := mirror.Get(t, url); answer.Status != 422 || !strings.Contains(answer.Body, "it was commit "+first+" when it was fetched") {
			t.Errorf("%d %s", answer.Status, answer.Body)
		}
	}
	mirror.Log.waitAnswers(t, point, 2, url)
	lines := mirror.Log.Find(point, func(e Entry) bool {
		return (e.Level == "warn" || e.Level == "error") && !e.access()
	})
	if len(lines) != 1 || !strings.Contains(lines[0].Line, "acme/bytag/aws") {
		t.Errorf("the log has %d lines: %v", len(lines), lines)
	}
	eachClient(t, func(t *testing.T, c Client) {
		ws := newWorkspace(t, mirror, calling("code.example.com/acme/bytag/aws", "1.0.0"))
		ws.CLIConfig(t, standingIn(codeHostRegistry))
		expect(t, c.Refused(t, ws, "init"), "it was commit "+first+" when it was fetched")
	})
	if slices.ContainsFunc(files.files(), func(name string) bool { return strings.HasSuffix(name, "bytag/aws/1.0.0.tar.gz") }) {
		t.Errorf("the tree has %v", files.files())
	}
}
