package snippet

import (
	"slices"
	"strings"
	"testing"
)

func testAddress(source string) string {
	if strings.HasPrefix(source, "../") || source == ".." {
		return "h/a/b/c" + strings.Replace(strings.TrimPrefix(source, "../.."), "/", "//", 1)
	}
	return ""
}

// The path by which an example calls its module becomes an address that works elsewhere,
// and nothing else in the file changes.
func TestSourcesOfExamplesAreAdapted(t *testing.T) {
	for _, test := range []struct{ rule, text, want string }{
		{"a path to the module", "module \"x\" {\n  source = \"../..\"\n  a = 1\n}\n", "module \"x\" {\n  source  = \"h/a/b/c\"\n+  version = \"~> 1.0\"\n  a = 1\n}\n"},
		{"a path to a submodule", "module \"x\" {\n  source = \"../../modules/y\"\n}", "module \"x\" {\n  source  = \"h/a/b/c//modules/y\"\n+  version = \"~> 1.0\"\n}"},
		{"the alignment stays", "module \"x\" {\n\tsource    = \"../..\"\n\tlong_name = 1\n}", "module \"x\" {\n\tsource    = \"h/a/b/c\"\n+\tversion   = \"~> 1.0\"\n\tlong_name = 1\n}"},
		{"a comment at the end of the line", "module \"x\" {\n  source = \"../..\" # here\n}", "module \"x\" {\n  source  = \"h/a/b/c\" # here\n+  version = \"~> 1.0\"\n}"},
		{"line breaks of Windows", "module \"x\" {\r\n  source = \"../..\"\r\n}\r\n", "module \"x\" {\r\n  source  = \"h/a/b/c\"\r\n+  version = \"~> 1.0\"\r\n}\r\n"},
		{"a block on one line has no room for a version", "module \"x\" { source = \"../..\" }", "module \"x\" { source  = \"h/a/b/c\" }"},
		{"two calls", "module \"x\" {\n  source = \"../..\"\n}\nmodule \"y\" {\n  source = \"../..\"\n}", "module \"x\" {\n  source  = \"h/a/b/c\"\n+  version = \"~> 1.0\"\n}\nmodule \"y\" {\n  source  = \"h/a/b/c\"\n+  version = \"~> 1.0\"\n}"},
		{"a path within the example", "module \"x\" {\n  source = \"./y\"\n}", ""},
		{"an address", "module \"x\" {\n  source = \"a/b/c\"\n}", ""},
		{"an expression", "module \"x\" {\n  source = \"../${y}\"\n}", ""},
		{"an escape", "module \"x\" {\n  source = \"../\\u002e\"\n}", ""},
		{"the source of something else", "locals {\n  source = \"../..\"\n}\nmodule \"x\" {\n  y = {\n    source = \"../..\"\n  }\n}", ""},
		{"text that is like it", "# module \"x\" {\n#  source = \"../..\"\nx = <<EOT\nmodule \"x\" {\n  source = \"../..\"\n}\nEOT\n", ""},
		{"what does not end", "module \"x\" {\n  source = \"../..", ""},
	} {
		if test.want == "" {
			test.want = test.text
		}
		a := adaptSources(test.text, "~> 1.0", testAddress)
		lines := strings.SplitAfter(a.Text, "\n")
		for at := range a.Added {
			lines[at] = "+" + lines[at]
		}
		if got := strings.Join(lines, ""); got != test.want {
			t.Errorf("%s: got\n%q\nnot\n%q", test.rule, got, test.want)
		}
	}
}

func TestExamplesAreFolders(t *testing.T) {
	for file, want := range map[string]string{
		"examples/full/main.tf": "examples/full", "examples/full/deep/main.tf": "examples/full", "modules/a/examples/b/main.tf": "modules/a/examples/b",
		"examples/main.tf": "", "main.tf": "", "modules/a/main.tf": "", "examples": "",
	} {
		if got := ExampleOf(file); got != want {
			t.Errorf("%s is of %q, not %q", file, got, want)
		}
	}
}

// Whatever the file, only lines that are marked differ from it.
func FuzzAdaptSources(f *testing.F) {
	for _, text := range []string{"module \"x\" {\n  source = \"../..\"\n}\n", "module x{source=\"../..\" /* a\n*/\n}", "module \"x\" {\nsource = \"../..\"\r\nsource = \"../..\"", "module x {\n{\n\"${module}\"}source=\"..\"\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a := adaptSources(text, "1.0.0", testAddress)
		var kept []string
		sources := make(map[int]string)
		for i, line := range strings.Split(a.Text, "\n") {
			if a.Added[i] {
				continue
			}
			if was, ok := a.Sources[i]; ok {
				sources[len(kept)] = was
			}
			kept = append(kept, line)
		}
		original := strings.Split(text, "\n")
		if len(kept) != len(original) {
			t.Fatalf("%q became %q", text, a.Text)
		}
		for i, line := range original {
			if was, adapted := sources[i]; adapted && strings.Contains(line, was) {
				kept[i] = line
			}
		}
		if !slices.Equal(kept, original) {
			t.Errorf("%q became %q", text, a.Text)
		}
	})
}
