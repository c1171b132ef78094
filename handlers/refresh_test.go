package handlers_test

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/handlers/webhook"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/pull/follow"
	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
)

// A follower notes what it is told. The modules vpc and subnet are in one repository.
type follower struct {
	unread bool // the tree
	told   []string
}

func (f *follower) Ready() bool { return !f.unread }

func (f *follower) Tell(modules ...address.Address) {
	for _, a := range modules {
		f.told = append(f.told, a.String())
	}
}

func (f *follower) Has(a address.Address) (registryhcl.Git, bool) {
	known := a.Namespace == "acme" && (a.Name == "vpc" || a.Name == "subnet")
	return registryhcl.Git{URL: "https://github.com/acme/modules"}, known
}

func (f *follower) Connections() []follow.Connection { return nil }

func (f *follower) ModulesIn(repositories ...string) (modules []address.Address) {
	if slices.Contains(repositories, "https://github.com/acme/modules.git") {
		for _, name := range []string{"subnet", "vpc"} {
			modules = append(modules, address.Address{Namespace: "acme", Name: name, System: "aws"})
		}
	}
	return modules
}

const tagPushed = `{"ref":"v1.2.0","ref_type":"tag","repository":{"clone_url":"https://github.com/acme/modules.git"}}`

// signed returns GitHub's signature of a body.
func signed(secret, body string) string {
	m := hmac.New(sha256.New, []byte(secret))
	m.Write([]byte(body))
	return "sha256=" + hex.EncodeToString(m.Sum(nil))
}

func TestRefresh(t *testing.T) {
	const module, all = "/v1/modules/acme/vpc/aws/refresh", "/v1/refresh"
	github := func(secret, body string) []string { return []string{"X-Hub-Signature-256", signed(secret, body)} }
	for _, test := range []struct {
		rule, method, path string
		header             []string
		body               string
		status             int
		told               []string
	}{
		{"the webhook of a module's host", http.MethodPost, module, github("a", tagPushed), tagPushed, 202, []string{"acme/vpc/aws"}},
		{"the webhook of a repository with several modules", http.MethodPost, all, github("a", tagPushed), tagPushed, 202, []string{"acme/subnet/aws", "acme/vpc/aws"}},
		{"a webhook once more is one more look", http.MethodPost, module, github("a", tagPushed), tagPushed, 202, []string{"acme/vpc/aws"}},
		{"a webhook about another repository", http.MethodPost, all, github("a", `{}`), `{}`, 202, nil},
		{"the webhook of another host", http.MethodPost, module, []string{"X-Gitlab-Token", "b"}, tagPushed, 404, nil},
		{"of another host, about a repository of this one", http.MethodPost, all, []string{"X-Gitlab-Token", "b"}, tagPushed, 202, nil},
		{"a forged webhook", http.MethodPost, module, github("x", tagPushed), tagPushed, 403, nil},
		{"a forged webhook of all", http.MethodPost, all, github("x", tagPushed), tagPushed, 403, nil},
		{"a webhook with a changed body", http.MethodPost, all, github("a", tagPushed), tagPushed + " ", 403, nil},
		{"a webhook that is too large", http.MethodPost, all, github("a", ""), strings.Repeat(" ", webhook.MaxBody+1), 413, nil},
		{"a webhook about a module without a repository", http.MethodPost, "/v1/modules/acme/none/aws/refresh", github("a", tagPushed), tagPushed, 404, nil},
		{"a user who may publish the module", http.MethodPost, module, []string{"Authorization", "Bearer publisher"}, "", 202, []string{"acme/vpc/aws"}},
		{"a user who may publish some modules of the repository", http.MethodPost, all, []string{"Authorization", "Bearer publisher"}, tagPushed, 202, []string{"acme/vpc/aws"}},
		{"a user who may not", http.MethodPost, module, []string{"Authorization", "Bearer reader"}, "", 403, nil},
		{"a user who may publish none of them", http.MethodPost, all, []string{"Authorization", "Bearer reader"}, tagPushed, 202, nil},
		{"nobody", http.MethodPost, module, nil, "", 401, nil},
		{"nobody, for all", http.MethodPost, all, nil, tagPushed, 401, nil},
		{"no address of a module", http.MethodPost, "/v1/modules/acme/_/aws/refresh", github("a", tagPushed), tagPushed, 404, nil},
		{"another method", http.MethodPut, module, github("a", tagPushed), tagPushed, 405, nil},
		{"a GET", http.MethodGet, all, nil, "", 405, nil},
	} {
		t.Run(test.rule, func(t *testing.T) {
			f := new(follower)
			g := privately(t, registry(scan(t, indextest.New(t))), "allow publisher publish acme/vpc", "allow reader read acme")
			known := g.Authenticate
			g.Authenticate = func(r *http.Request) (access.Subject, error) {
				if r.Header.Get("Authorization") == "Bearer publisher" {
					return access.Subject{ID: "publisher"}, nil
				}
				return known(r)
			}
			g.Follower = f
			g.WebhookSecrets = []webhook.Secret{{Host: "github.com", Value: "a"}, {Host: "gitlab.com", Value: "b"}}
			r := httptest.NewRequest(test.method, home+test.path, strings.NewReader(test.body))
			for pair := range slices.Chunk(test.header, 2) {
				r.Header.Set(pair[0], pair[1])
			}
			w := httptest.NewRecorder()
			if !g.ServeHTTP(w, r) || w.Code != test.status || !slices.Equal(f.told, test.told) {
				t.Errorf("got %d %s, and it was told of %q", w.Code, w.Body, f.told)
			}
		})
	}
}

