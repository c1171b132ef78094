package e2e_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// The instructions in docs/private.md work as they are written.

// privateCaddyfiles returns the Caddyfiles for the four ways in the document.
func privateCaddyfiles(t *testing.T) (tokens, openid, forwardAuth, oauth2Proxy string) {
	t.Helper()
	blocks := codeBlocks(t, "docs/private.md", "caddyfile")
	if len(blocks) != 4 {
		t.Fatalf("docs/private.md has %d Caddyfiles, want four", len(blocks))
	}
	return blocks[0], blocks[1], blocks[2], blocks[3]
}

// substitute replaces names in a document with the names of the test.
func substitute(t *testing.T, text string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("the document no longer has %s:\n%s", pairs[i], text)
		}
		text = strings.ReplaceAll(text, pairs[i], pairs[i+1])
	}
	return text
}

func TestPrivateDocsCaddyfiles(t *testing.T) {
	t.Parallel()
	k := newTokens(t)
	k.New("ci")
	tokens, openid, forwardAuth, oauth2Proxy := privateCaddyfiles(t)
	root := t.TempDir()
	validateCaddyfile(t, substitute(t, tokens, "/srv", root, "/etc/caddy-terraform-registry/tokens", k.File))
	validateCaddyfile(t, substitute(t, openid, "/srv", root))
	validateCaddyfile(t, substitute(t, forwardAuth, "/srv", root))
	validateCaddyfile(t, substitute(t, oauth2Proxy, "/srv", root, "/etc/caddy-terraform-registry/tokens", k.File))
}

// The steps for tokens work in their order in the document: each step finds the results
// of the previous ones.
func TestPrivateDocsTokensInOrder(t *testing.T) {
	t.Parallel()
	binary, err := caddyBinary()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	caddyfile, tokens := filepath.Join(dir, "Caddyfile"), filepath.Join(dir, "tokens")
	here := strings.NewReplacer("/etc/caddy-terraform-registry/Caddyfile", caddyfile, "/etc/caddy-terraform-registry/tokens", tokens, "/srv", dir)
	var made, loaded, asked bool
	for _, block := range codeBlocks(t, "docs/private.md", "(?:sh|caddyfile)") {
		if strings.Contains(block, "terraform_registry {") {
			if loaded {
				break // the block of the next section
			}
			loaded = true
			writeFile(t, caddyfile, here.Replace(block))
			validateCaddyfile(t, here.Replace(block))
			continue
		}
		for line := range strings.Lines(block) {
			command, isOurs := strings.CutPrefix(strings.TrimSpace(line), "caddy-terraform-registry ")
			if !isOurs || strings.HasPrefix(command, "reload ") {
				continue
			}
			command = regexp.MustCompile(`\d{4}-\d\d-\d\d`).ReplaceAllString(here.Replace(command), time.Now().AddDate(1, 0, 0).Format(time.DateOnly))
			cmd := exec.Command(binary, append([]string{"terraform-registry"}, strings.Fields(command)...)...)
			cmd.Env = append(os.Environ(), "HOME="+dir)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("caddy-terraform-registry %s: %v\n%s", command, err, out)
			}
			made = made || strings.HasPrefix(command, "token new")
			asked = asked || strings.HasPrefix(command, "access") && strings.Contains(string(out), "allowed by rule")
		}
	}
	if !made || !loaded || !asked {
		t.Errorf("a step is missing: tokens %v, configuration %v, rules %v", made, loaded, asked)
	}
}

