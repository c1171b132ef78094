package wire_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

func TestDecodeModuleVersions(t *testing.T) {
	for _, test := range []struct{ rule, document, want string }{
		{"newest first, each once", `{"modules":[{"versions":[{"version":"1.9.0"},{"version":"1.10.0"},{"version":"1.9.0"}]}]}`, "[1.10.0 1.9.0]"},
		{"the plain one of several builds first", `{"modules":[{"versions":[{"version":"1.0.0+a"},{"version":"1.0.0"},{"version":"1.0.0+b"}]}]}`, "[1.0.0 1.0.0+b 1.0.0+a]"},
		{"in the form in which clients request them", `{"modules":[{"versions":[{"version":"v1.2"},{"version":"1.2.0"},{"version":"2.0.0+b.1"}]}]}`, "[2.0.0+b.1 1.2.0]"},
		{"other values than versions are skipped", `{"modules":[{"versions":[{"version":"latest"},{"version":1},null,7,{"version":"1.0.0"}]}]}`, "[1.0.0]"},
		{"the first module counts", `{"modules":[{"versions":[{"version":"1.0.0"}]},{"versions":[{"version":"2.0.0"}]},3]}`, "[1.0.0]"},
		{"the rest is skipped", `{"meta":{"a":[1]},"modules":[{"source":"acme/vpc/aws","versions":[{"version":"1.0.0","root":{"providers":[]},"submodules":[{}]}]}]}`, "[1.0.0]"},
		{"no versions", `{"modules":[{"versions":[]}]}`, "[]"},
		{"null", `{"modules":[{"versions":null}]}`, "[]"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			got, err := wire.DecodeModuleVersions([]byte(test.document))
			if err != nil || fmt.Sprint(got) != test.want {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

func TestModuleVersionsAreRefused(t *testing.T) {
	for _, document := range []string{``, `[]`, `{}`, `{"modules":[]}`, `{"modules":null}`, `{"modules":{}}`, `{"modules":[1]}`, `{"modules":[{"versions":{}}]}`, `{"modules":[{"versions":[`, `<html>`} {
		if got, err := wire.DecodeModuleVersions([]byte(document)); err == nil {
			t.Errorf("%s is read as %v", document, got)
		}
	}
	many := `{"modules":[{"versions":[` + strings.Repeat(`{"version":"1.0.0"},`, wire.MaxVersions) + `{"version":"1.0.0"}]}]}`
	if _, err := wire.DecodeModuleVersions([]byte(many)); !errors.Is(err, wire.ErrTooManyVersions) {
		t.Errorf("too many versions: %v", err)
	}
}

func FuzzDecodeModuleVersions(f *testing.F) {
	f.Add([]byte(`{"modules":[{"versions":[{"version":"v1.2"},{"version":"1.2.0"}]}]}`))
	f.Fuzz(func(t *testing.T, document []byte) {
		list, err := wire.DecodeModuleVersions(document)
		if err != nil {
			return
		}
		versions := make([]wire.ModuleVersion, len(list))
		for i, v := range list {
			versions[i].Version = v
		}
		again, err := wire.DecodeModuleVersions(text(wire.EncodeModuleVersions(versions, "")))
		if err != nil || fmt.Sprint(again) != fmt.Sprint(list) {
			t.Errorf("%v is read as %v, %v", list, again, err)
		}
	})
}
