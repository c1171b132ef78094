package upstream_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/upstreamtest"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

var vpc = upstreamtest.VPC

const (
	moduleVersions = upstreamtest.ModuleVersionsPath
	modulePath     = upstreamtest.ModuleDownloadPath
)

func TestModuleVersions(t *testing.T) {
	s := newAcme(t)
	s.Fault(moduleVersions, body(`{"modules":[{"versions":[{"version":"v1.2","submodules":[]},{"version":"1.10.0"},{"version":"x"}]}]}`))
	got, err := s.Client(t, upstream.Origin{}).Versions(background(), vpc)
	if err != nil || fmt.Sprint(got) != fmt.Sprint([]wire.ProviderVersion{{Version: "1.10.0"}, {Version: "1.2.0"}}) {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestModuleVersionsFail(t *testing.T) {
	for _, test := range []struct {
		rule   string
		answer http.HandlerFunc
		kind   error
		says   string
	}{
		{"an unknown module", status(404), upstream.ErrNotFound, "404"},
		{"a web page", body("<html>"), upstream.ErrMalformed, "not the JSON"},
		{"no content", status(204), upstream.ErrMalformed, "answered 204"},
		{"too many", body(`{"modules":[{"versions":[` + strings.Repeat(`{},`, wire.MaxVersions) + `{}]}]}`), upstream.ErrTooLarge, "lists more than"},
		{"too large", body(strings.Repeat(" ", 16<<20+1)), upstream.ErrTooLarge, "the limit is"},
		{"access refused", status(401), upstream.ErrRefused, "configure a token"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			s := newAcme(t)
			s.Fault(moduleVersions, test.answer)
			_, err := s.Client(t, upstream.Origin{}).Versions(background(), vpc)
			mustFail(t, err, test.kind, test.says)
		})
	}
}

func TestModulePublished(t *testing.T) {
	s := newAcme(t)
	s.Fault("/v1/modules/acme/vpc/aws/1.0.0", body(`{"id":"acme/vpc/aws/1.0.0","published_at":"2026-05-04T03:02:01.5Z","root":{}}`))
	when, err := s.Client(t, upstream.Origin{}).Published(background(), vpc, "1.0.0")
	if err != nil || !when.Equal(time.Date(2026, 5, 4, 3, 2, 1, 5e8, time.UTC)) {
		t.Errorf("got %v, %v", when, err)
	}
}

// The location of the module service. A mirror has none, and the location for a URL
// with a path is unknown unless it is configured.
func TestModuleService(t *testing.T) {
	const at = "https://" + host + "/v1/modules"
	for _, test := range []struct {
		rule      string
		origin    upstream.Origin
		discovery string // empty: the site's
		discovers int
		says      string
	}{
		{"is discovered", upstream.Origin{}, "", 1, ""},
		{"is discovered at another URL", upstream.Origin{URL: "https://other.example.com"}, "", 1, ""},
		{"without the slash that clients append", upstream.Origin{}, `{"modules.v1":"/v1/modules"}`, 1, ""},
		{"on a host of its own", upstream.Origin{Private: []string{"api.example.com"}}, `{"modules.v1":"https://api.example.com/v1/modules/"}`, 1, ""},
		{"is configured", upstream.Origin{ModulesURL: at}, "", 0, ""},
		{"is configured on a host of its own", upstream.Origin{ModulesURL: "https://modules.example.com/v1/modules"}, "", 0, ""},
		{"is configured beside a URL", upstream.Origin{URL: "https://other.example.com/v1/providers/", ModulesURL: at}, "", 0, ""},
		{"is configured beside a mirror", upstream.Origin{Mirror: mirrorBase, ModulesURL: at + "/"}, "", 0, ""},
		{"none of a mirror", upstream.Origin{Mirror: mirrorBase}, "", 0, "configure the URL of its module service"},
		{"none of a URL with a path", upstream.Origin{URL: "https://other.example.com/v1/providers/"}, "", 0, "configure the URL of its module service"},
		{"is not offered", upstream.Origin{}, `{"providers.v1":"/v1/providers/"}`, 1, "does not offer a module registry"},
		{"of another version", upstream.Origin{}, `{"modules.v1":7}`, 1, "of a version that is known"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			s := newAcme(t)
			s.ModuleService("/x.zip")
			if test.discovery != "" {
				s.Fault(discovery, body(test.discovery))
			}
			test.origin.Token = "secret"
			c := s.Client(t, test.origin)
			for range 2 {
				list, err := c.Versions(background(), vpc)
				if test.says != "" {
					mustFail(t, err, upstream.ErrMalformed, test.says)
					if c.HasModules() && test.discovers == 0 {
						t.Error("it is said to have modules")
					}
					return
				}
				if err != nil || len(list) != 1 || !c.HasModules() {
					t.Errorf("got %v, %v", list, err)
				}
			}
			for _, r := range s.Requests(moduleVersions) {
				if r.Header.Get("Authorization") != "Bearer secret" {
					t.Error("the module service did not get the origin's token")
				}
			}
			if n := s.Count(discovery); n != test.discovers {
				t.Errorf("got %d discoveries", n)
			}
		})
	}
}

