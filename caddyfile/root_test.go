package caddyfile_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/modules/filestorage"
)

// A site without `root` in the block serves the folder that its own `root` directive sets without a matcher, and no other.
// The folders do not exist, so that the error says which one is served.
func TestRootOfTheSite(t *testing.T) {
	const none = "root: it is required: name the folder to serve"
	for _, test := range []struct{ rule, text, want string }{
		{"none", "http://a.example.com {\n\tterraform_registry\n}", none},
		{"of the block, whatever the site has", "http://a.example.com {\n\troot ROOT/files\n\tterraform_registry {\n\t\troot ROOT/own\n\t}\n}", "own"},
		{"of the site", "http://a.example.com {\n\troot ROOT/one\n\tterraform_registry\n}", "one"},
		{"of the site, written after it", "http://a.example.com {\n\tterraform_registry\n\troot * ROOT/one\n}", "one"},
		{"of the site, around it", "http://a.example.com {\n\troot ROOT/one\n\thandle /v1/* {\n\t\tterraform_registry\n\t}\n\thandle {\n\t\trespond hi\n\t}\n}", "one"},
		{"of the block around it, before that of the site", "http://a.example.com {\n\troot ROOT/one\n\thandle {\n\t\troot ROOT/two\n\t\tterraform_registry\n\t}\n}", "two"},
		{"of a site without a name", "http:// {\n\troot ROOT/one\n\tterraform_registry\n}", "one"},
		{"of a snippet", "(files) {\n\troot {args[0]}\n}\n\nhttp://a.example.com {\n\timport files ROOT/one\n\tterraform_registry\n}", "one"},
		{"of another block", "http://a.example.com {\n\thandle /files/* {\n\t\troot ROOT/files\n\t}\n\thandle {\n\t\tterraform_registry\n\t}\n}", none},
		{"of a site before", "http://a.example.com {\n\troot ROOT/private\n\tterraform_registry {\n\t\troot ROOT\n\t}\n}\n\nhttp://b.example.com {\n\tterraform_registry {\n\t\tui\n\t}\n}", none},
		{"of a site before, in a block", "http://a.example.com {\n\troot ROOT/private\n\trespond hi\n}\n\nhttp://b.example.com {\n\thandle {\n\t\tterraform_registry\n\t}\n}", none},
		{"of a site after", "http://a.example.com {\n\tterraform_registry\n}\n\nhttp://b.example.com {\n\troot ROOT/private\n}", none},
		{"of a named route before", "&(files) {\n\troot ROOT/files\n\trespond hi\n}\n\n&(registry) {\n\tterraform_registry\n}\n\nhttp://a.example.com {\n\tinvoke registry\n}", none},
		{"for some requests", "http://a.example.com {\n\troot /files/* ROOT/files\n\tterraform_registry\n}", none},
		{"for some requests, beside one for all", "http://a.example.com {\n\troot ROOT/one\n\troot /files/* ROOT/files\n\tterraform_registry\n}", "one"},
		{"of several, that before it", "http://a.example.com {\n\troute {\n\t\troot ROOT/one\n\t\tterraform_registry\n\t\troot ROOT/two\n\t}\n}", "one"},
		{"of several variables, none", "http://a.example.com {\n\troute {\n\t\tvars root ROOT/one\n\t\tterraform_registry\n\t\tvars root ROOT/two\n\t}\n}", none},
	} {
		t.Run(test.rule, func(t *testing.T) {
			root := filepath.ToSlash(t.TempDir())
			text := "{\n\tadmin off\n\tstorage file_system " + root + "\n}\n\n" + strings.ReplaceAll(test.text, "ROOT", root) + "\n"
			adapted, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(text), map[string]any{"filename": "Caddyfile"})
			if err != nil {
				t.Fatal(err)
			}
			config := new(caddy.Config)
			if err := caddy.StrictUnmarshalJSON(adapted, config); err != nil {
				t.Fatal(err)
			}
			want := test.want
			if want != none {
				want = "root: there is no folder " + filepath.FromSlash(root+"/"+want) + ":"
			}
			if err := caddy.Validate(config); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got error %v, want one with %q", err, want)
			}
		})
	}
}