// The example of the access command uses the first Caddyfile.
func TestPrivateDocsAccessCommand(t *testing.T) {
	t.Parallel()
	binary, err := caddyBinary()
	if err != nil {
		t.Fatal(err)
	}
	k := newTokens(t)
	k.New("ci")
	caddyfile, _, _, _ := privateCaddyfiles(t)
	file := filepath.Join(t.TempDir(), "Caddyfile")
	writeFile(t, file, substitute(t, caddyfile, "/srv", t.TempDir(), "/etc/caddy-terraform-registry/tokens", k.File))
	for _, block := range codeBlocks(t, "docs/private.md", "sh") {
		command, want, found := strings.Cut(block, "\n")
		command, shown := strings.CutPrefix(command, "$ caddy-terraform-registry ")
		if !found || !shown {
			continue
		}
		cmd := exec.Command(binary, append([]string{"terraform-registry"}, strings.Fields(substitute(t, command, "/etc/caddy-terraform-registry/Caddyfile", file))...)...)
		out, err := cmd.Output()
		if err != nil || string(out) != want {
			t.Errorf("caddy-terraform-registry %s: %v\n%swant\n%s", command, err, out, want)
		}
		return
	}
	t.Error("docs/private.md shows no command with its output")
}

// authorisation is a service that knows some users by their token, and sends a
// login page to all other requests.
type authorisation map[string]struct{ user, groups string }

func (a authorisation) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	account, known := a[token]
	if r.URL.Path != "/api/verify" || !known {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusUnauthorized)
		w.Write([]byte("<form>Who are you?</form>"))
		return
	}
	w.Header().Set("Remote-User", account.user)
	if account.groups != "" {
		w.Header().Set("Remote-Groups", account.groups)
	}
}

// The third Caddyfile works.
func TestPrivateDocsForwardAuth(t *testing.T) {
	t.Parallel()
	service := httptest.NewServer(authorisation{
		"member":   {"alice", "dev,platform"},
		"outsider": {"bob", "dev"},
		"loner":    {"carol", ""},
	})
	t.Cleanup(service.Close)
	address, err := url.Parse(service.URL)
	if err != nil {
		t.Fatal(err)
	}
	const host = "registry.example.com"
	_, _, block, _ := privateCaddyfiles(t)
	block = substitute(t, block, "/srv", privateTree(t).Dir, "auth.internal:9091", address.Host)
	registry := startRegistry(t, documentedSite(t, block))
	registry.Log.Wait(t, "it has scanned its tree", Entry.scan)

	eachClient(t, func(t *testing.T, c Client) {
		ws := newWorkspace(t, registry, greeting(host+"/acme/demo", "1.0.0"))
		ws.Write(t, "module.tf", everyPrivateThing)
		ws.Setenv("TF_TOKEN_registry_example_com", "member")
		c.Run(t, ws, "init")
		expect(t, c.Run(t, ws, "apply", "-auto-approve"),
			`text = "hello world from 1.0.0"`, `vpc = "acme/vpc/aws 1.0.0 and subnet of acme/vpc/aws 1.1.0"`)

		for token, want := range map[string]string{
			"":         "requires authentication credentials",
			"wrong":    "rejected the given authentication credentials",
			"outsider": "does not have a provider named " + host + "/acme/demo",
		} {
			ws := newWorkspace(t, registry, greeting(host+"/acme/demo", "1.0.0"))
			if token != "" {
				ws.Setenv("TF_TOKEN_registry_example_com", token)
			}
			expect(t, c.Refused(t, ws, "init"), want)
		}
	})

	link := registry.Download(t, host, "member").Package
	unsigned, _, _ := strings.Cut(link, "?")
	const discovery = "https://" + host + "/.well-known/terraform.json"
	const document = "https://" + host + "/v1/providers/acme/demo/versions"
	for _, test := range []struct {
		rule       string
		url, token string
		named      bool // the client sends the headers itself
		want       int
	}{
		{"discovery without a token", discovery, "", false, http.StatusOK},
		{"discovery with a token", discovery, "member", false, http.StatusOK},
		{"discovery with a wrong token", discovery, "wrong", false, http.StatusOK},
		{"a document with a token", document, "member", false, http.StatusOK},
		{"a document without", document, "", false, http.StatusUnauthorized},
		{"a document with a wrong token", document, "wrong", false, http.StatusUnauthorized},
		{"the client's own headers are ignored", document, "", true, http.StatusUnauthorized},
		{"also with a wrong token", document, "wrong", true, http.StatusUnauthorized},
		{"also with the token of another user", document, "outsider", true, http.StatusNotFound},
		{"also with the token of a user without groups", document, "loner", true, http.StatusNotFound},
		{"a link", link, "", false, http.StatusOK},
		{"a link, by a client that sends its token", link, "member", false, http.StatusOK},
		{"a file without a link", unsigned, "", false, http.StatusUnauthorized},
		{"a file without a link, with the headers", unsigned, "", true, http.StatusUnauthorized},
	} {
		header := http.Header{}
		if test.token != "" {
			header.Set("Authorization", "Bearer "+test.token)
		}
		if test.named {
			header.Set("Remote-User", "x")
			header.Set("Remote-Groups", "platform")
		}
		if got := registry.GetWith(t, header, test.url); got.Status != test.want {
			t.Errorf("%s: got %d %.200s, want %d", test.rule, got.Status, got.Body, test.want)
		}
	}
}

