package remote

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"unicode"
)

// Whether a registry lacks something is told by its own answers alone.
func TestAnswersOfTheRegistryItself(t *testing.T) {
	for _, test := range []struct {
		rule, body string
		own        bool
	}{
		{"the module registry protocol's form", `{"errors":["Not Found"]}`, true},
		{"Artifactory's form", `{"errors":[{"status":404,"message":"send its bytes"}]}`, true},
		{"a page of a proxy", "<html>404 Not Found</html>", false},
		{"another document", `{"message":"no Route matched with those values"}`, false},
		{"no errors", `{"errors":[]}`, false},
		{"nothing", "", false},
	} {
		t.Run(test.rule, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusNotFound)
				io.WriteString(w, test.body)
			}))
			defer server.Close()
			service, err := url.Parse(server.URL + "/v1/")
			if err != nil {
				t.Fatal(err)
			}
			c := &Client{http: Network{}.client(false), service: service, token: new(runToken)}
			defer c.Close()
			_, err = c.Do(t.Context(), http.MethodGet, "acme/demo/versions")
			if !IsRefused(err, http.StatusNotFound) || IsRefusedByRegistry(err, http.StatusNotFound) != test.own || IsRefusedByRegistry(err, http.StatusConflict) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestRedirections(t *testing.T) {
	for _, test := range []struct{ rule, from, to, says string }{
		{"another host", "https://a.example/v1/", "https://b.example/v1/", "it redirects to b.example, where no token is sent: name that host by --to if it is the registry"},
		{"another port", "https://a.example/v1/", "https://a.example:8443/v1/", "it redirects to a.example:8443, where no token is sent: name that host by --to if it is the registry"},
		{"with TLS", "http://a.example/v1/", "https://a.example/v1/", "it redirects to https://a.example: name that by --to"},
		{"a login page", "https://a.example/v1/", "/login?next=secret", "it redirects to /login, as a login page in front of it does: check what is between here and the registry"},
		{"the port written out", "https://a.example/v1/", "https://A.example:443/login", "it redirects to /login, as a login page"},
		{"without TLS, as behind a proxy with TLS", "https://a.example/v1/", "http://a.example/login", "it redirects to /login, as a login page"},
		{"no path", "https://a.example/v1/", "https://a.example", "it redirects to /, as a login page"},
	} {
		q := httptest.NewRequest(http.MethodPut, test.from, nil)
		reasons, own := reasonsOf(&http.Response{StatusCode: http.StatusFound, Header: http.Header{"Location": {test.to}}, Request: q}, []byte("<html>"))
		if len(reasons) != 1 || !strings.HasPrefix(reasons[0], test.says) || own {
			t.Errorf("%s: got %q", test.rule, reasons)
		}
	}
}

// The printed part of an answer is short and has no control characters.
func FuzzReasonsOf(f *testing.F) {
	f.Add(422, []byte(`{"errors":["rename it"]}`))
	f.Add(422, []byte(`{"errors":[{"message":"rename it"},7,null]}`))
	f.Add(307, []byte("<html>"))
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		q := httptest.NewRequest(http.MethodPut, "/", nil)
		reasons, _ := reasonsOf(&http.Response{StatusCode: status, Header: http.Header{"Location": {"https://a.example/"}}, Request: q}, body)
		if len(reasons) == 0 || len(reasons) > maxReasons {
			t.Errorf("there are %d reasons", len(reasons))
		}
		for _, reason := range reasons {
			if strings.ContainsFunc(reason, func(r rune) bool { return !unicode.IsPrint(r) }) || len(reason) > 8*maxReason {
				t.Errorf("%q", reason)
			}
		}
	})
}
