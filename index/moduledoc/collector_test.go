package moduledoc

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/iotest"
)

// collect adds all files to a collector.
func collect(t testing.TB, fsys fs.FS, c Collector) Collector {
	t.Helper()
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f, err := fsys.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		return c.Add(name, f)
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// files returns the files of a package, given as names and contents in turn.
func files(namesAndContents ...string) fstest.MapFS {
	m := make(fstest.MapFS)
	for i := 0; i < len(namesAndContents); i += 2 {
		m[namesAndContents[i]] = &fstest.MapFile{Data: []byte(namesAndContents[i+1])}
	}
	return m
}

// variablesOf lists the variables of all modules of a package, as path:name.
func variablesOf(p *Package) []string {
	var all []string
	for _, modules := range [][]Module{{p.Root}, p.Submodules, p.Examples} {
		for _, m := range modules {
			for _, v := range m.Variables {
				all = append(all, m.Path+":"+v.Name)
			}
		}
	}
	return all
}

func TestWhatIsCollected(t *testing.T) {
	declare := func(name string) string { return fmt.Sprintf("variable %q {}\n", name) }
	for _, test := range []struct {
		rule   string
		files  fstest.MapFS
		folder string
		want   []string
	}{
		{"the root, modules/ and examples/", files("main.tf", declare("a"), "modules/m/main.tf", declare("b"), "examples/e/main.tf", declare("c")), "",
			[]string{":a", "modules/m:b", "examples/e:c"}},
		{"one level of them", files("main.tf", declare("a"), "modules/m/n/main.tf", declare("b"), "modules/main.tf", declare("c"), "x/main.tf", declare("d")), "", []string{":a"}},
		{"no hidden ones", files("main.tf", declare("a"), "modules/.m/main.tf", declare("b"), ".modules/m/main.tf", declare("c")), "", []string{":a"}},
		{"the one folder at the root", files("vpc-1.0/main.tf", declare("a"), "vpc-1.0/modules/m/main.tf", declare("b"), "LICENSE", ""), "vpc-1.0", []string{":a", "modules/m:b"}},
		{"beside what macOS leaves", files("__MACOSX/vpc/main.tf", declare("x"), "vpc/main.tf", declare("a")), "vpc", []string{":a"}},
		{"the root if it has configuration", files("a/main.tf", declare("x"), "main.tf", declare("a")), "", []string{":a"}},
		{"submodules alone", files("modules/m/main.tf", declare("b")), "", []string{"modules/m:b"}},
		{"files of all four names", files("a.tf", declare("a"), "b.tofu", declare("b"), "c.tf.json", `{"variable":{"c":{}}}`, "d.tofu.json", `{"variable":{"d":{}}}`), "",
			[]string{":a", ":b", ":c", ":d"}},
		{"a .tofu file replaces the .tf of its name", files("a.tf", declare("x"), "a.tofu", declare("a"), "a.tf.json", `{"variable":{"b":{}}}`, "c.tf.json", `{"variable":{"x":{}}}`, "c.tofu.json", `{"variable":{"c":{}}}`), "",
			[]string{":b", ":a", ":c"}},
		{"overriding files come last", files("a_override.tf", declare("a"), "b.tf", declare("b")+declare("a"), "override.tf", declare("b")), "", []string{":b", ":a"}},
		{"no files of editors", files("main.tf", declare("a"), ".main.tf", declare("x"), "#main.tf#", declare("x"), "main.tf~", declare("x"), ".#main.tf", declare("x"), "main.tf.bak", declare("x")), "", []string{":a"}},
		{"no values or tests", files("main.tf", declare("a"), "terraform.tfvars", `a = 1`, "main.tftest.hcl", declare("x")), "", []string{":a"}},
	} {
		c := collect(t, test.files, Collector{})
		if got := variablesOf(c.Package(test.folder)); !slices.Equal(got, test.want) {
			t.Errorf("%s: the variables are %q, not %q", test.rule, got, test.want)
		}
	}
}

func TestNamesThatLeaveThePackageAreIgnored(t *testing.T) {
	var c Collector
	for _, name := range []string{"../main.tf", "/main.tf", "a/../../main.tf", "modules/\x00/main.tf", "modules/\xff/main.tf", "modules/\u202e/main.tf", "modules/" + strings.Repeat("x", 2000) + "/main.tf", "."} {
		if c.Wants(name) {
			t.Errorf("%.50q is wanted", name)
		}
		if err := c.Add(name, iotest.ErrReader(errors.New("it is read"))); err != nil {
			t.Errorf("%.50q: %v", name, err)
		}
	}
	if !c.Wants("./main.tf") || !c.Wants("./modules//m/main.tf") {
		t.Error("names that tar writes are not wanted")
	}
}

func TestErrorsOfReadingAreReturned(t *testing.T) {
	broken := errors.New("broken")
	for _, name := range []string{"main.tf", "README.md", "LICENSE", "top/main.tf"} {
		if err := new(Collector).Add(name, iotest.ErrReader(broken)); !errors.Is(err, broken) {
			t.Errorf("of %s the error is %v", name, err)
		}
	}
}

// Of several files of the same name in an archive the last one counts, as when clients
// unpack it.
func TestTheLastOfSeveralFilesCounts(t *testing.T) {
	var c Collector
	for _, name := range []string{"first", "second"} {
		for file, content := range map[string]string{"main.tf": `variable "` + name + `" {}`, "README.md": name} {
			if err := c.Add(file, strings.NewReader(content)); err != nil {
				t.Fatal(err)
			}
		}
	}
	p := c.Package("")
	if got := variablesOf(p); !slices.Equal(got, []string{":second"}) || p.Root.Readme.Content != "second" {
		t.Errorf("the variables are %q, and the README is %q", got, p.Root.Readme.Content)
	}
}

// An endless file returns bytes without end, and counts them.
type endless struct {
	line string
	read int
}

func (e *endless) Read(p []byte) (int, error) {
	n := 0
	for n+len(e.line) <= len(p) {
		n += copy(p[n:], e.line)
	}
	if n == 0 {
		n = copy(p, e.line)
	}
	e.read += n
	return n, nil
}

func TestBounds(t *testing.T) {
	problems := func(p *Package) string {
		var all []string
		for _, problem := range p.Root.Problems {
			all = append(all, problem.File+": "+problem.Text)
		}
		return strings.Join(all, "\n")
	}
	t.Run("a README is cut at a line", func(t *testing.T) {
		e := &endless{line: "ninety-nine bottles\n"}
		c := collect(t, files("main.tf", ""), Collector{})
		if err := c.Add("README.md", e); err != nil {
			t.Fatal(err)
		}
		r := c.Package("").Root.Readme
		if !r.Truncated || len(r.Content) > maxReadme || len(r.Content) < maxReadme-100 || !strings.HasSuffix(r.Content, "bottles\n") || e.read > 2*maxReadme {
			t.Errorf("it has %d bytes and is cut: %t; %d bytes were read", len(r.Content), r.Truncated, e.read)
		}
	})
	t.Run("all READMEs together", func(t *testing.T) {
		c := collect(t, files("main.tf", ""), Collector{})
		for i := range 50 {
			c.Add(fmt.Sprintf("modules/%d/main.tf", i), strings.NewReader(""))
			c.Add(fmt.Sprintf("modules/%d/README.md", i), &endless{line: "x\n"})
		}
		total := 0
		for _, m := range c.Package("").Submodules {
			total += len(m.Readme.Content)
		}
		if total > maxReadmes {
			t.Errorf("they have %d bytes", total)
		}
	})
	t.Run("a file of configuration that is too large is left out", func(t *testing.T) {
		e := &endless{line: "# a comment\n"}
		c := collect(t, files("a.tf", `variable "a" {}`), Collector{})
		if err := c.Add("b.tf", e); err != nil {
			t.Fatal(err)
		}
		p := c.Package("")
		if !slices.Equal(variablesOf(p), []string{":a"}) || !strings.HasPrefix(problems(p), "b.tf: The file is larger than") || e.read > 3*maxFile {
			t.Errorf("the problems are %q; %d bytes were read", problems(p), e.read)
		}
	})
	t.Run("all configuration together", func(t *testing.T) {
		var c Collector
		for i := range 20 {
			c.Add(fmt.Sprintf("%02d.tf", i), strings.NewReader(strings.Repeat("# comment\n", 80_000)))
		}
		if got := problems(c.Package("")); !strings.Contains(got, "19.tf: The package has more than") || strings.Contains(got, "03.tf") {
			t.Errorf("the problems are %q", got)
		}
	})
	t.Run("the number of files", func(t *testing.T) {
		var c Collector
		for i := range maxFiles + 10 {
			c.Add(fmt.Sprintf("%06d.tf", i), strings.NewReader(fmt.Sprintf("output \"o%d\" {}\n", i)))
		}
		p := c.Package("")
		if len(p.Root.Outputs) != maxFiles || strings.Count(problems(p), "more than") != 1 {
			t.Errorf("there are %d outputs, and the problems are %q", len(p.Root.Outputs), problems(p))
		}
	})
	t.Run("the number of modules", func(t *testing.T) {
		c := collect(t, files("main.tf", ""), Collector{})
		for i := range maxModules + 10 {
			c.Add(fmt.Sprintf("modules/%d/main.tf", i), strings.NewReader(""))
			c.Add(fmt.Sprintf("examples/%d/main.tf", i), strings.NewReader(""))
		}
		p := c.Package("")
		if len(p.Submodules) != maxModules || len(p.Examples) != maxModules || strings.Count(problems(p), "Only the first 100 folders") != 2 {
			t.Errorf("there are %d and %d, and the problems are %q", len(p.Submodules), len(p.Examples), problems(p))
		}
	})
	for kind, list := range map[string]struct {
		block string
		limit int
		count func(*Module) int
	}{
		"variables": {"variable \"x%d\" {}\n", maxVariables, func(m *Module) int { return len(m.Variables) }},
		"outputs":   {"output \"x%d\" {}\n", maxOutputs, func(m *Module) int { return len(m.Outputs) }},
		"calls":     {"module \"x%d\" {}\n", maxCalls, func(m *Module) int { return len(m.Calls) }},
		"resources": {"resource \"aws_x\" \"x%d\" {}\n", maxResources, func(m *Module) int { return len(m.Resources) }},
		"providers": {"provider \"x%d\" {}\n", maxProviders, func(m *Module) int { return len(m.Providers) }},
	} {
		t.Run("the number of "+kind, func(t *testing.T) {
			var b strings.Builder
			for i := range 10_000 {
				fmt.Fprintf(&b, list.block, i)
			}
			c := collect(t, files("main.tf", b.String()), Collector{})
			p := c.Package("")
			if n := list.count(&p.Root); n != list.limit || len(p.Root.Problems) != 1 || !strings.Contains(problems(p), "left out") {
				t.Errorf("there are %d, and the problems are %q", n, problems(p))
			}
		})
	}
}

// A folder that is known beforehand may be anywhere in the package.
func TestCollectorOfAFolder(t *testing.T) {
	c := collect(t, files(
		"LICENSE", "MIT License\n\nPermission is hereby granted, free of charge, to any person obtaining a copy",
		"main.tf", `variable "of_the_root" {}`, "README.md", "# Root",
		"modules/a/main.tf", `variable "a" {}`, "modules/a/README.md", "# A", "modules/a/modules/b/main.tf", "", "modules/a/examples/c/main.tf", "",
		"modules/ab/main.tf", `variable "ab" {}`,
	), Collector{Folder: "modules/a"})
	p := c.Package("modules/a")
	if len(p.Root.Variables) != 1 || p.Root.Variables[0].Name != "a" || string(p.Root.Readme.Content) != "# A" {
		t.Errorf("the module is %+v", p.Root)
	}
	if len(p.Submodules) != 1 || p.Submodules[0].Path != "modules/b" || len(p.Examples) != 1 || p.Examples[0].Path != "examples/c" {
		t.Errorf("it has the submodules %+v and the examples %+v", p.Submodules, p.Examples)
	}
	if c.Wants("main.tf") || c.Wants("modules/ab/main.tf") || !c.Wants("modules/a/x.tf") || !c.Wants("LICENSE") {
		t.Error("it wants files of other folders, or not those of its folder")
	}
}
