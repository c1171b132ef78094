package e2e_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Tokens is a tokens file, created with `caddy terraform-registry token`.
type Tokens struct {
	File string
	t    *testing.T
}

func newTokens(t *testing.T) *Tokens {
	t.Helper()
	return &Tokens{File: filepath.Join(t.TempDir(), "tokens"), t: t}
}

// New creates a token.
func (k *Tokens) New(name string, flags ...string) string {
	k.t.Helper()
	token := strings.TrimSpace(k.run(append([]string{"new", name}, flags...)...))
	if len(token) < 20 || strings.ContainsAny(token, " \n") {
		k.t.Fatalf("the standard output of token new is %q, want a token alone", token)
	}
	return token
}

// Revoke revokes a token.
func (k *Tokens) Revoke(name string) { k.run("revoke", name) }

// Expire creates a token that has just expired.
func (k *Tokens) Expire(name string) {
	k.t.Helper()
	content, err := os.ReadFile(k.File)
	if err != nil {
		k.t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, name+" ") {
			lines[i] += " expires=" + time.Now().Add(-time.Minute).UTC().Format(time.RFC3339)
		}
	}
	writeFile(k.t, k.File, strings.Join(lines, "\n")+"\n")
}

func (k *Tokens) run(args ...string) string {
	k.t.Helper()
	binary, err := caddyBinary()
	if err != nil {
		k.t.Fatal(err)
	}
	cmd := exec.Command(binary, append([]string{"terraform-registry", "token"}, append(args, "--file", k.File)...)...)
	cmd.Env = []string{"HOME=" + k.t.TempDir()}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		k.t.Fatalf("%v: %v\n%s", cmd.Args, err, &stderr)
	}
	return string(out)
}

// privateTree has public files in the namespace open and private ones in acme,
// including mirrored ones.
func privateTree(t *testing.T) *Tree {
	t.Helper()
	acme := publisher(t, "acme")
	return newTree(t).
		Provider("acme/demo", "1.0.0", signedBy(acme)).
		Provider("open/demo", "1.0.0").
		Provider("other.example.com/acme/demo", "1.0.0", signedBy(acme)).
		Module("acme/vpc/aws", "1.0.0", asTarGz).
		Module("acme/vpc/aws", "1.1.0", asFolder).
		Keys("acme", acme).
		Keys("other.example.com/acme", acme)
}

// privately returns the options of a registry that requires these tokens.
func privately(k *Tokens) []string {
	return []string{
		"auth terraform_tokens " + k.File,
		"access {",
		"allow anonymous read open",
		"allow ci read acme other.example.com",
		"allow group:platform read *",
		"allow stranger read somewhere",
		"}",
	}
}

// everyPrivateThing is a configuration with a private provider, module and
// submodule.
const everyPrivateThing = `
module "vpc" {
  source  = "registry.example.com/acme/vpc/aws"
  version = "1.0.0"
}

module "subnet" {
  source  = "registry.example.com/acme/vpc/aws//modules/subnet"
  version = "1.1.0"
}

output "vpc" {
  value = "${module.vpc.text} and ${module.subnet.text}"
}
`

// GetAs requests a URL with a token.
func (r *Registry) GetAs(t *testing.T, token, url string) Response {
	t.Helper()
	return r.GetWith(t, http.Header{"Authorization": {"Bearer " + token}}, url)
}

// GetWith requests a URL with a header.
func (r *Registry) GetWith(t *testing.T, header http.Header, url string) Response {
	t.Helper()
	client, err := r.client()
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	return sendWith(t, client, header, url)
}

func sendWith(t *testing.T, client *http.Client, header http.Header, url string) Response {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header = header
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return Response{Status: answer.StatusCode, Header: answer.Header, Body: string(body)}
}

