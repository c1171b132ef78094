package e2e_test

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// Down stops the provider until up is called, which starts it with a new key.
// In the meantime its port stays occupied, and connections to it are closed at
// once.
func (o *OpenID) Down(t *testing.T) (up func()) {
	t.Helper()
	issuer, err := url.Parse(o.Issuer)
	if err != nil {
		t.Fatal(err)
	}
	o.Stop()
	listener, err := net.Listen("tcp", issuer.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	return func() {
		t.Helper()
		listener.Close()
		o.Restart(t)
	}
}

// While the issuer is down and has never been up, login is not offered;
// everything else works. Login works as soon as the issuer is up.
func TestLoginWhileTheIssuerIsDown(t *testing.T) {
	t.Parallel()
	openid := startOpenID(t)
	early := openid.CIToken(t, "ci", openIDAudience)
	up := openid.Down(t)
	const host = "registry.example.com"
	registry := startRegistry(t, site(host, privateTree(t), slices.Concat(openid.Authenticates(), devReadsAcme,
		logsIn("issuer "+openid.Issuer))...))

	eachClient(t, func(t *testing.T, c Client) {
		ws := newWorkspace(t, registry, greeting(host+"/open/demo", "1.0.0"))
		c.Run(t, ws, "init")
		expect(t, c.Refused(t, ws, "login", host), "Host does not support")
		ws.Write(t, "main.tf", greeting(host+"/acme/demo", "1.0.0"))
		expect(t, c.Refused(t, ws, "init"), "requires authentication credentials")
		// The token is valid.
		ws.Setenv("TF_TOKEN_registry_example_com", early)
		expect(t, c.Refused(t, ws, "init"), "503 Service Unavailable")
	})
	discovery := func() Response { return registry.Get(t, "https://"+host+"/.well-known/terraform.json") }
	if got := discovery(); got.Status != http.StatusOK || strings.Contains(got.Body, "login.v1") {
		t.Errorf("discovery: got %d %s, want 200 without a login", got.Status, got.Body)
	}

	up()
	eventually(t, "login is offered", func() bool { return strings.Contains(discovery().Body, "login.v1") })
	for _, message := range []string{"clients are not told of a login, as its issuer is unavailable", "clients are told of a login again"} {
		registry.Log.Wait(t, "it logs "+message, func(e Entry) bool { return e.Message == message })
	}
	eachClient(t, func(t *testing.T, c Client) {
		ws := newWorkspace(t, registry, greeting(host+"/acme/demo", "1.0.0"))
		terraformLogin(t, c, ws, host, func(url string) { openid.Login(t, url, "alice") })
		c.Run(t, ws, "init")
	})
}

// An issuer may go down and come back with another key, and does not affect
// other issuers.
func TestTokensWhileTheIssuerIsDown(t *testing.T) {
	t.Parallel()
	openid, another := startOpenID(t), startOpenID(t)
	registry := startRegistry(t, site("registry.example.com", privateTree(t), slices.Concat(
		openid.Authenticates(), another.Authenticates(), []string{"access {", "allow ci read *", "}"})...))
	status := registry.requester(t, "https://registry.example.com/v1/providers/acme/demo/versions")
	token := func(o *OpenID) string { return o.CIToken(t, "ci", openIDAudience) }

	shown, kept := token(openid), token(openid)
	if got := status(shown); got != http.StatusOK {
		t.Fatalf("a token: got %d", got)
	}
	up := openid.Down(t)
	eachClient(t, func(t *testing.T, c Client) {
		ws := newWorkspace(t, registry, greeting("registry.example.com/acme/demo", "1.0.0"))
		ws.Setenv("TF_TOKEN_registry_example_com", kept)
		c.Run(t, ws, "init")
	})
	if got := status(token(another)); got != http.StatusOK {
		t.Errorf("a token of the issuer that is up: got %d", got)
	}

	up()
	unseen := token(openid)
	up = openid.Down(t)
	// The issuer is not asked again directly after it has answered.
	eventually(t, "the key cannot be looked up", func() bool { return status(unseen) == http.StatusServiceUnavailable })
	up()
	renewed := token(openid)
	eventually(t, "a token with the new key is accepted", func() bool { return status(renewed) == http.StatusOK })
	eachClient(t, func(t *testing.T, c Client) {
		ws := newWorkspace(t, registry, greeting("registry.example.com/acme/demo", "1.0.0"))
		ws.Setenv("TF_TOKEN_registry_example_com", token(openid))
		c.Run(t, ws, "init")
	})
	if got := status(unseen); got != http.StatusUnauthorized {
		t.Errorf("a token with a withdrawn key: got %d", got)
	}
}
