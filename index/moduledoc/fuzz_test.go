package moduledoc

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"unicode/utf8"
)

// checkModule checks the properties of every module, whatever its files contain.
func checkModule(t *testing.T, m *Module) {
	t.Helper()
	check := func(what, s string, limit int) {
		if len(s) > limit+len("…") || !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
			t.Errorf("%s has %d bytes: %.100q", what, len(s), s)
		}
	}
	for _, v := range m.Variables {
		check("a name", v.Name, maxLabel)
		for what, s := range map[string]string{"type": v.Type, "default": v.Default, "description": v.Description, "deprecated": v.Deprecated} {
			check(what, s, 2*maxText) // invalid bytes become longer
		}
	}
	for _, o := range m.Outputs {
		check("an output", o.Name, maxLabel)
		check("its description", o.Description, 2*maxText)
	}
	for _, c := range m.Calls {
		check("a source", c.Source, 3*maxLabel)
	}
	for _, p := range m.Providers {
		check("a provider", p.Name+p.Source+p.Version, 12*maxLabel)
	}
	if len(m.Problems) > maxProblems {
		t.Errorf("there are %d problems", len(m.Problems))
	}
	for _, p := range m.Problems {
		check("a problem", p.Text, 1000)
		if p.Line < 0 {
			t.Errorf("a problem is in line %d", p.Line)
		}
	}
}

func fuzzFile(f *testing.F, name string) {
	f.Fuzz(func(t *testing.T, content []byte) {
		var c Collector
		if err := c.Add(name, strings.NewReader(string(content))); err != nil {
			t.Fatal(err)
		}
		p := c.Package("")
		checkModule(t, &p.Root)
		for _, r := range p.Refused {
			if len(r.Text) > 1000 || !utf8.ValidString(r.Text) || strings.ContainsRune(r.Text, 0) || r.Line < 0 {
				t.Errorf("it is refused in line %d: %q", r.Line, r.Text)
			}
		}
		s := p.Summary()
		if _, err := DecodeSummary(s.Encode()); err != nil {
			t.Error(err)
		}
		for _, v := range p.Root.Variables {
			_, _ = v.Constraint()
		}
	})
}

func FuzzHCL(f *testing.F) {
	for _, name := range []string{"main.tf", "variables.tf", "versions.tf", "examples/complete/main.tf"} {
		content, err := os.ReadFile("testdata/network/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content)
	}
	f.Add([]byte("variable \"a\" {\n default = [<<-E\n  x\n E\n, \"${b}\", -1e999]\n}"))
	fuzzFile(f, "main.tf")
}

func FuzzJSON(f *testing.F) {
	content, err := os.ReadFile("testdata/network/generated.tf.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(content)
	f.Add([]byte(`{"terraform":{"required_providers":{"a":{"version":"1"}}},"module":{"m":[{"source":"x"}]},"output":{"o":{}}}`))
	fuzzFile(f, "main.tf.json")
}

func FuzzReadme(f *testing.F) {
	content, err := os.ReadFile("testdata/network/README.md")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(content)
	fuzzFile(f, "README.md")
}

// A value that is read as a literal is valid JSON.
func FuzzLiterals(f *testing.F) {
	for _, seed := range []string{`{ a = [1, "x", null], "b" : -0.5e3 }`, "<<-E\n  a\n b\nE", `"\u00e9$${a}"`, "((007))"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, expression string) {
		b := "variable \"a\" {\n default = " + expression + "\n}\n"
		for body := range parseHCL([]byte(b), func(int, string) {}) {
			for _, variable := range body.blocks("variable", 1) {
				if v := variable.attribute("default"); v != nil {
					if text, ok := v.literal(); ok && !json.Valid([]byte(text)) {
						t.Errorf("%q became %q", expression, text)
					}
				}
			}
		}
	})
}

func FuzzSummary(f *testing.F) {
	f.Add(Summary{Description: "a", Inputs: []string{"b"}, Submodules: []SubmoduleSummary{{Path: "c"}}}.Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := DecodeSummary(b)
		if err == nil && len(b) > 0 {
			if _, err := DecodeSummary(s.Encode()); err != nil {
				t.Error(err)
			}
		}
	})
}