// Clients with a token get private files, wherever the token is configured. Others do
// not.
func TestPrivateRegistry(t *testing.T) {
	t.Parallel()
	files, tokens := privateTree(t), newTokens(t)
	ci, person, stranger := tokens.New("ci", "--expires", "1d"), tokens.New("alice", "--group", "platform"), tokens.New("stranger")
	expired := tokens.New("old")
	tokens.Expire("old")
	registry := startRegistry(t, site("registry.example.com", files, privately(tokens)...))

	eachClient(t, func(t *testing.T, c Client) {
		t.Run("a provider and modules, by an environment variable", func(t *testing.T) {
			for _, token := range []string{ci, person} {
				ws := newWorkspace(t, registry, greeting("registry.example.com/acme/demo", "1.0.0"))
				ws.Write(t, "module.tf", everyPrivateThing)
				ws.Setenv("TF_TOKEN_registry_example_com", token)
				c.Run(t, ws, "init")
				expect(t, c.Run(t, ws, "apply", "-auto-approve"),
					`text = "hello world from 1.0.0"`, `vpc = "acme/vpc/aws 1.0.0 and subnet of acme/vpc/aws 1.1.0"`)
			}
		})
		t.Run("the mirror, by the client's configuration", func(t *testing.T) {
			ws := newWorkspace(t, registry, greeting("other.example.com/acme/demo", "1.0.0"))
			ws.CLIConfig(t, `
provider_installation {
  network_mirror {
    url = "https://registry.example.com/v1/mirror/"
  }
}

credentials "registry.example.com" {
  token = "`+ci+`"
}
`)
			c.Run(t, ws, "init")
			expect(t, c.Run(t, ws, "apply", "-auto-approve"), `text = "hello world from 1.0.0"`)
		})
		t.Run("locking for three platforms", func(t *testing.T) {
			ws := newWorkspace(t, registry, greeting("registry.example.com/acme/demo", "1.0.0"))
			ws.Setenv("TF_TOKEN_registry_example_com", ci)
			lock := []string{"providers", "lock"}
			for _, platform := range threePlatforms() {
				lock = append(lock, "-platform="+platform)
			}
			c.Run(t, ws, lock...)
			if got := ws.Lock(t, "registry.example.com/acme/demo"); len(got.H1) != 3 || len(got.ZH) < 3 {
				t.Errorf("the lock file has %d h1: and %d zh:, want those of three platforms", len(got.H1), len(got.ZH))
			}
		})
		t.Run("a password of a .netrc file does no harm", func(t *testing.T) {
			ws := newWorkspace(t, registry, greeting("registry.example.com/acme/demo", "1.0.0"))
			ws.Write(t, "module.tf", everyPrivateThing)
			ws.Setenv("TF_TOKEN_registry_example_com", ci)
			ws.Netrc(t, "machine registry.example.com login user password secret\n")
			c.Run(t, ws, "init")
		})
		t.Run("a public provider needs no token", func(t *testing.T) {
			ws := newWorkspace(t, registry, greeting("registry.example.com/open/demo", "1.0.0"))
			c.Run(t, ws, "init")
		})

		for _, refused := range []struct{ rule, token, want string }{
			{"without a token", "", "requires authentication credentials"},
			{"with a token that does not exist", "tfr_wrong", "rejected the given authentication credentials"},
			{"with a token that has expired", expired, "rejected the given authentication credentials"},
			{"with a token without permission", stranger, "does not have a provider named registry.example.com/acme/demo"},
		} {
			t.Run(refused.rule, func(t *testing.T) {
				ws := newWorkspace(t, registry, greeting("registry.example.com/acme/demo", "1.0.0"))
				if refused.token != "" {
					ws.Setenv("TF_TOKEN_registry_example_com", refused.token)
				}
				expect(t, c.Refused(t, ws, "init"), refused.want)

				ws = newWorkspace(t, registry, calling("registry.example.com/acme/vpc/aws", "1.0.0"))
				if refused.token != "" {
					ws.Setenv("TF_TOKEN_registry_example_com", refused.token)
				}
				out := c.Refused(t, ws, "init")
				if refused.token == stranger {
					expect(t, out, "cannot be found in the module registry")
				} else {
					expect(t, out, "401 Unauthorized")
				}
			})
		}
	})

	t.Run("no secret is in the log", func(t *testing.T) {
		linked := false
		for _, e := range registry.Log.Entries() {
			linked = linked || e.access() && strings.Contains(e.Request.URI, "sig=")
			for _, secret := range []string{ci, person, stranger, expired} {
				if strings.Contains(e.Line, secret) {
					t.Errorf("a token is in the log: %s", e.Line)
				}
			}
			if _, rest, found := strings.Cut(e.Line, "sig="); found && !strings.HasPrefix(rest, "REDACTED") {
				t.Errorf("a link is in the log: %s", e.Line)
			}
		}
		if !linked {
			t.Error("no request with a signed link is in the access log")
		}
		named := slices.ContainsFunc(registry.Log.Accesses("registry.example.com"), func(e Entry) bool {
			return strings.Contains(e.Line, `"user_id":"ci"`)
		})
		if !named {
			t.Error("the access log does not name the user")
		}
	})
}