func TestModuleAddressesAreChecked(t *testing.T) {
	s := newAcme(t)
	c := s.Client(t, upstream.Origin{})
	for _, a := range []address.Address{{Namespace: "..", Name: "vpc", System: "aws"}, {Namespace: "acme", Name: "vpc", System: "a/b"}, {Namespace: "ACME", Name: "vpc", System: "aws"}} {
		_, err := c.Versions(background(), a)
		mustFail(t, err, upstream.ErrNotFound, "not the address of a module")
	}
	_, err := c.ModuleSource(background(), vpc, "../1.0.0")
	mustFail(t, err, upstream.ErrNotFound, "not a version")
	_, err = c.ModuleSource(background(), demo, "1.0.0")
	mustFail(t, err, upstream.ErrNotFound, "not the address of a module")
	if len(s.Asked()) != 0 {
		t.Errorf("%d requests were made", len(s.Asked()))
	}
}

// The header has the location of a module. The body of a 200 comes first, as in
// OpenTofu.
func TestModuleSource(t *testing.T) {
	answer := func(code int, header, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			if header != "" {
				w.Header().Set("X-Terraform-Get", header)
			}
			w.WriteHeader(code)
			w.Write([]byte(body))
		}
	}
	for _, test := range []struct {
		rule   string
		answer http.HandlerFunc
		want   string
		hosts  []upstream.Host
		kind   error
	}{
		{rule: "204 with the header", answer: answer(204, "git::https://git.example.com/vpc?ref=v1", ""), want: "git::https://git.example.com/vpc?ref=v1"},
		{rule: "200 with the header", answer: answer(200, "/x.zip", "<html>"), want: "https://" + host + "/x.zip?archive=zip"},
		{rule: "200 with a location", answer: answer(200, "/x.zip", `{"location":"./y.zip"}`), want: "https://" + host + "/v1/modules/acme/vpc/aws/1.0.0/y.zip?archive=zip"},
		{rule: "200 with a location for new clients alone", answer: answer(200, "/x.zip", `{"location":"package","use_registry_credentials":false}`), want: "https://" + host + "/x.zip?archive=zip"},
		{rule: "200 with a location for new clients that old ones understand", answer: answer(200, "", `{"location":"./y.zip","use_registry_credentials":true}`), want: "https://" + host + "/v1/modules/acme/vpc/aws/1.0.0/y.zip?archive=zip"},
		{rule: "200 with an empty location", answer: answer(200, "/x.zip", `{"location":""}`), want: "https://" + host + "/x.zip?archive=zip"},
		{rule: "relative to what was requested, after a redirect too", answer: redirect("/elsewhere/deep"), want: "https://" + host + "/v1/modules/acme/vpc/aws/1.0.0/z.zip?archive=zip"},
		{rule: "a URL that says where the archive is", answer: answer(204, "/ask//a", ""), want: "https://" + host + "/x.zip//in/a?archive=zip"},
		{rule: "SSH, to a host with a token too", answer: answer(204, "git@git.example.com:vpc", ""), hosts: []upstream.Host{{Name: "git.example.com", Token: "secret"}}, kind: upstream.ErrMalformed},
		{rule: "nothing", answer: answer(204, "", ""), kind: upstream.ErrMalformed},
		{rule: "an unknown version", answer: status(404), kind: upstream.ErrNotFound},
		{rule: "a path on the disk", answer: answer(204, "file:///secret", ""), kind: upstream.ErrMalformed},
		{rule: "a web page that says nothing", answer: answer(204, "/page", ""), kind: upstream.ErrMalformed},
		{rule: "an archive without a kind", answer: answer(204, "/large", ""), kind: upstream.ErrMalformed},
		{rule: "a URL that is not there", answer: answer(204, "/gone", ""), kind: upstream.ErrMalformed},
		{rule: "a URL that names itself", answer: answer(204, "/loop", ""), kind: upstream.ErrMalformed},
		{rule: "a private network", answer: answer(204, "https://10.0.0.1/ask", ""), kind: upstream.ErrUnsafe},
	} {
		t.Run(test.rule, func(t *testing.T) {
			s := newAcme(t)
			s.Fault(modulePath, test.answer)
			s.Fault("/elsewhere/deep", answer(204, "./z.zip", ""))
			s.Fault("/ask", func(w http.ResponseWriter, r *http.Request) {
				if r.URL.RawQuery == "terraform-get=1" {
					w.Header().Set("X-Terraform-Get", "/x.zip//in")
				}
			})
			s.Fault("/loop", answer(204, "/loop", ""))
			s.Fault("/page", body("<html>"))
			s.Fault("/gone", status(404))
			s.Fault("/large", body(strings.Repeat("x", 5<<20)))
			got, err := s.Client(t, upstream.Origin{Hosts: test.hosts}).ModuleSource(background(), vpc, "1.0.0")
			if test.kind != nil {
				mustFail(t, err, test.kind, "")
				return
			}
			if err != nil || got.String() != test.want {
				t.Errorf("got %v, %v", got.URL, err)
			}
		})
	}
}
