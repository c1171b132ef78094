package e2e_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// authorizationURL matches the URL that clients print if they cannot open a
// browser.
var authorizationURL = regexp.MustCompile(`https?://\S*[?&]code_challenge=\S*`)

// issuedToken matches a token of an issuer, from its beginning to the first dot. The random code of a
// sign-in, which an access log may have, has no dot.
var issuedToken = regexp.MustCompile(`eyJ[\w-]{10,}\.`)

// terraformLogin runs `terraform login`. The user agrees, and drive acts for the user
// in the browser at the URL. From then on, the workspace's clients use the token.
func terraformLogin(t *testing.T, c Client, ws *Workspace, host string, drive func(url string)) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the clients cannot be prevented from opening a real browser")
	}
	ws.readsHome(t)
	ctx, cancel := context.WithCancel(beforeDeadline(t))
	defer cancel()
	cmd := exec.CommandContext(ctx, c.Path, "login", host)
	cmd.Dir = ws.Dir
	// With an empty PATH no browser opens, and the URL is printed.
	cmd.Env = append(slices.Clone(ws.env), "PATH="+t.TempDir(), "TF_INPUT=1")
	cmd.Stdin = strings.NewReader("yes\n")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// The command waits forever if the browser does not come back.
	defer func() { cancel(); cmd.Wait() }()

	var printed strings.Builder
	driven := false
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		line := decoration.ReplaceAllString(lines.Text(), "")
		printed.WriteString(line + "\n")
		if url := authorizationURL.FindString(line); url != "" && !driven {
			driven = true
			drive(url)
		}
	}
	if err := cmd.Wait(); err != nil || !driven {
		t.Fatalf("%s login: %v, a browser was requested: %v\n%s", c.Name, err, driven, &printed)
	}
	return plain(printed.String())
}

// readsHome makes the clients read their configuration from the home folder.
// While TF_CLI_CONFIG_FILE is set, they ignore the token that a login has
// stored.
func (ws *Workspace) readsHome(t *testing.T) {
	t.Helper()
	ws.Setenv("TF_CLI_CONFIG_FILE", "")
	// Terraform creates this folder only when it checks for a newer release.
	if err := os.MkdirAll(filepath.Join(ws.home, ".terraform.d"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".terraformrc", ".tofurc"} {
		err := os.Symlink("cli.tfrc", filepath.Join(ws.home, name))
		if err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
	}
}

// StoredToken returns the token that a login to the host has stored.
func (ws *Workspace) StoredToken(t *testing.T, host string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(ws.home, ".terraform.d", "credentials.tfrc.json"))
	if err != nil {
		t.Fatal(err)
	}
	var stored struct {
		Credentials map[string]struct {
			Token string `json:"token"`
		} `json:"credentials"`
	}
	if err := json.Unmarshal(content, &stored); err != nil {
		t.Fatal(err)
	}
	token := stored.Credentials[host].Token
	if token == "" {
		t.Fatalf("no token is stored for %s: %s", host, content)
	}
	return token
}

// Login acts for a user in the browser that Terraform opens: it logs in, consents, and
// is sent back to Terraform.
func (o *OpenID) Login(t *testing.T, authorization, user string) {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	// Without a proxy: all of this is on loopback.
	browser := &http.Client{Jar: jar, Timeout: time.Minute, Transport: &http.Transport{}}
	defer browser.CloseIdleConnections()

	page := openPage(t)(browser.Get(authorization))
	action, fields := page.form(t, "login")
	fields.Set("login", user)
	fields.Set("password", "any")
	page = openPage(t)(browser.PostForm(action, fields))
	action, fields = page.form(t, "consent")
	answer, err := browser.PostForm(action, fields)
	if cutOffByClient(err) {
		return
	}
	page = openPage(t)(answer, err)

	if page.url.Hostname() != "localhost" || page.url.Path != "/login" || page.status != http.StatusOK ||
		!strings.Contains(page.body, "has returned an authentication code") {
		t.Fatalf("the browser ends at %s with %d:\n%s", page.url, page.status, page.body)
	}
}

// cutOffByClient reports whether the browser was sent back to the client and got no
// answer from it. The client passes the code on before it answers, and may close its
// server in between. What matters is how the client uses the code.
func cutOffByClient(err error) bool {
	failed, ok := errors.AsType[*url.Error](err)
	if !ok || !(errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)) {
		return false
	}
	at, err := url.Parse(failed.URL)
	return err == nil && at.Hostname() == "localhost" && at.Path == "/login"
}

// page is a page in a browser.
type page struct {
	url    *url.URL // after all redirects
	status int
	body   string
}

func openPage(t *testing.T) func(*http.Response, error) page {
	t.Helper()
	return func(answer *http.Response, err error) page {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return page{url: answer.Request.URL, status: answer.StatusCode, body: string(body)}
	}
}

var (
	formAction  = regexp.MustCompile(`<form [^>]*\baction="([^"]*)"`)
	hiddenField = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)"`)
)