// A revoked token is refused, and a new one accepted, within a second. Other
// tokens are not affected.
func TestTokensChangeWhileServing(t *testing.T) {
	t.Parallel()
	files, tokens := privateTree(t), newTokens(t)
	ci, person := tokens.New("ci"), tokens.New("alice", "--group", "platform")
	registry := startRegistry(t, site("registry.example.com", files, privately(tokens)...))
	status := func(token string) int {
		return registry.GetAs(t, token, "https://registry.example.com/v1/providers/acme/demo/versions").Status
	}
	if got := status(ci); got != http.StatusOK {
		t.Fatalf("before: got %d", got)
	}
	tokens.Revoke("ci")
	revoked := time.Now()
	eventually(t, "the token is refused", func() bool { return status(ci) == http.StatusUnauthorized })
	if took := time.Since(revoked); took > 5*time.Second {
		t.Errorf("it took %s until the token was refused", took)
	}
	if got := status(person); got != http.StatusOK {
		t.Errorf("another token: got %d", got)
	}
	again := tokens.New("ci")
	eventually(t, "the new token is accepted", func() bool { return status(again) == http.StatusOK })
}

// A link is valid for its file, at its registry, until it expires.
func TestLinks(t *testing.T) {
	t.Parallel()
	files, tokens := privateTree(t), newTokens(t)
	ci := tokens.New("ci")
	registry := startRegistry(t, site("registry.example.com", files, append(privately(tokens), "links 2s")...))
	const folder = "https://registry.example.com/v1/mirror/other.example.com/acme/demo/"
	link := func() string {
		answer := registry.GetAs(t, ci, folder+"1.0.0.json")
		var document struct {
			Archives map[string]struct{ URL string }
		}
		if err := json.Unmarshal([]byte(answer.Body), &document); err != nil {
			t.Fatalf("%v: %s", err, answer.Body)
		}
		return document.Archives[thisPlatform].URL
	}
	name, query, _ := strings.Cut(link(), "?")
	other := strings.Replace(name, thisPlatform, "darwin_arm64", 1)
	if other == name {
		other = strings.Replace(name, thisPlatform, "linux_amd64", 1)
	}
	if got := registry.Get(t, folder+other+"?"+query); got.Status != http.StatusForbidden {
		t.Errorf("used for another file: got %d %s, want 403", got.Status, got.Body)
	}
	eventually(t, "the link is refused", func() bool {
		got := registry.Get(t, folder+name+"?"+query)
		if got.Status == http.StatusOK {
			return false
		}
		if got.Status != http.StatusForbidden || !strings.Contains(got.Body, "this link has expired: run the command again") {
			t.Fatalf("after it has expired: got %d %s", got.Status, got.Body)
		}
		return true
	})
	// A client that requests the document again gets a new link.
	if got := registry.Get(t, folder+link()); got.Status != http.StatusOK {
		t.Errorf("a new link: got %d %s", got.Status, got.Body)
	}
}
