package publish

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/command/commandtest"
	"github.com/caddy-terraform/caddy-terraform-registry/command/remote"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// What passes is tried again, with the whole file.
func TestPublishRetries(t *testing.T) {
	for _, test := range []struct {
		rule   string
		status int
	}{
		{"unavailable", http.StatusServiceUnavailable},
		{"of a proxy", http.StatusBadGateway},
		{"too many requests", http.StatusTooManyRequests},
	} {
		r := newTarget(t)
		var failures atomic.Int64
		r.Fail(func(q *http.Request) int {
			if q.Method == http.MethodPut && failures.Add(1)%2 == 1 {
				return test.status
			}
			return 0
		})
		out, errs, err := r.publish(r.To("acme/demo"), newDist("").folder(t))
		if err != nil {
			t.Errorf("%s: %v\n%s\n%s", test.rule, err, out, errs)
		}
		if failures.Load() != 8 {
			t.Errorf("%s: there are %d requests", test.rule, failures.Load())
		}
	}
}

// A connection that breaks in the middle of a file is tried again.
func TestPublishRetriesBrokenConnections(t *testing.T) {
	r := newTarget(t)
	var broken atomic.Bool
	r.Fail(func(q *http.Request) int {
		if strings.HasSuffix(q.URL.Path, "linux_amd64.zip") && broken.CompareAndSwap(false, true) {
			q.Body.Read(make([]byte, 10))
			panic(http.ErrAbortHandler)
		}
		return 0
	})
	if out, errs, err := r.publish(r.To("acme/demo"), newDist("").folder(t)); err != nil || !broken.Load() {
		t.Errorf("%v\n%s\n%s", err, out, errs)
	}
}