// The fourth Caddyfile works: people sign in at a proxy before the pages, and clients
// use tokens that the proxy never sees.
func TestPrivateDocsOAuth2Proxy(t *testing.T) {
	t.Parallel()
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		session, _ := r.Cookie("_oauth2_proxy")
		switch {
		case r.URL.Path == "/oauth2/sign_in":
			w.Write([]byte("<form>Who are you?</form>"))
		case r.URL.Path != "/oauth2/auth" || r.Header.Get("Authorization") != "":
			w.WriteHeader(http.StatusInternalServerError) // no request leads here
		case session == nil:
			w.WriteHeader(http.StatusUnauthorized)
		default:
			w.Header().Set("X-Auth-Request-Email", session.Value+"@example.com")
			w.Header().Set("X-Auth-Request-Groups", "dev,platform")
			w.WriteHeader(http.StatusAccepted)
		}
	}))
	t.Cleanup(proxy.Close)
	const host = "registry.example.com"
	tokens := newTokens(t)
	ci := tokens.New("ci")
	_, _, _, block := privateCaddyfiles(t)
	block = substitute(t, block, "/srv", privateTree(t).Dir, "/etc/caddy-terraform-registry/tokens", tokens.File, "oauth2-proxy.internal:4180", hostOf(t, proxy.URL))
	registry := startRegistry(t, documentedSite(t, block))
	registry.Log.Wait(t, "it has scanned its tree", Entry.scan)
	client, err := registry.client()
	if err != nil {
		t.Fatal(err)
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	const page, document = "/modules/acme/vpc/aws", "/v1/modules/acme/vpc/aws/versions"
	session := http.Header{"Cookie": {"_oauth2_proxy=alice"}}
	for _, test := range []struct {
		rule, path string
		header     http.Header
		want       int
	}{
		{"a page without a session leads to the proxy", page, http.Header{}, http.StatusFound},
		{"whose form is there", "/oauth2/sign_in?rd=https://" + host + page, http.Header{}, http.StatusOK},
		{"a page with a session", page, session, http.StatusOK},
		{"a document with a token", document, http.Header{"Authorization": {"Bearer " + ci}}, http.StatusOK},
		{"a document with a session", document, session, http.StatusUnauthorized},
		{"the headers of a client", document, http.Header{"X-Auth-Request-Email": {"root"}, "X-Auth-Request-Groups": {"platform"}}, http.StatusUnauthorized},
		{"discovery", "/.well-known/terraform.json", http.Header{}, http.StatusOK},
	} {
		if got := sendWith(t, client, test.header, "https://"+host+test.path); got.Status != test.want {
			t.Errorf("%s: got %d %v %.200s, want %d", test.rule, got.Status, got.Header, got.Body, test.want)
		}
	}
	got := sendWith(t, client, session, "https://"+host+page)
	link := hrefWith(t, got.Body, "/v1/modules/acme/vpc/aws/")
	if file := sendWith(t, client, http.Header{}, "https://"+host+link); !strings.Contains(got.Body, "alice@example.com") || file.Status != http.StatusOK {
		t.Errorf("the package of the page: %d %s", file.Status, file.Body)
	}
	for _, e := range registry.Log.Entries() {
		if strings.Contains(e.Line, "people cannot sign in") {
			t.Errorf("the log says that nobody can sign in: %s", e.Line)
		}
	}
}
