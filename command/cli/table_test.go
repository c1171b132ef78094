package cli

import (
	"strings"
	"testing"
)

// A table fits the terminal, unless a single word does not fit. In a file, rows are not
// broken.
func TestTableFits(t *testing.T) {
	long := "registry.terraform.io/a-company-with-a-long-name/" + strings.Repeat("x", 20)
	for _, test := range []struct {
		rule string
		rows [][]string
		want string
	}{
		{"a table that fits", [][]string{{"ADDED", "SIZE"}, {"acme/demo", "1 MB"}}, "ADDED      SIZE\nacme/demo  1 MB\n"},
		{"a wide one has the first column above the others, once for the same",
			[][]string{{"ADDED", "VERSION", "PLATFORM"}, {long, "1.0.0", "linux_amd64"}, {long, "1.0.0", "windows_amd64"}, {"acme/demo", "10.0.0", "linux_arm64"}},
			"ADDED\n    VERSION  PLATFORM\n" + long + "\n    1.0.0    linux_amd64\n    1.0.0    windows_amd64\nacme/demo\n    10.0.0   linux_arm64\n"},
		{"a cell that is too wide is broken after commas", [][]string{{"NAME", "GROUPS", "STATE"}, {"ci", strings.Repeat("group,", 14) + "last", "good"}},
			"NAME\n    GROUPS                                                                 STATE\nci\n" +
				"    group,group,group,group,group,group,group,group,group,group,group,     good\n    group,group,group,last\n"},
		{"and at spaces", [][]string{{"CLAIM", "VALUE"}, {"a", strings.Repeat("word ", 20) + "last"}},
			"CLAIM\n    VALUE\na\n    " + strings.TrimSpace(strings.Repeat("word ", 15)) + "\n    " + strings.Repeat("word ", 5) + "last\n"},
		{"a word that is too wide stays whole, to be copied", [][]string{{"CLAIM", "VALUE"}, {"a", strings.Repeat("x", 90)}}, "CLAIM\n    VALUE\na\n    " + strings.Repeat("x", 90) + "\n"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			var terminal, file strings.Builder
			w := &fittedWriter{out: &terminal}
			if err := WriteTable(w, test.rows); err != nil {
				t.Fatal(err)
			}
			if terminal.String() != test.want {
				t.Errorf("at a terminal it is\n%s\nwant\n%s", &terminal, test.want)
			}
			if err := WriteTable(&file, test.rows); err != nil {
				t.Fatal(err)
			}
			if lines := strings.Count(file.String(), "\n"); lines != len(test.rows) {
				t.Errorf("in a file it has %d lines:\n%s", lines, &file)
			}
		})
	}
}
