package server

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// Rules that do not arrive as they were written would keep nothing private.
func TestPrivate(t *testing.T) {
	open := Registry("/srv", "/etc/key.asc", "")
	private := Private(open, "/etc/tokens", []string{"deny group:contractors read secret", "allow ci read acme registry.terraform.io"})
	got, err := json.Marshal(private)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"access":{"rules":[` +
		`{"addresses":["secret"],"effect":"deny","right":"read","who":"group:contractors"},` +
		`{"addresses":["acme","registry.terraform.io"],"effect":"allow","right":"read","who":"ci"}]},` +
		`"auth":[{"file":"/etc/tokens","provider":"terraform_tokens"}],` +
		`"handler":"terraform_registry","root":"/srv","signing_key":{"file":"/etc/key.asc"}}`
	if string(got) != want {
		t.Errorf("it is\n%s, want\n%s", got, want)
	}
	if len(open) != 3 {
		t.Errorf("the open registry has become %v", open)
	}
}

func TestGetAs(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, fmt.Sprintf("%q of %s", r.Header["Authorization"], r.Host))
	}))
	defer site.Close()
	p := &Process{addresses: map[string]string{"site": site.Listener.Addr().String()}, log: new(log)}
	for authorization, want := range map[string]string{
		"":             `[] of ` + Host,
		"Bearer token": `["Bearer token"] of ` + Host,
	} {
		answer, err := p.GetAs(t.Context(), "site", "/", authorization)
		if err != nil {
			t.Fatal(err)
		}
		if string(answer.Body) != want {
			t.Errorf("with %q the site sees %s, want %s", authorization, answer.Body, want)
		}
	}
}
