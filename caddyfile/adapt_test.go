package caddyfile_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/caddyauth"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"

	_ "github.com/caddy-terraform/caddy-terraform-registry/caddyfile"
)

// separator separates a Caddyfile from the expected result.
const separator = "----------\n"

// TestAdapt adapts every *.caddyfiletest: a Caddyfile, the separator, and either the
// expected JSON or a part of the expected error. A Caddyfile that `caddy fmt` would
// change fails as well.
func TestAdapt(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "testdata", "caddyfiles", "*.caddyfiletest"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no test files: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".caddyfiletest")
		t.Run(name, func(t *testing.T) {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			text := strings.ReplaceAll(string(content), "\r\n", "\n")
			caddyfile, want, found := strings.Cut(text, separator)
			if want = strings.TrimSpace(want); !found || want == "" {
				t.Fatalf("%s has no expected result", file)
			}
			adapted, warnings, err := caddyconfig.GetAdapter("caddyfile").
				Adapt([]byte(caddyfile), map[string]any{"filename": "Caddyfile"})
			for _, w := range warnings {
				t.Errorf("warning: %s", w)
			}
			if isError := strings.HasPrefix(name, "error_"); isError != (err != nil) {
				t.Fatalf("got error %v", err)
			} else if isError {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got error\n%v\nwant one with\n%s", err, want)
				}
				return
			}
			var got bytes.Buffer
			if err := json.Indent(&got, adapted, "", "\t"); err != nil {
				t.Fatal(err)
			}
			if got.String() != want {
				t.Errorf("got\n%s\nwant\n%s", got.String(), want)
			}
		})
	}
}
