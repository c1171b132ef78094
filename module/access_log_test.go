package module

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/rewrite"
	_ "github.com/caddyserver/caddy/v2/modules/logging"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
)

// unloggedHandler is a registry that sets a user and panics if header fields of the
// request say so.
type unloggedHandler struct {
	Handler
	log *accessLog
}

func init() { caddy.RegisterModule(new(unloggedHandler)) }

func (*unloggedHandler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.unlogged", New: func() caddy.Module { return new(unloggedHandler) }}
}

func (h *unloggedHandler) Provision(ctx caddy.Context) error {
	h.log = newAccessLog(ctx, false)
	return h.Handler.Provision(ctx)
}

func (h *unloggedHandler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if user := r.Header.Get("X-User"); user != "" {
		r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer).Set("http.auth.user.id", user)
	}
	if h.log.serve(w, r, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("X-Panic") != "" {
			panic(http.ErrAbortHandler)
		}
		return h.registry.ServeHTTP(w, r)
	}) {
		return nil
	}
	return next.ServeHTTP(w, r)
}

// A loggedSite is a running Caddy with a registry and an access log.
type loggedSite struct {
	t         *testing.T
	dir, addr string
	stop      func()
}

// newLoggedSite runs Caddy with the logs of a server in JSON. All entries go to the
// file all, and entries for one or one.* also to the file one.
func newLoggedSite(t *testing.T, logs string) *loggedSite {
	t.Helper()
	s := &loggedSite{t: t, dir: t.TempDir()}
	const log = `%q:{"level":"DEBUG","writer":{"output":"file","filename":%q},"encoder":{"format":"json"},"include":[%q]}`
	registry, _ := json.Marshal(Handler{
		Root: sampleTree(t), Hostnames: []string{"registry.example.com"}, SigningKey: &SigningKey{Off: true}, UI: new(UI),
		Access: &Access{Rules: []AccessRule{
			{Effect: "allow", Who: "anonymous", Right: "read", Addresses: []string{"acme/demo"}},
			{Effect: "allow", Who: "ci", Right: "read", Addresses: []string{"acme"}},
		}},
	})
	options := strings.TrimPrefix(string(registry), "{")
	config := fmt.Sprintf(`{
		"admin":{"disabled":true,"config":{"persist":false}},
		"storage":{"module":"file_system","root":%q},
		"logging":{"logs":{`+log+","+log+`}},
		"apps":{"http":{"servers":{"registry":{"listen":["127.0.0.1:0"],"automatic_https":{"disable":true},"logs":%s,"routes":[
			{"match":[{"header":{"X-Skip":["*"]}}],"handle":[{"handler":"vars","log_skip":true}]},
			{"match":[{"header":{"X-Warn":["*"]}}],"handle":[{"handler":"vars","log_level":"warn"}]},
			{"match":[{"header":{"X-Name":["*"]}}],"handle":[{"handler":"vars","access_logger_names":["one.chosen",""]}]},
			{"handle":[{"handler":"rewrite","strip_path_prefix":"/below"}]},
			{"match":[{"header":{"X-Real":["*"]}}],"handle":[{"handler":"terraform_registry",%s]},
			{"handle":[{"handler":"unlogged",%s]},
			{"handle":[{"handler":"static_response","body":"another handler's"}]}]}}}}}`,
		t.TempDir(),
		"all", filepath.Join(s.dir, "all"), "http.log.access",
		"one", filepath.Join(s.dir, "one"), "http.log.access.one",
		logs, options, options)
	if err := caddy.Load([]byte(config), true); err != nil {
		t.Fatal(err)
	}
	stopped := false
	s.stop = func() {
		if stopped {
			return
		}
		stopped = true
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(s.stop)
	app, err := caddy.ActiveContext().AppIfConfigured("http")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = app.(*caddyhttp.App).Servers["registry"].Listeners()[0].Addr().String()
	awaitLive(t)
	return s
}

const (
	loggedFile    = "/v1/mirror/registry.example.com/acme/demo/terraform-provider-demo_1.2.0_linux_amd64.zip"
	signatureText = "c2lnbmF0dXJlIG9mIGEgbGluaw"
	signedQuery   = "?exp=1900000000&sig=" + signatureText
)

// get makes a request. Header fields are name and value in turn.
func (s *loggedSite) get(method, host, target string, header ...string) http.Header {
	s.t.Helper()
	r, err := http.NewRequest(method, "http://"+s.addr+target, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Host = host
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	// The server closes the connection when it has logged the request, and not before.
	r.Close = true
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	if err := r.Write(conn); err != nil {
		s.t.Fatal(err)
	}
	stream := bufio.NewReader(conn)
	answer, err := http.ReadResponse(stream, r)
	if err != nil {
		return nil // it panicked
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		s.t.Error(err)
	}
	if _, err := io.Copy(io.Discard, stream); err != nil {
		s.t.Error(err)
	}
	return answer.Header
}

// entries stops Caddy and returns the entries of a log.
func (s *loggedSite) entries(file string) (text string, entries []map[string]any) {
	s.t.Helper()
	s.stop()
	raw, err := os.ReadFile(filepath.Join(s.dir, file))
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range bytes.Lines(raw) {
		entry := make(map[string]any)
		if err := json.Unmarshal(line, &entry); err != nil {
			s.t.Fatalf("%v in %s", err, line)
		}
		entries = append(entries, entry)
	}
	return string(raw), entries
}

// uriAndRest removes the parts of an entry that differ between two requests.
func uriAndRest(entry map[string]any) (uri string, rest map[string]any) {
	for _, name := range []string{"ts", "duration"} {
		entry[name] = reflect.TypeOf(entry[name]).String()
	}
	request := entry["request"].(map[string]any)
	uri = request["uri"].(string)
	delete(request, "uri")
	delete(request, "remote_port")
	return uri, entry
}

// The entries of a request with and without a signature are the same, except for the
// query, and in the same logs. No entry has the signature.
func TestAccessLog(t *testing.T) {
	for _, test := range []struct {
		rule   string
		logs   string
		method string
		host   string
		path   string
		header []string
		want   []string // the loggers, below http.log.access
	}{
		{"one log", `{}`, "GET", "registry.example.com", loggedFile, nil, []string{""}},
		{"a header field of the answer", `{}`, "GET", "registry.example.com", loggedFile, []string{"X-Real", "yes"}, []string{""}},
		{"a HEAD", `{}`, "HEAD", "registry.example.com", loggedFile, nil, []string{""}},
		{"a range", `{}`, "GET", "registry.example.com", loggedFile, []string{"Range", "bytes=10-19"}, []string{""}},
		{"another method", `{}`, "POST", "registry.example.com", loggedFile, nil, []string{""}},
		{"a missing module", `{}`, "GET", "registry.example.com", "/v1/modules/acme/nothing/aws/1.0.0/archive.tar.gz", []string{"X-User", "ci"}, []string{""}},
		{"a module", `{}`, "GET", "registry.example.com", "/v1/modules/acme/vpc/aws/1.0.0/archive.tar.gz", []string{"X-User", "ci"}, []string{""}},
		{"a hosted file", `{}`, "GET", "registry.example.com", strings.Replace(loggedFile, "/registry.example.com/", "/-/", 1), nil, []string{""}},
		{"a module under a hostname", `{}`, "GET", "registry.example.com", "/v1/modules/registry.example.com/acme/vpc/aws/1.0.0/archive.tar.gz", []string{"X-User", "ci"}, []string{""}},
		{"a user", `{}`, "GET", "registry.example.com", loggedFile, []string{"X-User", "ci", "Authorization", "Bearer t"}, []string{""}},
		{"a path that is rewritten", `{}`, "GET", "registry.example.com", "/below" + loggedFile, nil, []string{""}},
		{"a panic", `{}`, "GET", "registry.example.com", loggedFile, []string{"X-Panic", "now"}, []string{""}},
		{"skipped by an earlier handler", `{}`, "GET", "registry.example.com", loggedFile, []string{"X-Skip", "yes"}, nil},
		{"a level set by an earlier handler", `{}`, "GET", "registry.example.com", loggedFile, []string{"X-Warn", "yes"}, []string{""}},
		{"loggers chosen by an earlier handler", `{}`, "GET", "registry.example.com", loggedFile, []string{"X-Name", "yes"}, []string{"one.chosen", ""}},
		{"a site with its logger", twoSites, "GET", "One.example.com:8080", loggedFile, nil, []string{"one"}},
		{"another site with two", twoSites, "GET", "a.example.org", loggedFile, nil, []string{"one.more", "two"}},
		{"more labels", twoSites, "GET", "a.b.example.net", loggedFile, nil, []string{"two"}},
		{"no site", twoSites, "GET", "example.org", loggedFile, nil, []string{"rest"}},
		{"no site, with a trailing dot", twoSites, "GET", "a.example.org.", loggedFile, nil, []string{"rest"}},
		{"a site without a log", twoSites, "GET", "quiet.example.com", loggedFile, nil, nil},
		{"a site without loggers", twoSites, "GET", "none.example.com", loggedFile, nil, nil},
		{"a site without loggers, with chosen ones", twoSites, "GET", "none.example.com", loggedFile, []string{"X-Name", "yes"}, []string{"one.chosen", ""}},
		{"an unmapped host", `{"skip_unmapped_hosts":true,"logger_names":{"one.example.com":["one"]}}`, "GET", "two.example.com", loggedFile, nil, nil},
		{"a mapped host", `{"skip_unmapped_hosts":true,"logger_names":{"one.example.com":["one"]}}`, "GET", "one.example.com", loggedFile, nil, []string{"one"}},
		{"no log", `null`, "GET", "registry.example.com", loggedFile, nil, nil},
	} {
		t.Run(test.rule, func(t *testing.T) {
			s := newLoggedSite(t, test.logs)
			s.get(test.method, test.host, test.path, test.header...)
			s.get(test.method, test.host, test.path+signedQuery, test.header...)
			for file, prefix := range map[string]string{"all": "", "one": "one"} {
				text, entries := s.entries(file)
				if strings.Contains(text, signatureText) {
					t.Errorf("the signature is in %s", text)
				}
				want := slices.DeleteFunc(slices.Clone(test.want), func(name string) bool { return !strings.HasPrefix(name, prefix) })
				if len(entries) != 2*len(want) {
					t.Fatalf("%s has %d entries, want %d: %s", file, len(entries), 2*len(want), text)
				}
				for i, name := range want {
					plainURI, plain := uriAndRest(entries[i])
					signedURI, signed := uriAndRest(entries[len(want)+i])
					if !reflect.DeepEqual(plain, signed) {
						t.Errorf("without and with a signature\n%v\n%v", plain, signed)
					}
					if logger := strings.TrimSuffix("http.log.access."+name, "."); signed["logger"] != logger {
						t.Errorf("logged to %s, want %s", signed["logger"], logger)
					}
					if plainURI != test.path || signedURI != test.path+"?exp=1900000000&sig=REDACTED" {
						t.Errorf("logged as %s and %s", plainURI, signedURI)
					}
				}
			}
		})
	}
}

const twoSites = `{"default_logger_name":"rest","skip_hosts":["quiet.example.com"],"logger_names":{
	"one.example.com":["one"],"*.example.org":["one.more","two"],"*.*.example.net":["two"],"none.example.com":[]}}`

// The entry of a link describes the request.
func TestAccessLogHasRequestFields(t *testing.T) {
	s := newLoggedSite(t, `{}`)
	s.get("GET", "registry.example.com", loggedFile+signedQuery)
	_, entries := s.entries("all")
	want := map[string]any{"kind": "provider_file", "address": "acme/demo", "version": "1.2.0", "platform": "linux_amd64"}
	if len(entries) != 1 || !reflect.DeepEqual(entries[0]["terraform_registry"], want) || entries[0]["duration"].(float64) > 60 {
		t.Errorf("got %v", entries)
	}
}

// The answer with the location of a module has the link in a header.
func TestAccessLogHidesLinksInAnswers(t *testing.T) {
	s := newLoggedSite(t, `{}`)
	link := s.get("GET", "registry.example.com", "/v1/modules/acme/vpc/aws/1.0.0/download", "X-User", "ci").Get("X-Terraform-Get")
	_, sig, signed := strings.Cut(link, "&sig=")
	if !signed || sig == "REDACTED" {
		t.Fatalf("the client gets %s", link)
	}
	s.get("GET", "registry.example.com", link)
	text, entries := s.entries("all")
	if len(entries) != 2 || strings.Contains(text, sig) || strings.Count(text, "&sig=REDACTED") != 2 {
		t.Fatalf("got %s", text)
	}
	for i, want := range []struct {
		user   string
		status float64
	}{{"ci", 204}, {"", 200}} {
		if e := entries[i]; e["user_id"] != want.user || e["status"] != want.status {
			t.Errorf("got %v", e)
		}
	}
}

// Clients and proxies repeat URLs in headers.
func TestAccessLogHidesSignaturesInHeaders(t *testing.T) {
	s := newLoggedSite(t, `{}`)
	s.get("GET", "registry.example.com", loggedFile+signedQuery,
		"Referer", "http://registry.example.com"+loggedFile+signedQuery, "X-Original-Url", loggedFile+signedQuery)
	if text, entries := s.entries("all"); len(entries) != 1 || strings.Contains(text, signatureText) {
		t.Errorf("got %s", text)
	}
}

// The URLs of pages may contain URLs of earlier requests.
func TestAccessLogHidesSignaturesInURLsOfPages(t *testing.T) {
	s := newLoggedSite(t, `{}`)
	to := url.QueryEscape(loggedFile + signedQuery)
	for _, path := range []string{"/_registry/login?to=" + to, "/?sign-in=" + to, "/?sign-in=" + strings.ToLower(to)} {
		s.get("GET", "registry.example.com", path, "X-Real", "yes")
	}
	text, entries := s.entries("all")
	if len(entries) != 3 || strings.Contains(strings.ToLower(text), strings.ToLower(signatureText)) {
		t.Fatalf("got %s", text)
	}
	for _, e := range entries {
		if !reflect.DeepEqual(e["terraform_registry"], map[string]any{"kind": "page"}) {
			t.Errorf("got %v", e)
		}
	}
}

// Caddy logs requests to other handlers, and all requests if credentials are logged.
func TestAccessLogLeavesOtherRequestsToCaddy(t *testing.T) {
	for _, test := range []struct{ rule, logs, path string }{
		{"another handler", `{}`, "/elsewhere"},
		{"with credentials", `{"should_log_credentials":true}`, loggedFile},
	} {
		t.Run(test.rule, func(t *testing.T) {
			s := newLoggedSite(t, test.logs)
			s.get("GET", "registry.example.com", test.path+signedQuery)
			if text, entries := s.entries("all"); len(entries) != 1 || !strings.Contains(text, test.path+signedQuery) {
				t.Errorf("got %s", text)
			}
		})
	}
}

// Requests without a signature, or without an access log, cost no allocations.
func TestAccessLogDoesNotAllocate(t *testing.T) {
	for _, test := range []struct {
		rule   string
		log    *accessLog
		target string
	}{
		{"no signature", newAccessLog(newConfiguration(t).ctx, false), loggedFile + "?exp=1"},
		{"no access log", newAccessLog(newConfiguration(t).ctx, false), loggedFile + signedQuery},
		{"no access log of links", newAccessLog(newConfiguration(t).ctx, false), "/v1/modules/acme/vpc/aws/1.0.0/download"},
		{"no links are signed", nil, loggedFile + signedQuery},
	} {
		r, err := http.NewRequest("GET", "http://registry.example.com"+test.target, nil)
		if err != nil {
			t.Fatal(err)
		}
		r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), nil, new(caddyhttp.Server))
		registry := new(servedRequests)
		if n := testing.AllocsPerRun(100, func() { test.log.serve(nil, r, registry.serve) }); n != 0 || *registry == 0 {
			t.Errorf("%s: %d allocations, %d requests", test.rule, int(n), *registry)
		}
	}
}

