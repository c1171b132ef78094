package command

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/access/oidc/oidctest"
	"github.com/caddy-terraform/caddy-terraform-registry/access/tokenfile"
	"github.com/caddy-terraform/caddy-terraform-registry/command/commandtest"
)

func TestTokenInspect(t *testing.T) {
	issuer, gone := oidctest.NewIssuer(t), oidctest.NewIssuer(t)
	gone.Close()
	claimsOf := func(i *oidctest.Issuer) string {
		return fmt.Sprintf(`{"provider":"terraform_oidc","issuer":%q,"audience":["registry"],"require":{"team":["a*"]}}`, i.URL)
	}
	file := `{"provider":"terraform_tokens","file":"/srv/tokens"}`
	registry := func(root, rules string, auth ...string) string {
		return `{"handler":"terraform_registry","root":"/srv/` + root + `","auth":[` + strings.Join(auth, ",") + `]` + rules + `}`
	}
	const rules = `,"access":{"rules":[
		{"effect":"allow","who":"anonymous","right":"read","addresses":["acme/demo"]},
		{"effect":"allow","who":"bob","right":"read","addresses":["*"]},
		{"effect":"deny","who":"anonymous","right":"read","addresses":["acme/secret"]},
		{"effect":"allow","who":"group:dev","right":"publish","addresses":["acme"]}]}`
	ruled := registry("open", rules, claimsOf(issuer), file)
	team := map[string]any{"team": "ab", "groups": []string{"dev"}}
	with := func(changes map[string]any) string {
		claims := maps.Clone(team)
		maps.Copy(claims, changes)
		return issuer.Mint(claims)
	}
	forged := with(nil)
	forged = forged[:strings.LastIndex(forged, ".")+1] + strings.Repeat("A", 86)

	for _, test := range []struct {
		rule, token string
		routes      []string
		args        string
		status      int
		has, lacks  []string
	}{
		{rule: "an accepted one: the subject, the groups, and the rules about these", token: with(nil), routes: []string{ruled}, status: 0,
			has: []string{"auth terraform_oidc " + issuer.URL + " of ", "accepted: subject alice, groups dev.",
				"rule 1: allow anonymous read acme/demo\n", "rule 4: allow group:dev publish acme\n", "sub     alice\n", `groups  ["dev"]` + "\n", ", 59 minutes from now"},
			lacks: []string{"rule 2", "rule 3"}},
		{rule: "the rule that auth implies", token: with(nil), routes: []string{registry("open", "", claimsOf(issuer))}, status: 0,
			has: []string{"allow authenticated read *, which auth implies without access"}},
		{rule: "no rule", token: with(nil), routes: []string{registry("open", `,"access":{"rules":[{"effect":"allow","who":"bob","right":"read","addresses":["*"]}]}`, claimsOf(issuer))}, status: 0,
			has: []string{"No rule is about that subject."}},
		{rule: "another issuer", token: with(map[string]any{"iss": "https://other.example.com"}), routes: []string{ruled}, status: 1,
			has: []string{"iss     https://other.example.com\n", "The token is refused: it is of another issuer."}},
		{rule: "another audience", token: with(map[string]any{"aud": []string{"other"}}), routes: []string{ruled}, status: 1,
			has: []string{`The token is refused: its audience is ["other"], not one of ["registry"].`}},
		{rule: "expired", token: with(map[string]any{"exp": 1000000000}), routes: []string{ruled}, status: 1,
			has: []string{"exp     2001-09-09T01:46:40Z, ", "token is expired"}},
		{rule: "a forged signature", token: forged, routes: []string{ruled}, status: 1, has: []string{"none of the issuer's keys made its signature"}},
		{rule: "a claim that is required", token: with(map[string]any{"team": "b"}), routes: []string{ruled}, status: 1, has: []string{"team    b\n", `its claim "team" does not have one of the required values`}},
		{rule: "no subject", token: with(map[string]any{"sub": ""}), routes: []string{ruled}, status: 1, has: []string{`its claim "sub", which is to name the subject, is missing`}},
		{rule: "one of a tokens file", token: "tfr_good", routes: []string{ruled}, status: 0,
			has: []string{"The token is not a JWT.", "auth terraform_tokens ", "accepted: subject jane, groups dev, ops."}, lacks: []string{"CLAIM"}},
		{rule: "an expired one of a file", token: "tfr_expired", routes: []string{ruled}, status: 1, has: []string{"The token has expired: joe, at 2001-01-01T00:00:00Z."}},
		{rule: "an unknown one", token: "tfr_X", routes: []string{ruled}, status: 1, has: []string{"The token is unknown or revoked."}},
		{rule: "an issuer that is away", token: gone.Mint(team), routes: []string{registry("open", "", claimsOf(gone))}, status: 2, has: []string{"The issuer of tokens is unavailable"}},
		{rule: "one that is away is no matter, if another accepts it", token: with(nil), routes: []string{registry("open", "", claimsOf(issuer), claimsOf(gone))}, status: 0},
		{rule: "several registries", token: with(nil), routes: []string{ruled, registry("closed", "", file)}, status: 0, has: []string{"/open\n", "/closed\n"}},
		{rule: "the one of a root", token: with(nil), routes: []string{ruled, registry("closed", "", file)}, args: "--root ROOT/closed", status: 1, has: []string{"/closed\n"}, lacks: []string{"/open\n"}},
		{rule: "another root", token: "x", routes: []string{ruled}, args: "--root /nowhere", status: 2, has: []string{"--root: no registry with auth"}},
		{rule: "no registry that knows tokens", token: "x", routes: []string{`{"handler":"terraform_registry","root":"/srv/open"}`}, status: 2, has: []string{"has auth terraform_oidc or auth terraform_tokens"}},
		{rule: "no token", token: "", routes: []string{ruled}, status: 2, has: []string{"standard input is empty"}},
		{rule: "two words", token: "a b", routes: []string{ruled}, status: 2, has: []string{"has a space or line break in it"}},
		{rule: "the token as an argument", token: "a", routes: []string{ruled}, args: "SECRET", status: 2, has: []string{"unexpected argument: the token is read from standard input"}},
		{rule: "the token as the name of its file", token: "a", routes: []string{ruled}, args: "--token-file SECRET", status: 2, has: []string{"--token-file: there is no such file"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			routes := make([]string, len(test.routes))
			for i, r := range test.routes {
				routes[i] = onSiteRoute(fmt.Sprintf("r%d.example.com", i), r)
			}
			config := configFile(t, routes...)
			dir := rootsOf(t, config)
			for secret, entry := range map[string]tokenfile.Entry{
				"tfr_good": {Name: "jane", Groups: []string{"dev", "ops"}}, "tfr_expired": {Name: "joe", Expires: time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)},
			} {
				if err := tokenfile.Add(filepath.Join(dir, "tokens"), entry, secret); err != nil {
					t.Fatal(err)
				}
			}
			cmd := tokenCommand()
			cmd.SetIn(strings.NewReader(test.token + "\n"))
			out, errs, err := commandtest.Run(t.Context(), cmd, append([]string{"inspect", "--config", config}, strings.Fields(strings.ReplaceAll(test.args, "ROOT", dir))...)...)
			if status := commandtest.Status(err); status != test.status {
				t.Errorf("status %d: %v", status, err)
			}
			for _, part := range test.has {
				if !strings.Contains(out+errs, part) {
					t.Errorf("%q is missing in\n%s%s", part, out, errs)
				}
			}
			for _, part := range append(test.lacks, "SECRET") {
				if strings.Contains(out+errs, part) {
					t.Errorf("%q is in\n%s%s", part, out, errs)
				}
			}
			if len(test.token) > 3 && strings.Contains(out+errs, test.token) {
				t.Errorf("the token is in\n%s%s", out, errs)
			}
		})
	}
}

// The token can also come from a file, as PowerShell writes it.
func TestTokenInspectOfAFile(t *testing.T) {
	issuer := oidctest.NewIssuer(t)
	config := configFile(t, onSiteRoute("registry.example.com", fmt.Sprintf(
		`{"handler":"terraform_registry","root":"/srv/open","auth":[{"provider":"terraform_oidc","issuer":%q,"audience":["registry"]}]}`, issuer.URL)))
	file := commandtest.Write(t, t.TempDir(), "token", "\ufeff"+issuer.Mint(nil)+"\r\n")
	cmd := tokenCommand()
	cmd.SetIn(errorReader{})
	if out, errs, err := commandtest.Run(t.Context(), cmd, "inspect", "--config", config, "--token-file", file); err != nil || !strings.Contains(out, "accepted: subject alice") {
		t.Errorf("got %v, %s%s", err, out, errs)
	}
}

// An errorReader must not be read.
type errorReader struct{}

func (errorReader) Read([]byte) (int, error) { return 0, errors.New("it is read") }
