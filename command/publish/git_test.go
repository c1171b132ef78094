package publish

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/command/commandtest"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/upstreamtest"
)

// monorepo makes a repository with two modules and three tags of the first one.
func monorepo(t *testing.T) (s *upstreamtest.Repository, commits []string) {
	t.Helper()
	s = upstreamtest.NewRepository(t)
	s.Write("modules/vpc/main.tf", "# 1.0.0\n", "modules/vpc/sub/x.tf", "", "modules/subnet/main.tf", "# 1\n", "README.md", "all\n")
	commits = append(commits, s.Commit("vpc/v1.0.0", "subnet/v1.0.0", "v9.0.0"))
	s.Write("modules/vpc/main.tf", "# 1.1.0\n")
	commits = append(commits, s.Commit("vpc/v1.1.0"))
	s.Write("modules/subnet/main.tf", "# 2\n")
	commits = append(commits, s.Commit("vpc/v1.10.0-rc.1", "vpc/v1"))
	return s, commits
}

// readModules reads modules into folders that are removed when the test ends.
func readModules(t *testing.T, o gitOptions) (*gitModules, error) {
	t.Helper()
	if err := o.check(); err != nil {
		return nil, err
	}
	scratch := t.TempDir()
	g, err := openGit(t.Context(), o.repository, scratch)
	if err != nil {
		return nil, err
	}
	return readGitModules(t.Context(), g, o, scratch)
}