// form returns the target of the page's form and its prefilled fields, which
// include what the provider prompts the user for.
func (p page) form(t *testing.T, prompt string) (string, url.Values) {
	t.Helper()
	fields := url.Values{}
	for _, m := range hiddenField.FindAllStringSubmatch(p.body, -1) {
		fields.Set(html.UnescapeString(m[1]), html.UnescapeString(m[2]))
	}
	m := formAction.FindStringSubmatch(p.body)
	if m == nil || fields.Get("prompt") != prompt {
		t.Fatalf("%s with %d does not prompt for %s:\n%s", p.url, p.status, prompt, p.body)
	}
	action, err := p.url.Parse(html.UnescapeString(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	return action.String(), fields
}

// Authenticates returns the options of a registry that accepts the provider's
// tokens.
func (o *OpenID) Authenticates(further ...string) []string {
	return slices.Concat([]string{"auth terraform_oidc " + o.Issuer + " {", "audience " + openIDAudience}, further, []string{"}"})
}

// devReadsAcme are rules that let everyone read one namespace, and a group another.
var devReadsAcme = []string{"access {", "allow anonymous read open", "allow group:dev read acme", "}"}

// logsIn returns the option that tells clients where users log in.
func logsIn(where ...string) []string {
	return slices.Concat([]string{"login {", "client terraform-cli"}, where,
		[]string{"ports 10000 10010", "scopes openid groups", "}"})
}

// A user logs in where the registry says, and may then read the namespaces of the
// user's groups (#98 to #103). From then on, the client sends the token.
func TestLogin(t *testing.T) {
	t.Parallel()
	openid := startOpenID(t)
	endpoints := openid.Endpoints(t)
	const host, byHand = "registry.example.com", "by-hand.example.com"
	registry := startRegistry(t,
		site(host, privateTree(t), slices.Concat(openid.Authenticates("groups groups"), devReadsAcme,
			logsIn("issuer "+openid.Issuer))...),
		site(byHand, newTree(t).Provider("acme/demo", "1.0.0"), slices.Concat(openid.Authenticates(), devReadsAcme,
			logsIn("authz "+endpoints.Authorization, "token "+endpoints.Token))...))

	eachClient(t, func(t *testing.T, c Client) {
		t.Run("a member of the group", func(t *testing.T) {
			ws := newWorkspace(t, registry, greeting(host+"/acme/demo", "1.0.0"))
			ws.Write(t, "module.tf", everyPrivateThing)
			expect(t, terraformLogin(t, c, ws, host, func(url string) { openid.Login(t, url, "alice") }), "Success!")

			token := ws.StoredToken(t, host)
			got := readClaims(t, token)
			want := claims{Key: got.Key, Issuer: openid.Issuer, Audience: openIDAudience, Subject: "alice",
				Groups: []string{"dev", "ops"}, Expires: got.Expires}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("the stored token says %+v, want %+v", got, want)
			}
			c.Run(t, ws, "init")
			expect(t, c.Run(t, ws, "apply", "-auto-approve"),
				`text = "hello world from 1.0.0"`, `vpc = "acme/vpc/aws 1.0.0 and subnet of acme/vpc/aws 1.1.0"`)

			c.Run(t, ws, "logout", host)
			expect(t, c.Refused(t, ws, "init", "-upgrade"), "error looking up module versions: 401 Unauthorized")
		})
		t.Run("a user who is not in the group", func(t *testing.T) {
			ws := newWorkspace(t, registry, greeting(host+"/acme/demo", "1.0.0"))
			terraformLogin(t, c, ws, host, func(url string) { openid.Login(t, url, "bob") })
			expect(t, c.Refused(t, ws, "init"), "does not have a provider named "+host+"/acme/demo")
			ws.Write(t, "main.tf", calling(host+"/acme/vpc/aws", "1.0.0"))
			expect(t, c.Refused(t, ws, "init"), "cannot be found in the module registry")
			ws.Write(t, "main.tf", greeting(host+"/open/demo", "1.0.0"))
			c.Run(t, ws, "init")
		})
		t.Run("a user who has not logged in", func(t *testing.T) {
			ws := newWorkspace(t, registry, greeting(host+"/acme/demo", "1.0.0"))
			expect(t, c.Refused(t, ws, "init"), "requires authentication credentials")
			ws.Write(t, "main.tf", calling(host+"/acme/vpc/aws", "1.0.0"))
			expect(t, c.Refused(t, ws, "init"), "error looking up module versions: 401 Unauthorized")
		})
		t.Run("at configured endpoints", func(t *testing.T) {
			ws := newWorkspace(t, registry, greeting(byHand+"/acme/demo", "1.0.0"))
			terraformLogin(t, c, ws, byHand, func(url string) { openid.Login(t, url, "alice") })
			c.Run(t, ws, "init")
		})
	})

	// Tokens of users are secret, too.
	for _, e := range registry.Log.Entries() {
		if issuedToken.MatchString(e.Line) {
			t.Errorf("a token is in the log: %s", e.Line)
		}
	}
}