// A webhook that the server in front finds too large has not broken off.
func TestWebhooksThatAreTooLargeForTheServer(t *testing.T) {
	const limit = 10
	g := registry(scan(t, indextest.New(t)))
	g.Follower = new(follower)
	g.WebhookSecrets = []webhook.Secret{{Host: "github.com", Value: "a"}}
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, home+"/v1/refresh", strings.NewReader(tagPushed))
	r.Header.Set("X-Hub-Signature-256", signed("a", tagPushed))
	r.Body = http.MaxBytesReader(w, r.Body, limit)
	if !g.ServeHTTP(w, r) || w.Code != http.StatusRequestEntityTooLarge || !strings.Contains(w.Body.String(), "at most 10 bytes") {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

// A registry.hcl that cannot be read may name a repository, so a code host is told to send its
// webhook again, and not that there is no such module.
func TestRefreshOfAModuleThatCannotBeRead(t *testing.T) {
	const module = "/v1/modules/acme/other/aws/refresh"
	files := indextest.New(t)
	files.Write("modules/acme/other/aws/registry.hcl", "git {\n  url = \"https://github.com/acme/other\"\n}\n")
	for _, test := range []struct {
		rule, path, name, value string
		status                  int
	}{
		{"a webhook", module, "X-Hub-Signature-256", signed("a", tagPushed), 503},
		{"a user who may publish it", module, "Authorization", "Bearer reader", 503},
		{"a forged webhook", module, "X-Hub-Signature-256", signed("x", tagPushed), 403},
		{"nobody", module, "", "", 401},
		{"another module without a repository", "/v1/modules/acme/none/aws/refresh", "X-Hub-Signature-256", signed("a", tagPushed), 404},
		{"another module that has one", "/v1/modules/acme/vpc/aws/refresh", "X-Hub-Signature-256", signed("a", tagPushed), 202},
	} {
		t.Run(test.rule, func(t *testing.T) {
			g := privately(t, registry(scanWithout(t, files, "modules/acme/other/aws/registry.hcl")), "allow reader publish acme")
			g.Follower, g.WebhookSecrets = new(follower), []webhook.Secret{{Host: "github.com", Value: "a"}}
			r := httptest.NewRequest(http.MethodPost, home+test.path, strings.NewReader(tagPushed))
			r.Header.Set(test.name, test.value)
			if w := serveRecorded(g, r); w.Code != test.status || (w.Code == 503) != (w.Header().Get("Retry-After") != "") {
				t.Errorf("got %d %s", w.Code, w.Body)
			}
		})
	}
}

// Anyone may send what looks like a webhook. It is not waited for without end, however steadily it comes.
func TestSlowWebhooksAreGivenUp(t *testing.T) {
	for _, test := range []struct {
		rule  string
		pause time.Duration // between the bytes
		want  int
	}{
		{"a slow one", time.Second, http.StatusForbidden},
		{"one that takes longer than code hosts wait", 10 * time.Second, http.StatusBadRequest},
	} {
		t.Run(test.rule, func(t *testing.T) {
			g := registry(scan(t, indextest.New(t)))
			g.Follower, g.WebhookSecrets = new(follower), []webhook.Secret{{Host: "github.com", Value: "a"}}
			synctest.Test(t, func(t *testing.T) {
				conn, end := servePipe(handler{g})
				defer end()
				go func() {
					io.WriteString(conn, "POST /v1/refresh HTTP/1.1\r\nHost: "+ownHost+"\r\nContent-Length: 7\r\nX-Hub-Signature-256: sha256=00\r\n\r\n")
					for _, c := range "content" {
						time.Sleep(test.pause)
						io.WriteString(conn, string(c))
					}
				}()
				a, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil || a.StatusCode != test.want {
					t.Errorf("got %v and error %v, want %d", a, err, test.want)
				}
			})
		})
	}
}

// Of webhooks that are larger than usual, only some are in memory at the same time. Others are not held up.
func TestManyLargeWebhooks(t *testing.T) {
	g := registry(scan(t, indextest.New(t)))
	g.Follower, g.WebhookSecrets = new(follower), []webhook.Secret{{Host: "github.com", Value: "a"}}
	send := func(body io.Reader) int {
		r := httptest.NewRequest(http.MethodPost, home+"/v1/refresh", body)
		r.Header.Set("X-Hub-Signature-256", signed("a", tagPushed))
		w := httptest.NewRecorder()
		g.ServeHTTP(w, r)
		return w.Code
	}
	var parts []*io.PipeWriter
	var all sync.WaitGroup
	for range 16 {
		body, part := io.Pipe()
		parts = append(parts, part)
		all.Go(func() { send(body) })
		io.WriteString(part, strings.Repeat(" ", 65<<10)) // returns when all of it has been read
	}
	if got := send(strings.NewReader(strings.Repeat(" ", 65<<10))); got != http.StatusServiceUnavailable {
		t.Errorf("one more: got %d", got)
	}
	if got := send(strings.NewReader(tagPushed)); got != http.StatusAccepted {
		t.Errorf("one of the usual size: got %d", got)
	}
	for _, part := range parts {
		part.Close()
	}
	all.Wait()
	if got := send(strings.NewReader(strings.Repeat(" ", 65<<10))); got != http.StatusForbidden {
		t.Errorf("afterwards: got %d", got)
	}
}

// Which modules a webhook is about is not known before the tree has been read. It is not said that there are
// none. A reload may have the tree read anew while the follower goes on.
func TestRefreshBeforeTheTreeHasBeenRead(t *testing.T) {
	for _, path := range []string{"/v1/refresh", "/v1/modules/acme/vpc/aws/refresh", "/v1/refresh?reloaded"} {
		for rule, header := range map[string][]string{"a webhook": {"X-Hub-Signature-256", signed("a", tagPushed)}, "a user": {"Authorization", "Bearer publisher"}} {
			g := privately(t, registry(scan(t, indextest.New(t))), "allow publisher publish acme")
			g.Authenticate = func(*http.Request) (access.Subject, error) { return access.Subject{ID: "publisher"}, nil }
			reloaded := strings.HasSuffix(path, "?reloaded")
			if !reloaded {
				g.Snapshot = func() *index.Snapshot { return nil }
			}
			g.Follower, g.WebhookSecrets = &follower{unread: reloaded}, []webhook.Secret{{Host: "github.com", Value: "a"}}
			r := httptest.NewRequest(http.MethodPost, home+path, strings.NewReader(tagPushed))
			r.Header.Set(header[0], header[1])
			w := httptest.NewRecorder()
			if g.ServeHTTP(w, r); w.Code != http.StatusServiceUnavailable {
				t.Errorf("%s: %s: got %d %s", path, rule, w.Code, w.Body)
			}
		}
	}
}

// Without repositories to follow, the path belongs to the next handler.
func TestNoRefreshWithoutAFollower(t *testing.T) {
	g := registry(scan(t, indextest.New(t)))
	w := httptest.NewRecorder()
	if g.ServeHTTP(w, httptest.NewRequest(http.MethodPost, home+"/v1/refresh", nil)) {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

var _ handlers.Follower = (*follower)(nil)
