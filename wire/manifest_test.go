package wire_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

var manifests = []struct {
	rule, document string
	want           []string // none: refused
	says           string
}{
	{"one protocol", `{"version":1,"metadata":{"protocol_versions":["5.0"]}}`, []string{"5.0"}, ""},
	{"several", `{"version":1,"metadata":{"protocol_versions":["5.0","6.10"]}}`, []string{"5.0", "6.10"}, ""},
	{"unknown members are ignored", `{"version":1,"x":[],"metadata":{"protocol_versions":["6.0"],"y":{}}}`, []string{"6.0"}, ""},

	{"a number", `{"version":1,"metadata":{"protocol_versions":[5.0]}}`, nil, "not the JSON of a manifest"},
	{"no list", `{"version":1,"metadata":{"protocol_versions":"5.0"}}`, nil, "not the JSON of a manifest"},
	{"an empty list", `{"version":1,"metadata":{"protocol_versions":[]}}`, nil, "names no metadata.protocol_versions"},
	{"no metadata", `{"version":1}`, nil, "names no metadata.protocol_versions"},
	{"nothing known", `{}`, nil, "its version is 0"},
	{"another version", `{"version":2,"metadata":{"protocol_versions":["5.0"]}}`, nil, "its version is 2"},
	{"a major version alone", `{"version":1,"metadata":{"protocol_versions":["5"]}}`, nil, "MAJOR.MINOR"},
	{"three parts", `{"version":1,"metadata":{"protocol_versions":["5.0.0"]}}`, nil, "MAJOR.MINOR"},
	{"a leading zero", `{"version":1,"metadata":{"protocol_versions":["05.0"]}}`, nil, "MAJOR.MINOR"},
	{"a line feed", `{"version":1,"metadata":{"protocol_versions":["5.0\n"]}}`, nil, "MAJOR.MINOR"},
	{"a null", `{"version":1,"metadata":{"protocol_versions":[null]}}`, nil, "MAJOR.MINOR"},
	{"no JSON", `protocol_versions = ["5.0"]`, nil, "not the JSON of a manifest"},
	{"two documents", `{"version":1,"metadata":{"protocol_versions":["5.0"]}}{}`, nil, "not the JSON of a manifest"},
	{"a list", `[]`, nil, "not the JSON of a manifest"},
	{"null", `null`, nil, "its version is 0"},
	{"nothing", ``, nil, "not the JSON of a manifest"},
	{"endless nesting", strings.Repeat(`{"metadata":`, 20_000), nil, "not the JSON of a manifest"},
}

func TestDecodeManifest(t *testing.T) {
	for _, test := range manifests {
		t.Run(test.rule, func(t *testing.T) {
			got, err := wire.DecodeManifest([]byte(test.document))
			if test.want == nil {
				if err == nil || !strings.Contains(err.Error(), test.says) {
					t.Fatalf("it names %q, %v", got, err)
				}
				return
			}
			if err != nil || !slices.Equal(got, test.want) {
				t.Fatalf("it names %q, %v", got, err)
			}
		})
	}
}

// Clients can read the accepted protocol versions as a list of strings, and can parse
// each of them.
func FuzzDecodeManifest(f *testing.F) {
	for _, test := range manifests {
		f.Add([]byte(test.document))
	}
	form := regexp.MustCompile(`\A[0-9]+\.[0-9]+\z`)
	f.Fuzz(func(t *testing.T, document []byte) {
		protocols, err := wire.DecodeManifest(document)
		if err != nil {
			return
		}
		if !json.Valid(document) || len(protocols) == 0 {
			t.Fatalf("accepted as %q", protocols)
		}
		for _, p := range protocols {
			if !form.MatchString(p) {
				t.Fatalf("accepted is protocol %q", p)
			}
		}
	})
}
