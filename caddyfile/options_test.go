package caddyfile

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddy-terraform/caddy-terraform-registry/module"
)

func TestUnmarshal(t *testing.T) {
	tests := []struct {
		rule  string
		block string
		want  module.Handler
	}{
		{"root", `root /srv/terraform`, module.Handler{Root: "/srv/terraform"}},
		{"a quoted root has spaces", `root "/srv/my terraform"`, module.Handler{Root: "/srv/my terraform"}},
		{"placeholders stay for later", `root {env.ROOT}`, module.Handler{Root: "{env.ROOT}"}},
		{"providers", `providers mirror`, module.Handler{Providers: "mirror"}},
		{"modules", `modules /srv/modules`, module.Handler{Modules: "/srv/modules"}},
		{"keys", `keys /srv/keys`, module.Handler{Keys: "/srv/keys"}},
		{"fs", `fs archive`, module.Handler{FileSystem: "archive"}},
		{"hostnames add up", "hostname a.example.com b.example.com\nhostname c.example.com",
			module.Handler{Hostnames: []string{"a.example.com", "b.example.com", "c.example.com"}}},
		{"prefix", `prefix /terraform`, module.Handler{Prefix: "/terraform"}},
		{"public_url", `public_url https://a.example.com`, module.Handler{PublicURL: "https://a.example.com"}},
		{"signing_key without passphrase", `signing_key key.asc`,
			module.Handler{SigningKey: &module.SigningKey{File: "key.asc"}}},
		{"signing_key with passphrase", `signing_key key.asc "pass phrase"`,
			module.Handler{SigningKey: &module.SigningKey{File: "key.asc", Passphrase: "pass phrase"}}},
		{"signing_key off", `signing_key off`, module.Handler{SigningKey: &module.SigningKey{Off: true}}},
		{"signing_key in a file of that name", `signing_key ./off`,
			module.Handler{SigningKey: &module.SigningKey{File: "./off"}}},
		{"signatures prefer", `signatures prefer`, module.Handler{Signatures: "prefer"}},
		{"signatures require", `signatures require`, module.Handler{Signatures: "require"}},
		{"rescan", `rescan 90s`, module.Handler{Rescan: caddy.Duration(90 * time.Second)}},
		{"rescan in days", `rescan 1d`, module.Handler{Rescan: caddy.Duration(24 * time.Hour)}},
		{"rescan off", `rescan off`, module.Handler{Rescan: -1}},
		{"an empty block", ``, module.Handler{}},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			var got module.Handler
			if err := unmarshal(dispenser(test.block), &got); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestUnmarshalRefuses(t *testing.T) {
	tests := []struct {
		rule  string
		block string
		want  string
	}{
		{"an unknown option", `watch`, "unrecognized subdirective 'watch', the allowed ones are: root, providers,"},
		{"no root", `root`, "wrong argument count or unexpected line ending after 'root'"},
		{"two roots in a line", `root a b`, "wrong argument count"},
		{"two roots", "root a\nroot b", "root is already specified"},
		{"an empty root", `root ""`, "root is empty"},
		{"no hostname", `hostname`, "wrong argument count"},
		{"a signing key without its file", `signing_key`, "wrong argument count"},
		{"a signing key with an empty file", `signing_key ""`, "wrong argument count"},
		{"a signing key with three arguments", `signing_key key.asc pass phrase`, "wrong argument count"},
		{"a passphrase for no key", `signing_key off secret`, "wrong argument count"},
		{"two signing keys", "signing_key a.asc\nsigning_key off", "signing_key is already specified"},
		{"no signatures", `signatures`, "wrong argument count"},
		{"unknown signatures", `signatures always`, "signatures is either prefer or require, not 'always'"},
		{"no interval", `rescan`, "wrong argument count"},
		{"two intervals", `rescan 1m 2m`, "wrong argument count"},
		{"an interval without unit", `rescan 300`, "rescan: time: missing unit in duration"},
		{"an interval of nothing", `rescan 0s`, "rescan must be longer than nothing"},
		{"a negative interval", `rescan -1m`, "rescan must be longer than nothing"},
		{"an option with a block", "root /srv {\n\tproviders a\n}", "root does not have a block"},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			var h module.Handler
			err := unmarshal(dispenser(test.block), &h)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got error %v, want one with %q", err, test.want)
			}
			if !strings.Contains(err.Error(), "at Testfile:") {
				t.Errorf("error %q does not have the position", err)
			}
		})
	}
}

// TestEveryOptionIsOfTheHandler compares the names: a Caddyfile and JSON call
// an option the same.
func TestEveryOptionIsOfTheHandler(t *testing.T) {
	fields := make(map[string]bool)
	handler := reflect.TypeFor[module.Handler]()
	for i := range handler.NumField() {
		if tag := handler.Field(i).Tag.Get("json"); tag != "" {
			fields[strings.TrimSuffix(tag, ",omitempty")] = true
		}
	}
	for _, o := range options() {
		if !fields[o.name] {
			t.Errorf("%s is not a field of the handler", o.name)
		}
		delete(fields, o.name)
	}
	for name := range fields {
		t.Errorf("%s cannot be set in a Caddyfile", name)
	}
}

func dispenser(block string) *caddyfile.Dispenser {
	return caddyfile.NewTestDispenser("terraform_registry {\n" + block + "\n}")
}
