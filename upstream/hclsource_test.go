package upstream

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/spf13/afero"
)

// HCL's parsers recurse: without a limit, some eighty times as much of each of
// these ends the process.
func TestDeepFilesAreRefused(t *testing.T) {
	const n = 12_000
	for rule, content := range map[string]string{
		"brackets":           "a = " + strings.Repeat("[", n),
		"brackets, in lines": "a = " + strings.Repeat("[\n", n),
		"braces":             "a = " + strings.Repeat("{ a = ", n),
		"blocks":             strings.Repeat("a {\n", n),
		"calls":              "a = " + strings.Repeat("f(", n),
		"negations":          "a = " + strings.Repeat("!", n),
		"signs":              "a = " + strings.Repeat("- ", n) + "1",
		"conditions":         "a = " + strings.Repeat("b ? c : ", n) + "d",
		"sums":               "a = 1" + strings.Repeat("+1", n),
		"sums in brackets":   "a = (1" + strings.Repeat("+\n1", n) + ")",
		"sums in for":        "a = { # why\nfor b in c: b => 1" + strings.Repeat("+\n1", n) + "}",
		"indices":            "a = b" + strings.Repeat("[c]", n),
		"templates":          "a = " + strings.Repeat(`"${`, n),
		"closed by another":  "a = " + strings.Repeat("[}", n),
	} {
		t.Run(rule, func(t *testing.T) {
			if _, err := parseHCL("main.tf", []byte(content)); err == nil || !strings.Contains(err.Error(), "nested too deeply") {
				t.Errorf("%v", err)
			}
		})
	}
	for rule, content := range map[string]string{
		"arrays":    strings.Repeat("[", n),
		"objects":   strings.Repeat(`{"a":`, n),
		"templates": `{"a":"${` + strings.Repeat("(", n) + `"}`,
		"no JSON":   "{\n,",
	} {
		t.Run("JSON "+rule, func(t *testing.T) {
			if _, err := parseHCL("main.tf.json", []byte(content)); err == nil || !strings.HasPrefix(err.Error(), "main.tf.json:") {
				t.Errorf("%v", err)
			}
		})
	}
}

// HCL's parser takes time by the square of the lines in a heredoc.
func TestEndlessHeredocsAreRefused(t *testing.T) {
	text := strings.Repeat("x\n", maxHeredocs/2)
	heredoc := "a = <<EOT\n" + text + "x\nEOT\n"
	for name, content := range map[string]string{
		"main.tf":      heredoc + heredoc,
		"main.tf.json": `{"a":"${b}` + strings.ReplaceAll(text+text+"x\n", "\n", `\n`) + `"}`,
	} {
		if _, err := parseHCL(name, []byte(content)); err == nil || !strings.Contains(err.Error(), "too much text in heredocs") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLargeFilesAreNotDeep(t *testing.T) {
	const n = 12_000
	for rule, content := range map[string]string{
		"blocks":       strings.Repeat("a \"b\" {\n c = d.e[\"f\"]\n}\n", n),
		"a list":       "a = [" + strings.Repeat("b.c.d,\n", n) + "]\n",
		"an object":    "a = {\n" + strings.Repeat("b = c ? d : e # why\n", n) + "}\n",
		"a heredoc":    "a = <<EOT\n" + strings.Repeat("text, more text\n", n/10) + "EOT\n",
		"arguments":    "a {\n" + strings.Repeat("b = 1 + 2\n", n) + "}\n",
		"comments":     strings.Repeat("# why, and why not\n// [ [ [\n/* { */\n", n),
		"closed again": strings.Repeat("a = "+strings.Repeat("[", 100)+strings.Repeat("]", 100)+"\n", 100),
	} {
		t.Run(rule, func(t *testing.T) {
			if _, err := parseHCL("main.tf", []byte(content)); err != nil && strings.Contains(err.Error(), "nested too deeply") {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestOnlyRegularFilesOfSomeSizeAreRead(t *testing.T) {
	fsys := afero.FromIOFS{FS: fstest.MapFS{"file": {Data: []byte("12345")}, "folder/file": {}}}
	if content, err := readRegular(fsys, "file", 5); err != nil || string(content) != "12345" {
		t.Errorf("it is %q, %v", content, err)
	}
	for name, says := range map[string]string{"folder": "not a regular file", "none": "not exist"} {
		if _, err := readRegular(fsys, name, 5); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := readRegular(fsys, "file", 4); err == nil || !strings.Contains(err.Error(), "larger than 4 bytes") {
		t.Errorf("a large one: %v", err)
	}
}
