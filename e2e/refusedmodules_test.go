package e2e_test

import (
	"path"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
)

// If the registry refuses a module because clients cannot parse a file, clients refuse
// it for that file. Clients accept the files that they do not read, or can parse.
func TestClientsRefuseWhatTheRegistryRefuses(t *testing.T) {
	for _, test := range []struct {
		rule, file, content string
		refused             bool
	}{
		{"an argument without a value", "a.tf", "variable \"a\" {\n  type =\n}\n", true},
		{"an unfinished sum", "a.tf", "locals {\n  a = 1 +\n}\n", true},
		{"an argument that is there twice", "a.tf", "locals {\n  a = 1\n  a = 2\n}\n", true},
		{"a block that does not end", "a.tf", "locals {\n  a = 1\n", true},
		{"JSON that does not end", "a.tf.json", `{"locals": {"a": 1}`, true},
		{"JSON that is no object", "a.tf.json", `"a"`, true},
		{"JSON with a block twice", "a.tf.json", `{"//": "x", "locals": {"a": 1}, "locals": {"b": 1}}`, false},
		{"a file of OpenTofu", "a.tofu", "locals {\n  a = 1 +\n}\n", true},
		{"a file of OpenTofu in JSON", "a.tofu.json", `{`, true},
		{"an editor's file", "a.tf~", "a =", false},
		{"a hidden file", ".a.tf", "a =", false},
		{"values of variables", "a.tfvars", "a =", false},
		{"a BOM and the ends of lines that Windows writes", "a.tf", "\uFEFFlocals {\r\n  a = 1\r\n}\r\n", false},
	} {
		t.Run(test.rule, func(t *testing.T) {
			var c moduledoc.Collector
			if err := c.Add(test.file, strings.NewReader(test.content)); err != nil {
				t.Fatal(err)
			}
			if refused := len(c.Package("").Refused) > 0; refused != test.refused {
				t.Fatalf("the registry refuses it: %t", refused)
			}
			eachClient(t, func(t *testing.T, c Client) {
				ws := newWorkspace(t, &Registry{Proxy: newProxy(t)}, "module \"m\" {\n  source = \"./m\"\n}\n")
				ws.Write(t, "m/main.tf", "# a module\n")
				ws.Write(t, path.Join("m", test.file), test.content)
				if test.refused && (c.Name == "tofu" || !strings.Contains(test.file, ".tofu")) {
					expect(t, c.Refused(t, ws, "get"), test.file)
				} else {
					c.Run(t, ws, "get")
				}
			})
		})
	}
}
