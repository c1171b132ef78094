package command

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/spf13/cobra"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

func TestCommandServesHTTP1Only(t *testing.T) {
	tests := []struct {
		rule           string
		domain, listen string
		internalCerts  bool
	}{
		{"plain HTTP", "", ":8080", false},
		{"a certificate of a public authority", "registry.example.com", "", false},
		{"a certificate of Caddy's own authority", "", "localhost:8443", true},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			s, err := planSite(test.domain, test.listen, test.internalCerts)
			if err != nil {
				t.Fatal(err)
			}
			var app caddyhttp.App
			config := s.config(index.Directories{Root: t.TempDir()}, false, false)
			if err := json.Unmarshal(config.AppsRaw["http"], &app); err != nil {
				t.Fatal(err)
			}
			if got := app.Servers["registry"].Protocols; !slices.Equal(got, []string{"h1"}) {
				t.Errorf("the server speaks %q, want h1 only", got)
			}
		})
	}
}

// A tree need not have all of its folders, nor any, to be served.
func TestServingATreeWithoutAllFolders(t *testing.T) {
	mirror := t.TempDir()
	for _, args := range [][]string{
		{"--root", t.TempDir()},
		{"--root", t.TempDir(), "--providers", mirror},
	} {
		cmd := new(cobra.Command)
		addTreeFlags(cmd)
		if err := cmd.ParseFlags(args); err != nil {
			t.Fatal(err)
		}
		fl := caddycmd.Flags{FlagSet: cmd.Flags()}
		located, err := treeFlags(fl)
		if err != nil {
			t.Fatal(err)
		}
		s, err := planSite("", "127.0.0.1:8080", false)
		if err != nil {
			t.Fatal(err)
		}
		if err := caddy.Validate(s.config(namedDirectories(fl, located.Root), false, false)); err != nil {
			t.Errorf("%q: %v", args, err)
		}
	}
}