// The answers of a registry, or of another server in its place, and the messages about them.
func TestPublishFailures(t *testing.T) {
	const discovery = `{"providers.v1":"/v1/providers/","modules.v1":"/v1/modules/"}`
	answers := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			w.Write([]byte(body))
		}
	}
	for _, test := range []struct {
		rule      string
		discovery http.HandlerFunc
		put       http.HandlerFunc
		exit      int
		says      string
	}{
		{"no registry", answers(404, ""), nil, cli.ExitUsage, "it is not a registry: it answered 404"},
		{"not JSON", answers(200, "<html>"), nil, cli.ExitUsage, "its discovery document is not a JSON object"},
		{"no provider registry", answers(200, `{"modules.v1":"/v1/modules/"}`), nil, cli.ExitUsage, "it does not offer a provider registry"},
		{"services without TLS", answers(200, `{"providers.v1":"http://registry.example.com/"}`), nil, cli.ExitUsage, "without TLS: no token is sent there"},
		{"services with a password", answers(200, `{"providers.v1":"https://a:b@registry.example.com/"}`), nil, cli.ExitUsage, "no usable URL"},
		{"a page of a proxy", answers(200, discovery), answers(413, "<html>too large</html>"), cli.ExitProblem, "answered 413 Request Entity Too Large, which is not an answer of the registry itself."},
		{"Artifactory's form", answers(200, discovery), answers(422, `{"errors":[{"status":422,"message":"rename it"},{"message":"sign it"}]}`), cli.ExitProblem, "Rename it. Sign it."},
		{"several reasons", answers(200, discovery), answers(422, `{"errors":["rename it","sign it"]}`), cli.ExitProblem, "Rename it. Sign it."},
		{"control characters", answers(200, discovery), answers(422, `{"errors":["\u001b[2Jgone"]}`), cli.ExitProblem, `\x1b[2Jgone`},
		{"publishing is off", answers(200, discovery), answers(405, `{"errors":["this registry accepts GET and HEAD only"]}`), cli.ExitProblem, "its operator has to configure publish."},
		{"the disk is full", answers(200, discovery), answers(507, `{"errors":["the disk is full"]}`), cli.ExitProblem, "The disk is full."},
		{"an empty answer", answers(200, discovery), answers(200, ""), cli.ExitUsage, "Its answer is not that of a registry"},
		{"down", answers(200, discovery), answers(500, `{"errors":["the registry failed"]}`), cli.ExitUsage, "The registry failed."},
		{"a redirect", answers(200, discovery), func(w http.ResponseWriter, q *http.Request) {
			http.Redirect(w, q, "https://elsewhere.example.com/", http.StatusTemporaryRedirect)
		}, cli.ExitUsage, "It redirects to elsewhere.example.com, where no token is sent"},
		{"a login page", answers(200, discovery), func(w http.ResponseWriter, q *http.Request) {
			http.Redirect(w, q, "/login?next=/v1/", http.StatusFound)
		}, cli.ExitUsage, "It redirects to /login, as a login page in front of it does: check what is between here and the registry."},
		{"too many requests, each time", answers(200, discovery), answers(429, `{"errors":["try again later"]}`), cli.ExitUsage, "Try again later."},
	} {
		t.Run(test.rule, func(t *testing.T) {
			commandtest.NoClientConfiguration(t)
			t.Setenv(remote.DefaultIDTokenVariable, "secret")
			var puts atomic.Int64
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				switch {
				case q.URL.Path == wire.DiscoveryPath && q.Header.Get("Authorization") != "":
					t.Error("the token is sent for discovery")
				case q.URL.Path == wire.DiscoveryPath:
					test.discovery(w, q)
				case q.Header.Get("Authorization") != "Bearer secret":
					t.Error("there is no token")
				default:
					puts.Add(1)
					test.put(w, q)
				}
			}))
			defer server.Close()
			network := trusting(server)
			out, errs, err := commandtest.Run(t.Context(), Command(network), "--to", server.Listener.Addr().String()+"/acme/demo", newDist("").folder(t))
			if commandtest.Status(err) != test.exit {
				t.Errorf("got %v", err)
			}
			commandtest.Says(t, errs, test.says)
			if strings.Contains(out+errs, "secret") {
				t.Errorf("the token is printed:\n%s", errs)
			}
			if test.exit == cli.ExitProblem && puts.Load() != 1 {
				t.Errorf("there are %d requests", puts.Load())
			}
		})
	}
}

// A 404 of a server in front of the registry does not say that the registry lacks anything.
func TestPublishBehindAProxyThatFindsNothing(t *testing.T) {
	for _, test := range []struct {
		rule, method string // that the proxy answers
		args         []string
	}{
		{"the registry would take a file", http.MethodPut, []string{"--dry-run"}},
		{"nothing is staged", http.MethodDelete, []string{"--drop-staged"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			r := newTarget(t)
			r.Fail(func(q *http.Request) int {
				if q.Method == test.method {
					return http.StatusNotFound
				}
				return 0
			})
			out, errs, err := r.publish(append(test.args, r.To("acme/demo"), newDist("").folder(t))...)
			if commandtest.Status(err) != cli.ExitProblem {
				t.Errorf("%v\n%s", err, out)
			}
			commandtest.Says(t, out, "Not published: acme/demo 1.2.0.")
			commandtest.Says(t, errs, "answered 404 Not Found, which is not an answer of the registry itself.")
		})
	}
}

func TestPublishToNowhere(t *testing.T) {
	commandtest.NoClientConfiguration(t)
	out, errs, err := commandtest.Run(t.Context(), Command(remote.Network{Pause: time.Millisecond}), "--to", "http://127.0.0.1:1/acme/demo", newDist("").folder(t))
	if commandtest.Status(err) != cli.ExitUsage || out != "" {
		t.Errorf("%v\n%s", err, out)
	}
	commandtest.Says(t, errs, "Error: 127.0.0.1:1: ", "connection refused")
}

