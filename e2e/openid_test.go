package e2e_test

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
)

// OpenID is a running OpenID provider: oidc-provider, which is certified. Its
// users and CI jobs are defined in openid/provider.mjs.
type OpenID struct {
	Issuer string

	cmd   *exec.Cmd
	stdin io.Closer // it runs until this is closed
	log   *strings.Builder
}

const (
	// openIDAudience is the audience of the provider's tokens unless another is
	// requested.
	openIDAudience = "https://registry.example.test"
	// openIDElsewhere is the only other audience that it knows.
	openIDElsewhere = "https://elsewhere.example.test"
)

// startOpenID runs a provider with its own key until the test ends.
func startOpenID(t *testing.T) *OpenID {
	t.Helper()
	_, err := openIDInstalled()
	require(t, err)
	o := &OpenID{}
	t.Cleanup(func() {
		o.Stop()
		if t.Failed() {
			t.Logf("log of the OpenID provider:\n%s", o.log)
		}
	})
	o.start(t, "0")
	return o
}

// openIDInstalled installs the provider, once per run.
var openIDInstalled = sync.OnceValues(func() (string, error) { return npmInstall("openid") })

func (o *OpenID) start(t *testing.T, port string) {
	t.Helper()
	dir, err := openIDInstalled()
	if err != nil {
		t.Fatal(err)
	}
	o.log = &strings.Builder{}
	o.cmd = exec.CommandContext(beforeDeadline(t), "node", "provider.mjs")
	o.cmd.Dir = dir
	o.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "PORT=" + port, "AUDIENCE=" + openIDAudience}
	o.cmd.Stderr = o.log
	if o.stdin, err = o.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := o.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := o.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	var ready struct {
		Issuer string `json:"issuer"`
	}
	if err := errors.Join(err, json.Unmarshal(line, &ready)); err != nil {
		t.Fatalf("the OpenID provider did not start: %v", err)
	}
	o.Issuer = ready.Issuer
}

// Stop stops the provider: from then on its issuer cannot be reached.
func (o *OpenID) Stop() {
	if o.stdin == nil {
		return
	}
	o.stdin.Close()
	o.cmd.Wait()
}

// Restart stops the provider if it runs, and starts it again as the same issuer
// with a new key, which invalidates all its tokens.
func (o *OpenID) Restart(t *testing.T) {
	t.Helper()
	o.Stop()
	issuer, err := url.Parse(o.Issuer)
	if err != nil {
		t.Fatal(err)
	}
	o.start(t, issuer.Port())
}

// Endpoints are URLs in the provider's discovery document.
type Endpoints struct {
	Authorization string `json:"authorization_endpoint"`
	Token         string `json:"token_endpoint"`
}

// Endpoints requests them from the provider, as its clients do.
func (o *OpenID) Endpoints(t *testing.T) Endpoints {
	t.Helper()
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	answer, err := fetch(client, o.Issuer+"/.well-known/openid-configuration")
	if err != nil {
		t.Fatal(err)
	}
	var e Endpoints
	if err := json.Unmarshal([]byte(answer.Body), &e); err != nil || e.Authorization == "" || e.Token == "" {
		t.Fatalf("%v\n%s", err, answer.Body)
	}
	return e
}

// CIToken returns an access token as a CI job gets it, without a user. The
// token's subject is the client.
func (o *OpenID) CIToken(t *testing.T, client, audience string) string {
	t.Helper()
	form := url.Values{"grant_type": {"client_credentials"}, "resource": {audience}}
	request, err := http.NewRequest(http.MethodPost, o.Endpoints(t).Token, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.SetBasicAuth(client, client)
	job := &http.Client{Timeout: time.Minute, Transport: &http.Transport{}}
	defer job.CloseIdleConnections()
	answer, err := job.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	var issued struct {
		Token string `json:"access_token"`
	}
	if err := json.Unmarshal(body, &issued); err != nil || issued.Token == "" {
		t.Fatalf("%s gets no token for %s: %v\n%s", client, audience, err, body)
	}
	return issued.Token
}

// claims are the claims of a token, with the ID of the key that signed it.
type claims struct {
	Key      string   `json:"-"`
	Issuer   string   `json:"iss"`
	Audience string   `json:"aud"`
	Subject  string   `json:"sub"`
	Groups   []string `json:"groups"`
	Expires  int64    `json:"exp"`
}

// readClaims reads a JWT without verifying it.
func readClaims(t *testing.T, token string) claims {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("%q is not a JWT", token)
	}
	var header struct {
		Key string `json:"kid"`
	}
	var c claims
	for i, v := range []any{&header, &c} {
		text, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err := errors.Join(err, json.Unmarshal(text, v)); err != nil {
			t.Fatalf("%q is not a JWT: %v", token, err)
		}
	}
	c.Key = header.Key
	return c
}

// The behaviour of the provider that other tests rely on.
func TestOpenIDProvider(t *testing.T) {
	t.Parallel()
	openid := startOpenID(t)

	expired := func(c claims) bool { return time.Now().Unix() >= c.Expires }
	issued := openid.CIToken(t, "ci", openIDAudience)
	if !issuedToken.MatchString(issued) {
		t.Errorf("logs are searched for other tokens than %s", issued)
	}
	token := readClaims(t, issued)
	if want := (claims{Key: token.Key, Issuer: openid.Issuer, Audience: openIDAudience, Subject: "ci",
		Expires: token.Expires}); !reflect.DeepEqual(token, want) || token.Key == "" || expired(token) {
		t.Errorf("a CI job's token: %+v", token)
	}
	if c := readClaims(t, openid.CIToken(t, "ci-of-yesterday", openIDAudience)); !expired(c) {
		t.Errorf("yesterday's token has not expired: %+v", c)
	}
	if c := readClaims(t, openid.CIToken(t, "ci", openIDElsewhere)); c.Audience != openIDElsewhere {
		t.Errorf("a token for another audience: %+v", c)
	}

	issuer := openid.Issuer
	openid.Restart(t)
	if c := readClaims(t, openid.CIToken(t, "ci", openIDAudience)); c.Issuer != issuer || c.Key == token.Key {
		t.Errorf("after a restart: %+v, before: %+v", c, token)
	}
}
