package upstream_test

import (
	"slices"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

// Configuration leads to called modules and to files that are read.
func TestPathsInConfiguration(t *testing.T) {
	for _, test := range []struct {
		rule, name, content string
		want                []string
	}{
		{"a call", "main.tf", call("../b") + call("./c"), []string{"../b", "./c"}},
		{"calls of other packages", "main.tf", call("acme/vpc/aws") + call("git::https://example.com/x//../b"), nil},
		{"a call with a variable", "main.tf", `module "b" { source = "../b/${var.x}" }`, []string{"../b/."}},
		{"a call that overrides another", "x_override.tf", call("../b"), []string{"../b"}},
		{"a call in JSON", "x.tofu.json", `{"module":{"a":{"source":"../b"}}}`, []string{"../b"}},
		{"a file", "main.tf", `x = file("${path.module}/../x.json")`, []string{"../x.json"}},
		{"a file in JSON", "x.tf.json", `{"locals":{"x":"${file(\"${path.module}/../x.json\")}"}}`, []string{"../."}},
		{"a path in JSON", "x.tf.json", `{"locals":{"x":"${path.module}/../x.json"}}`, []string{"../x.json"}},
		{"spaces in the reference", "main.tf", `x = "${ path.module }/../x"`, []string{"../x"}},
		{"a path that goes down first", "main.tf", `x = "${path.module}/a/../../x"`, []string{"a/../../x"}},
		{"the folder above", "main.tf", `x = fileset("${path.module}/..", "*.json")`, []string{".."}},
		{"the folder of a name that is evaluated", "main.tf", `x = "${path.module}/../x/${var.y}.json"`, []string{"../x/."}},
		{"the folder of a name with a directive", "main.tf", `x = "${path.module}/../x/y%{ if z }1%{ endif }"`, []string{"../x/."}},
		{"a path in a command", "main.tf", "x = <<EOT\n  sh ${path.module}/../x.sh --now\nEOT\n", []string{"../x.sh", "../x.sh --now"}},
		{"two in a line", "main.tf", `x = ["${path.module}/../x", "${path.module}/../y"]`, []string{"../x", "../y"}},
		{"the same twice", "main.tf", `x = ["${path.module}/../x", "${path.module}/../x"]`, []string{"../x"}},
		{"paths that stay in the folder", "main.tf", `x = "${path.module}/x..y/z"`, nil},
		{"other folders", "main.tf", `x = "${path.root}/../x"`, nil},
		{"a broken file", "main.tf", call("../b") + "}}} ${path.module}/../x\"", []string{"../b", "../x"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			got, err := upstream.PathsFrom(test.name, []byte(test.content))
			if err != nil || !slices.Equal(got, test.want) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func FuzzPathsInConfiguration(f *testing.F) {
	f.Add("main.tf", []byte(call("../b")))
	f.Add("main.tf.json", []byte(`{"x":"${path.module}/../x/${y}"}`))
	f.Fuzz(func(t *testing.T, name string, content []byte) {
		paths, err := upstream.PathsFrom(name, content)
		if err != nil || !slices.IsSorted(paths) {
			t.Errorf("got %q, %v", paths, err)
		}
		for _, p := range paths {
			if p == "" || p[0] == '/' || len(p) > 1024 {
				t.Errorf("it has %q", p)
			}
		}
	})
}