// A registry without TLS has to be meant, since it gets the token.
func TestPublishWithoutTLS(t *testing.T) {
	r := newTarget(t)
	plain := httptest.NewServer(r)
	defer plain.Close()
	to := plain.Listener.Addr().String() + "/acme/demo"
	dir := newDist("").folder(t)
	_, errs, err := r.publish("--to", to, dir)
	if commandtest.Status(err) != cli.ExitUsage {
		t.Errorf("%v", err)
	}
	commandtest.Says(t, errs, "it has no TLS: begin --to with http:// if that is meant")
	if _, errs, err = r.publish("--to", "http://"+to, dir); err != nil {
		t.Errorf("%v\n%s", err, errs)
	}
}

// An interrupted run says how to continue.
func TestPublishInterrupted(t *testing.T) {
	r := newTarget(t)
	ctx, cancel := context.WithCancel(t.Context())
	r.Fail(func(q *http.Request) int {
		if strings.HasSuffix(q.URL.Path, ".zip") {
			cancel()
		}
		return 0
	})
	t.Setenv(remote.DefaultIDTokenVariable, commandtest.GoodToken)
	out, errs, err := commandtest.Run(ctx, Command(r.network()), r.To("acme/demo"), "--parallel", "1", newDist("").folder(t))
	if commandtest.Status(err) != cli.ExitUsage {
		t.Errorf("%v\n%s", err, out)
	}
	commandtest.Says(t, errs, "Interrupted: run the same command again to continue.")
	r.Fail(nil)
	if _, errs, err = r.publish(r.To("acme/demo"), newDist("").folder(t)); err != nil {
		t.Errorf("%v\n%s", err, errs)
	}
}

// A token that may publish and not read cannot see the version, which is published all the
// same. What can be read and is not listed is an error.
func TestPublishWaitsInVain(t *testing.T) {
	for _, test := range []struct {
		rule        string
		token       string
		answer      int // of a proxy; zero: the registry answers
		wait        string
		status      int
		says, warns string
	}{
		{"may not be read", commandtest.PublishersToken, 0, "10ms", 0, "Published, not confirmed: acme/demo 1.2.0. --wait needs a token with the right to read it.", ""},
		{"without the right, nothing is waited for", commandtest.GoodToken, http.StatusForbidden, "1h", 0, "Published, not confirmed: acme/demo 1.2.0.", ""},
		{"nor with a token that is for publishing", commandtest.GoodToken, http.StatusUnauthorized, "1h", 0, "Published, not confirmed: acme/demo 1.2.0.", ""},
		{"a proxy does not know whether it is listed", commandtest.GoodToken, http.StatusNotFound, "10ms", cli.ExitProblem, "Published: acme/demo 1.2.0.", "answered 404 Not Found, which is not an answer of the registry itself"},
		{"the list cannot be had", commandtest.GoodToken, http.StatusTeapot, "10ms", cli.ExitProblem, "Published: acme/demo 1.2.0.", "was not listed within 10ms"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			r := newTarget(t)
			r.Fail(func(q *http.Request) int {
				if strings.HasSuffix(q.URL.Path, "/versions") {
					return test.answer
				}
				return 0
			})
			out, errs, err := r.publishAs(test.token, r.To("acme/demo"), "--wait="+test.wait, newDist("").folder(t))
			if commandtest.Status(err) != test.status {
				t.Errorf("%v\n%s", err, errs)
			}
			commandtest.Says(t, out, test.says)
			commandtest.Says(t, errs, test.warns)
		})
	}
}

