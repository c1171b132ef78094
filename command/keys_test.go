package command

import (
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-terraform/caddy-terraform-registry/command/commandtest"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/module"
)

func TestKeysForget(t *testing.T) {
	file := configFile(t, `{"handle":[`+openRegistry+`]}`)
	roots := rootsOf(t, file)
	author := indextest.NewPublisher(t)
	files := indextest.OnDisk(t, roots+"/open").Keys("acme", author)
	files.Provider("acme/demo", "1.0.0", "linux_amd64").Signed(author)
	serve(t, file)
	app, err := module.ConfiguredApp(caddy.ActiveContext())
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range app.ByRoot() {
		if _, err := x.Rescan(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	forget := func(args ...string) (string, error) {
		out, _, err := commandtest.Run(t.Context(), keysCommand(), append([]string{"forget", "--address", "unix/" + roots + "/admin"}, args...)...)
		return out, err
	}
	for _, test := range []struct {
		rule   string
		args   []string
		says   string
		status int
	}{
		{"no namespace", nil, "give one namespace", 2},
		{"two", []string{"acme", "other"}, "give one namespace", 2},
		{"what is none", []string{"a/b/c"}, "is not a provider namespace", 2},
		{"one without keys", []string{"other"}, "other: there is no copy of its keys", 1},
		{"one whose file is there", []string{"acme"}, "remove keys/acme.asc", 2},
		{"in no tree", []string{"acme", "--root", "/elsewhere"}, "no tree with the root", 2},
	} {
		if out, err := forget(test.args...); out != "" || commandtest.Status(err) != test.status || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: status %d, %q, %v", test.rule, commandtest.Status(err), out, err)
		}
	}
	files.Remove("keys/acme.asc")
	out, err := forget("acme")
	if err != nil || out != "The keys of acme are forgotten in "+roots+"/open.\n" {
		t.Errorf("%q, %v", out, err)
	}
}

func TestKeysForgetWithoutAServer(t *testing.T) {
	_, _, err := commandtest.Run(t.Context(), keysCommand(), "forget", "--address", "unix/"+t.TempDir()+"/admin", "acme")
	if err == nil || !strings.Contains(err.Error(), "has not done it") {
		t.Error(err)
	}
}