// modulesOf reads modules that can be read.
func modulesOf(t *testing.T, o gitOptions) *gitModules {
	t.Helper()
	m, err := readModules(t, o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// describe lists the files of a module: how they are, their names and contents.
func describe(t *testing.T, dir string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		relative, _ := filepath.Rel(dir, name)
		content, err := os.ReadFile(name)
		kind := ""
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			target, _ := os.Readlink(name)
			kind, content, err = "link ", []byte(target), nil
		case info.Mode()&0o111 != 0:
			kind = "executable "
		}
		files = append(files, fmt.Sprintf("%s%s: %q", kind, filepath.ToSlash(relative), content))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func wantDescription(t *testing.T, dir string, want ...string) {
	t.Helper()
	if got := describe(t, dir); !slices.Equal(got, want) {
		t.Errorf("got %q, not %q", got, want)
	}
}

func TestGitModulesOfAllTags(t *testing.T) {
	s, commits := monorepo(t)
	s.Git("tag", "vpc/v2.0.0", commits[0]+"^{tree}")
	before := describe(t, s.Dir)
	for _, repository := range []string{s.Dir, "file://" + filepath.ToSlash(s.Dir)} {
		m := modulesOf(t, gitOptions{repository: repository, path: "modules/vpc", pattern: "vpc/v{version}", all: true})
		var got []string
		for _, v := range m.modules {
			got = append(got, fmt.Sprint(v.version, " ", v.tag, " ", v.commit, " ", v.date.Format(time.DateOnly)), strings.Join(describe(t, v.dir), ", "))
		}
		want := []string{
			"1.10.0-rc.1 vpc/v1.10.0-rc.1 " + commits[2] + " 2026-01-04", `main.tf: "# 1.1.0\n", sub/x.tf: ""`,
			"1.1.0 vpc/v1.1.0 " + commits[1] + " 2026-01-03", `main.tf: "# 1.1.0\n", sub/x.tf: ""`,
			"1.0.0 vpc/v1.0.0 " + commits[0] + " 2026-01-02", `main.tf: "# 1.0.0\n", sub/x.tf: ""`,
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q", got)
		}
		if m.modules[0].dir != m.modules[1].dir || m.modules[1].dir == m.modules[2].dir {
			t.Errorf("folders of the same content are written twice: %v", m.modules)
		}
		wantSkipped := []string{
			"The tag vpc/v1 is skipped: it is not a whole version, MAJOR.MINOR.PATCH: tags like v1 and v1.2 are moved with each release.",
			"The tag vpc/v2.0.0 is skipped: it is not the tag of a commit.",
		}
		if !slices.Equal(m.skipped, wantSkipped) || m.repository != repository {
			t.Errorf("skipped: %q of %s", m.skipped, m.repository)
		}
	}
	if got := describe(t, s.Dir); !slices.Equal(got, before) {
		t.Errorf("the repository was modified: %q, not %q", got, before)
	}
}

func TestGitModulesOfOneTag(t *testing.T) {
	s, commits := monorepo(t)
	s.Git("tag", "--annotate", "--message", "A release", "vpc/v1.2.0", commits[1])
	s.Write("modules/vpc/main.tf", "# not committed\n")
	for _, test := range []struct{ rule, path, pattern, tag, version, commit, file string }{
		{"a folder", "modules/vpc", "vpc/v{version}", "vpc/v1.0.0", "1.0.0", commits[0], `main.tf: "# 1.0.0\n"`},
		{"as it is written by hand", "./modules/vpc/", "vpc/v{version}", "vpc/v1.0.0", "1.0.0", commits[0], `main.tf: "# 1.0.0\n"`},
		{"as CI has it", "modules/vpc", "vpc/v{version}", "refs/tags/vpc/v1.0.0", "1.0.0", commits[0], `main.tf: "# 1.0.0\n"`},
		{"the commit of an annotated tag", "modules/vpc", "vpc/v{version}", "vpc/v1.2.0", "1.2.0", commits[1], `main.tf: "# 1.1.0\n"`},
		{"the root, with the default pattern", "", "", "v9.0.0", "9.0.0", commits[0], `README.md: "all\n"`},
	} {
		t.Run(test.rule, func(t *testing.T) {
			m := modulesOf(t, gitOptions{repository: s.Dir, path: test.path, pattern: test.pattern, tag: test.tag})
			if len(m.modules) != 1 || m.modules[0].version != test.version || m.modules[0].commit != test.commit {
				t.Fatalf("got %+v", m.modules)
			}
			if files := describe(t, m.modules[0].dir); files[0] != test.file {
				t.Errorf("got %q", files)
			}
		})
	}
}

// The repository that a user is in is used, not the one for which git runs a hook.
func TestGitModulesWithinAHook(t *testing.T) {
	s, _ := monorepo(t)
	other := upstreamtest.NewRepository(t)
	t.Setenv("GIT_DIR", filepath.Join(other.Dir, ".git"))
	m := modulesOf(t, gitOptions{repository: filepath.Join(s.Dir, "modules", "subnet"), path: "modules/vpc", pattern: "vpc/v{version}", tag: "vpc/v1.0.0"})
	wantDescription(t, m.modules[0].dir, `main.tf: "# 1.0.0\n"`, `sub/x.tf: ""`)
}

func TestGitModulesThatAreNone(t *testing.T) {
	s, commits := monorepo(t)
	s.Git("tag", "vpc/v3.0.0", commits[0]+":README.md")
	s.Git("tag", "x\u202ev1.0.0")
	const vpc, all = "modules/vpc", "vpc/v{version}"
	for _, test := range []struct {
		rule string
		o    gitOptions
		says string
	}{
		{"no tag is named", gitOptions{path: vpc, pattern: all}, "--tag with one tag, or --all-tags"},
		{"one and all", gitOptions{path: vpc, pattern: all, tag: "vpc/v1.0.0", all: true}, "--tag with one tag, or --all-tags"},
		{"an unknown tag", gitOptions{path: vpc, pattern: all, tag: "vpc/v7.0.0"}, "has no tag vpc/v7.0.0: fetch it first, with git fetch --tags"},
		{"an unknown tag of a URL", gitOptions{repository: "file://" + s.Dir, path: vpc, pattern: all, tag: "vpc/v7.0.0"}, "has no tag vpc/v7.0.0: push it first"},
		{"a branch", gitOptions{pattern: "{version}", tag: "main"}, "has no tag main"},
		{"a revision", gitOptions{pattern: all, tag: "vpc/v1.0.0~1"}, "has no tag vpc/v1.0.0~1"},
		{"a tag that does not match", gitOptions{tag: "vpc/v1.0.0"}, "vpc/v1.0.0 does not match v{version}: try --tag-pattern 'vpc/v{version}'"},
		{"a tag that moves", gitOptions{path: vpc, pattern: all, tag: "vpc/v1"}, "vpc/v1 is no version: it is not a whole version"},
		{"no tag matches", gitOptions{pattern: "vpc-{version}", all: true}, "no tag that matches vpc-{version}: try --tag-pattern 'vpc/v{version}', 'subnet/v{version}', 'v{version}'"},
		{"a bad pattern", gitOptions{pattern: "v*", all: true}, "--tag-pattern: \"v*\" has no {version}"},
		{"a file is tagged", gitOptions{path: vpc, pattern: all, tag: "vpc/v3.0.0"}, "the tag vpc/v3.0.0 of " + s.Dir + " cannot be published: it is not the tag of a commit"},
		{"no such folder", gitOptions{path: "modules/no", pattern: all, tag: "vpc/v1.0.0"}, "it has no folder modules/no"},
		{"no such folder at any tag", gitOptions{path: "modules/no", pattern: all, all: true}, "no tag of " + s.Dir + " can be published: vpc/v1.10.0-rc.1: it has no folder modules/no"},
		{"a file for a folder", gitOptions{path: "README.md", pattern: all, tag: "vpc/v1.0.0"}, "it has no folder README.md"},
		{"a path out of it", gitOptions{path: "../x", pattern: all, all: true}, "--path: \"../x\" is not the path of a folder in the repository"},
		{"an absolute path", gitOptions{path: "/modules/vpc", pattern: all, all: true}, "--path: "},
		{"a path of two lines", gitOptions{path: "modules\nvpc", pattern: all, all: true}, "--path: "},
		{"an option", gitOptions{repository: "--upload-pack=touch x", all: true}, "would be an option of git"},
		{"a command", gitOptions{repository: "ext::sh -c touch% x", all: true}, "it is not a URL"},
		{"a command with slashes", gitOptions{repository: "ext::sh://x", all: true}, "it is not a URL"},
		{"no such folder on this machine", gitOptions{repository: filepath.Join(s.Dir, "no"), all: true}, "there is no folder " + filepath.Join(s.Dir, "no")},
		{"a folder without git", gitOptions{repository: t.TempDir(), all: true}, "not a git repository"},
		{"a URL of nothing", gitOptions{repository: "file://" + filepath.ToSlash(t.TempDir()), all: true}, "git ls-remote in file://"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			scratch := t.TempDir()
			t.Setenv("TMPDIR", scratch)
			if test.o.repository == "" {
				test.o.repository = s.Dir
			}
			err := test.o.check()
			if err == nil {
				var b *batch
				if b, err = readGitBatch(t.Context(), test.o, address.Address{Namespace: "acme", Name: "vpc", System: "aws"}); b != nil {
					b.close()
				}
			}
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v", err)
			}
			if left := describe(t, scratch); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

// Attributes, filters and replacements change what a checkout or git archive gives, but
// not the tree of a commit.
func TestGitModuleIsTheTreeOfItsTag(t *testing.T) {
	s := upstreamtest.NewRepository(t)
	s.Git("config", "core.autocrlf", "false")
	s.Write(".gitattributes", "hidden.tf export-ignore\nmain.tf export-subst ident\n* text eol=crlf\n*.txt filter=shout\n",
		"hidden.tf", "", "main.tf", "# $Format:%H$ $Id$\n", "a.txt", "quiet", "run.sh", "#!/bin/sh\n", "data.bin", "a\r\nb\x00\n", ".hidden", "", "a b/\u00e9.tf", "")
	if err := os.Chmod(filepath.Join(s.Dir, "run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.Git("config", "filter.shout.clean", "cat")
	s.Git("config", "filter.shout.smudge", "tr a-z A-Z")
	s.Git("-c", "core.safecrlf=false", "add", "--all")
	commit := s.Commit("v1.0.0")
	s.Write("main.tf", "# replaced\n")
	s.Git("replace", commit, s.Commit())
	want := []string{
		`.gitattributes: "hidden.tf export-ignore\nmain.tf export-subst ident\n* text eol=crlf\n*.txt filter=shout\n"`,
		`.hidden: ""`, "a b/\u00e9.tf: \"\"", `a.txt: "quiet"`, `data.bin: "a\nb\x00\n"`, `hidden.tf: ""`, `main.tf: "# $Format:%H$ $Id$\n"`, `executable run.sh: "#!/bin/sh\n"`,
	}
	for _, repository := range []string{s.Dir, "file://" + filepath.ToSlash(s.Dir)} {
		m := modulesOf(t, gitOptions{repository: repository, tag: "v1.0.0"})
		if m.modules[0].commit != commit {
			t.Errorf("got the commit %s", m.modules[0].commit)
		}
		wantDescription(t, m.modules[0].dir, want...)
	}
}

func TestGitModulesWithSymlinks(t *testing.T) {
	s := upstreamtest.NewRepository(t)
	s.Write("vpc/main.tf", "", "vpc/sub/x.tf", "", "LICENSE", "")
	s.Commit("v1.0.0")
	link := func(target, name string) {
		t.Helper()
		if err := os.Symlink(target, filepath.Join(s.Dir, name)); err != nil {
			t.Skip(err)
		}
	}
	link("../main.tf", "vpc/sub/main.tf")
	link("sub", "vpc/all")
	s.Commit("v1.1.0")
	link("../LICENSE", "vpc/LICENSE")
	link("/etc/passwd", "vpc/sub/passwd")
	link("sub/../../LICENSE", "vpc/again")
	s.Commit("v1.2.0")
	m := modulesOf(t, gitOptions{repository: s.Dir, path: "vpc", all: true})
	want := []string{
		"LICENSE in it is a symlink to ../LICENSE, which is not in the folder of the module: add the file itself",
		"again in it is a symlink to sub/../../LICENSE, which is not in the folder of the module: add the file itself",
		"sub/passwd in it is a symlink to /etc/passwd, which is not in the folder of the module: add the file itself",
	}
	if out := m.modules[0]; !slices.Equal(out.refused, want) || out.dir != "" {
		t.Errorf("got %+v", out)
	}
	wantDescription(t, m.modules[1].dir, `link all: "sub"`, `main.tf: ""`, `link sub/main.tf: "../main.tf"`, `sub/x.tf: ""`)
	wantDescription(t, m.modules[2].dir, `main.tf: ""`, `sub/x.tf: ""`)
	// In the whole repository the file is in the package.
	all := modulesOf(t, gitOptions{repository: s.Dir, tag: "v1.2.0"})
	if got := all.modules[0].refused; len(got) != 1 || !strings.Contains(got[0], "/etc/passwd") {
		t.Errorf("got %q", got)
	}
}

// A tag gives the bytes that the registry would serve for its files in the tree. Problems of
// files that are left out of the package do not count.
func TestGitModulesAreFoldersToPack(t *testing.T) {
	const pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n"
	s := upstreamtest.NewRepository(t)
	files := []string{"main.tf", "", "sub/x.tf", "module \"a\" {\n  source = \"../../other\"\n}\n", "logo.png", pointer, "docs/a.tf", "module \"a\" {\n  source = \"../..\"\n}\n", ".terraformignore", "docs/\n"}
	plain := t.TempDir()
	for pair := range slices.Chunk(files, 2) {
		commandtest.Write(t, plain, pair[0], pair[1])
		s.Write(filepath.Join("vpc", pair[0]), pair[1])
	}
	for _, dir := range []string{plain, filepath.Join(s.Dir, "vpc")} {
		if err := os.Symlink("../main.tf", filepath.Join(dir, "sub", "main.tf")); err != nil {
			t.Skip(err)
		}
	}
	s.Commit("v1.0.0")
	m := modulesOf(t, gitOptions{repository: s.Dir, path: "vpc", tag: "v1.0.0"})
	packed, err := archive.PackModule(t.Context(), m.modules[0].dir)
	if err != nil {
		t.Fatal(err)
	}
	want, err := archive.PackModule(t.Context(), plain)
	if err != nil {
		t.Fatal(err)
	}
	if packed.SHA256 != want.SHA256 {
		t.Errorf("the package of the tag is %s, that of its files %s", packed.SHA256, want.SHA256)
	}
	zipped := packed.Open()
	defer zipped.Close()
	unfit, err := unfitPackage(zipped)
	if err != nil || len(unfit) != 2 || !strings.HasPrefix(unfit[0], "logo.png is only the pointer") || !strings.HasPrefix(unfit[1], `sub/x.tf: the module "a"`) {
		t.Errorf("got %q, %v", unfit, err)
	}
}

func TestGitModulesWithSubmodules(t *testing.T) {
	s, commits := monorepo(t)
	s.Git("update-index", "--add", "--cacheinfo", "160000,"+commits[0]+",modules/vpc/vendor/net")
	s.Git("commit", "--quiet", "--message", "A submodule")
	s.Git("tag", "vpc/v1.2.0")
	m := modulesOf(t, gitOptions{repository: s.Dir, path: "modules/vpc", pattern: "vpc/v{version}", tag: "vpc/v1.2.0"})
	if got := m.modules[0].refused; len(got) != 1 || !strings.HasPrefix(got[0], "vendor/net in it is a submodule, ") {
		t.Errorf("got %q", got)
	}
	// One beside the module does not matter.
	m = modulesOf(t, gitOptions{repository: s.Dir, path: "modules/subnet", pattern: "vpc/v{version}", tag: "vpc/v1.2.0"})
	wantDescription(t, m.modules[0].dir, `main.tf: "# 2\n"`)
}

// A tree that git itself would not make leads nowhere but into the module's folder.
func TestGitModulesWithHostileTrees(t *testing.T) {
	s := upstreamtest.NewRepository(t)
	file := s.GitWith("x", "hash-object", "-w", "--stdin")
	out := s.GitWith("../../../out", "hash-object", "-w", "--stdin")
	entry := func(mode, object, name string) string { return mode + " blob " + object + "\t" + name + "\x00" }
	files := func(entries ...string) string {
		return s.GitWith(strings.Join(entries, ""), "mktree", "-z")
	}
	folder := func(object, name string) string { return "040000 tree " + object + "\t" + name + "\x00" }
	names := []string{"main.tf", "control\x1b[2J.tf", "tab\t.tf", "line\n.tf"}
	var entries []string
	for _, name := range names {
		entries = append(entries, entry("100644", file, name))
	}
	for _, test := range []struct {
		rule, tree string
		says       string // of what is refused; empty: it is written
	}{
		{"a parent", files(folder(files(entry("100644", file, "out")), "..")), "../out in it is not a name for a file"},
		{"the folder itself", files(folder(files(entry("100644", file, "out")), ".")), "./out in it is not a name for a file"},
		{"a symlink out of it", files(entry("120000", out, "a")), "a in it is a symlink to ../../../out"},
		{"a long symlink", files(entry("120000", s.GitWith(strings.Repeat("a", 5000), "hash-object", "-w", "--stdin"), "a")), "a in it is a symlink to a name of more than"},
		{"strange names", files(entries...), ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			s.Git("tag", "--force", "v1.0.0", s.GitWith("A commit", "commit-tree", test.tree))
			m := modulesOf(t, gitOptions{repository: s.Dir, tag: "v1.0.0"})
			got := m.modules[0]
			if test.says == "" {
				var written []string
				for _, file := range describe(t, got.dir) {
					written = append(written, strings.TrimSuffix(file, `: "x"`))
				}
				if slices.Sort(names); !slices.Equal(written, names) {
					t.Errorf("got %q", written)
				}
				return
			}
			if len(got.refused) != 1 || !strings.HasPrefix(got.refused[0], test.says) {
				t.Errorf("got %q", got.refused)
			}
		})
	}
}

// A tree can name one file behind a symlink and in its target's place.
func TestGitModulesAreNotWrittenThroughSymlinks(t *testing.T) {
	s := upstreamtest.NewRepository(t)
	object := func(content string) string { return s.GitWith(content, "hash-object", "-w", "--stdin") }
	below := s.GitWith("100644 blob "+object("x")+"\tout\x00", "mktree", "-z")
	files := s.GitWith("120000 blob "+object("sub")+"\ta\x00040000 tree "+below+"\ta\x00", "mktree", "-z")
	s.Git("tag", "v1.0.0", s.GitWith("A commit", "commit-tree", files))
	if m, err := readModules(t, gitOptions{repository: s.Dir, tag: "v1.0.0"}); err == nil || !strings.Contains(err.Error(), "a cannot be written") {
		t.Errorf("got %+v, %v", m, err)
	}
}

// Trees that contain one another count as many files as they have.
func TestGitModulesWithTooManyFiles(t *testing.T) {
	s := upstreamtest.NewRepository(t)
	files := s.GitWith("100644 blob "+s.GitWith("x", "hash-object", "-w", "--stdin")+"\tx\x00", "mktree", "-z")
	for range 9 { // 10^9 files
		var entries strings.Builder
		for i := range 10 {
			fmt.Fprintf(&entries, "040000 tree %s\t%d\x00", files, i)
		}
		files = s.GitWith(entries.String(), "mktree", "-z")
	}
	s.Git("tag", "v1.0.0", s.GitWith("A commit", "commit-tree", files))
	m := modulesOf(t, gitOptions{repository: s.Dir, tag: "v1.0.0"})
	if got := m.modules[0].refused; len(got) != 1 || !strings.Contains(got[0], "more than 20000 files") {
		t.Errorf("got %q", got)
	}
}

// Only what is needed of a repository is fetched, if its server can do that.
func TestGitModulesAreFetchedThinly(t *testing.T) {
	s, _ := monorepo(t)
	s.Write("modules/other/large.bin", strings.Repeat("large", 1000))
	s.Commit("vpc/v1.3.0")
	for _, thin := range []string{"true", "false"} {
		s.Git("config", "uploadpack.allowFilter", thin)
		m := modulesOf(t, gitOptions{repository: "file://" + filepath.ToSlash(s.Dir), path: "modules/vpc", pattern: "vpc/v{version}", all: true})
		if len(m.modules) != 4 {
			t.Errorf("got %v", m.modules)
		}
		large := s.Git("rev-parse", "HEAD:modules/other/large.bin")
		has := strings.Contains(s.Git("-C", filepath.Join(filepath.Dir(m.scratch), "repository"), "cat-file", "--batch-all-objects", "--batch-check"), large)
		if has != (thin == "false") {
			t.Errorf("allowFilter %s: the file of another module is fetched: %v", thin, has)
		}
	}
}

// A repository of its user may lack contents that a partial clone left out. It is not
// modified, so they are not fetched.
func TestGitModulesOfAPartialClone(t *testing.T) {
	s, _ := monorepo(t)
	s.Git("config", "uploadpack.allowFilter", "true")
	clone := filepath.Join(t.TempDir(), "clone")
	s.Git("clone", "--quiet", "--bare", "--filter=blob:none", "file://"+filepath.ToSlash(s.Dir), clone)
	_, err := readModules(t, gitOptions{repository: clone, path: "modules/vpc", pattern: "vpc/v{version}", tag: "vpc/v1.0.0"})
	if err == nil || !strings.Contains(err.Error(), "the content of ") || !strings.Contains(err.Error(), " is not in it: let git fetch it, or give the repository's URL") {
		t.Errorf("got %v", err)
	}
}

func TestGitHooksAndMonitorsAreNotRun(t *testing.T) {
	s, _ := monorepo(t)
	ran := filepath.Join(t.TempDir(), "ran")
	script := commandtest.Write(t, t.TempDir(), "run.sh", "#!/bin/sh\ntouch "+ran+"\n")
	if err := os.Chmod(script, 0o755); err != nil {
		t.Fatal(err)
	}
	hooks := filepath.Join(s.Dir, ".git", "hooks")
	if err := os.MkdirAll(hooks, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, hook := range []string{"reference-transaction", "post-checkout", "post-index-change", "pre-auto-gc"} {
		content, err := os.ReadFile(script)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(hooks, hook), content, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s.Git("config", "core.fsmonitor", script)
	s.Git("config", "core.pager", script)
	s.Git("config", "core.alternateRefsCommand", script)
	s.Git("config", "gpg.program", script)
	s.Git("config", "log.showSignature", "true")
	for _, repository := range []string{s.Dir, "file://" + filepath.ToSlash(s.Dir)} {
		modulesOf(t, gitOptions{repository: repository, path: "modules/vpc", pattern: "vpc/v{version}", all: true})
		if _, err := os.Stat(ran); err == nil {
			t.Fatalf("%s: something of the repository was run", repository)
		}
	}
}

func TestGitCredentialsAreNotPrinted(t *testing.T) {
	upstreamtest.NewRepository(t)
	// A port that nothing listens on.
	_, err := readModules(t, gitOptions{repository: "http://user:secret@127.0.0.1:1/a.git", all: true})
	if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "http://127.0.0.1:1/a.git") {
		t.Errorf("got %v", err)
	}
}