// A server without an access log needs no fields. Only the function for the
// placeholders is left.
func TestDescribingARequestAllocatesLittleWithoutAccessLog(t *testing.T) {
	for _, test := range []struct {
		rule string
		logs *caddyhttp.ServerLogConfig
		most float64
	}{
		{"no access log", nil, 1},
		{"an access log", new(caddyhttp.ServerLogConfig), 4},
	} {
		r := httptest.NewRequest("GET", "http://registry.example.com"+loggedFile, nil)
		r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), nil, new(caddyhttp.Server))
		h := &Handler{traffic: new(traffic), server: &caddyhttp.Server{Logs: test.logs}}
		e := handlers.NewPageExchange(address.Address{}, "", http.StatusOK, 1)
		if n := testing.AllocsPerRun(100, func() { h.answered(r, e) }); n > test.most {
			t.Errorf("%s: %v allocations, want at most %v", test.rule, n, test.most)
		}
	}
}

type servedRequests int

func (n *servedRequests) serve(http.ResponseWriter, *http.Request) bool { *n++; return true }

func TestRedact(t *testing.T) {
	for _, test := range []struct{ rule, text, want string }{
		{"a link", "/v1/a.zip?exp=1&sig=abc-_Z", "/v1/a.zip?exp=1&sig=REDACTED"},
		{"its parameters in another order", "/v1/a.zip?archive=zip&sig=abc&terraform-get=1", "/v1/a.zip?archive=zip&sig=REDACTED&terraform-get=1"},
		{"a broken signature", "/v1/a.zip?sig=abc%3D.)", "/v1/a.zip?sig=REDACTED"},
		{"two signatures", "/v1/a.zip?sig=abc&sig=def", "/v1/a.zip?sig=REDACTED&sig=REDACTED"},
		{"an empty signature", "/v1/a.zip?sig=&exp=1", "/v1/a.zip?sig=REDACTED&exp=1"},
		{"a whole URL", "https://r.example.com/v1/a.zip?exp=1&sig=abc", "https://r.example.com/v1/a.zip?exp=1&sig=REDACTED"},
		{"a URL in a header", `<https://r.example.com/a?sig=abc>; rel="x"`, `<https://r.example.com/a?sig=REDACTED>; rel="x"`},
		{"a URL in a query", "/login?rd=%2Fv1%2Fa.zip%3Fexp%3D1%26sig%3Dabc&x=1", "/login?rd=%2Fv1%2Fa.zip%3Fexp%3D1%26sig%3DREDACTED&x=1"},
		{"parameters with similar names", "/v1/a.zip?design=a&sign=b&sigs=c", "/v1/a.zip?design=a&sign=b&sigs=c"},
		{"no query", "/v1/sig=abc.zip", "/v1/sig=abc.zip"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			if got := redact(test.text); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