// A version that the registry has is published, offered or not, and what the registry says of it
// is printed. Nothing but the list is asked for: there is no state of a module.
func TestPublishSaysWhatIsNotOfferedYet(t *testing.T) {
	const waits = "it is in the tree, and will be offered when the registry has read it"
	for _, test := range []struct {
		rule    string
		address string
		code    int
		message string
		listed  string
		args    []string
		exit    int
		says    string
	}{
		{rule: "a module that is not offered yet", address: "acme/vpc/aws", code: 202, message: waits, says: "In the registry, and not offered yet: acme/vpc/aws 1.2.0."},
		{rule: "a provider that is not offered yet", address: "acme/demo", code: 202, message: waits, says: "In the registry, and not offered yet: acme/demo 1.2.0."},
		{rule: "sent again", address: "acme/vpc/aws", code: 200, message: waits, says: "Published before, with the same bytes: acme/vpc/aws 1.2.0."},
		{rule: "offered, with a message", address: "acme/vpc/aws", code: 201, message: "it is offered, and not in the transparency log yet", says: "Published: acme/vpc/aws 1.2.0."},
		{rule: "listed while it is waited for", address: "acme/vpc/aws", code: 202, message: waits, listed: `{"version":"1.2.0"}`, args: []string{"--wait=1h"}, says: "Published: acme/vpc/aws 1.2.0."},
		{rule: "waited for with a token that may not read", address: "acme/vpc/aws", code: 202, message: waits, listed: "403", args: []string{"--wait=1h"}, says: "Published, not confirmed: acme/vpc/aws 1.2.0."},
		{rule: "waited for in vain", address: "acme/vpc/aws", code: 202, message: waits, args: []string{"--wait=10ms"}, exit: cli.ExitProblem, says: "In the registry, and not offered yet: acme/vpc/aws 1.2.0."},
	} {
		t.Run(test.rule, func(t *testing.T) {
			commandtest.NoClientConfiguration(t)
			t.Setenv(remote.DefaultIDTokenVariable, "secret")
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				switch {
				case q.URL.Path == wire.DiscoveryPath:
					w.Write([]byte(`{"providers.v1":"/v1/providers/","modules.v1":"/v1/modules/"}`))
				case q.Method == http.MethodPut:
					io.Copy(io.Discard, q.Body)
					w.WriteHeader(test.code)
					w.Write(wire.Publication{Status: wire.Published, Message: test.message}.Encode())
				case strings.HasSuffix(q.URL.Path, "/versions") && test.listed == "403":
					w.WriteHeader(http.StatusForbidden)
					w.Write([]byte(`{"errors":["you may not read it"]}`))
				case strings.HasSuffix(q.URL.Path, "/versions"):
					w.Write([]byte(`{"modules":[{"versions":[` + test.listed + `]}]}`))
				default:
					t.Errorf("%s %s is asked for", q.Method, q.URL.Path)
				}
			}))
			defer server.Close()
			args := append(test.args, "--to", server.Listener.Addr().String()+"/"+test.address)
			if test.address == "acme/demo" {
				args = append(args, newDist("").folder(t))
			} else {
				dir := t.TempDir()
				commandtest.Write(t, dir, "main.tf", "# a module\n")
				args = append(args, "--version", "1.2.0", dir)
			}
			out, errs, err := commandtest.Run(t.Context(), Command(trusting(server)), args...)
			if commandtest.Status(err) != test.exit {
				t.Errorf("%v\n%s", err, errs)
			}
			commandtest.Says(t, out, test.says)
			commandtest.Says(t, errs, test.address+" 1.2.0: "+test.message+".")
			if strings.Count(strings.Join(strings.Fields(errs), " "), test.message) != 1 {
				t.Errorf("it is not said once:\n%s", errs)
			}
			out, _, err = commandtest.Run(t.Context(), Command(trusting(server)), append(args, "--json")...)
			var d document
			if bad := json.Unmarshal([]byte(out), &d); bad != nil || commandtest.Status(err) != test.exit {
				t.Fatalf("%v, %v\n%s", bad, err, out)
			}
			if v := d.Versions[0]; !slices.Contains(v.Notes, test.message) || v.Unoffered != strings.HasPrefix(test.says, "In the registry") {
				t.Errorf("as JSON, it is %+v", v)
			}
		})
	}
}
