package keys_test

import (
	"path"
	"testing"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/index/keys"
)

func TestKeysFileOfANamespace(t *testing.T) {
	p := indextest.NewPublisher(t)
	files := indextest.New(t).Keys("ACME", p).Keys("both", p).Keys("BOTH", p).Keys("a.example/Acme", p)
	open, err := files.Open()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ rule, hostname, namespace, want string }{
		{"another spelling", "", "acme", "keys/ACME.asc"},
		{"its very name before another spelling", "", "both", "keys/both.asc"},
		{"of a hostname", "a.example", "acme", "keys/a.example/Acme.asc"},
		{"none of a hostname", "b.example", "acme", "keys/b.example/acme.asc"},
		{"none at all", "", "new", "keys/new.asc"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			part, name, _ := keys.Locate(open, svchost.Hostname(test.hostname), test.namespace)
			if got := path.Join(part.Dir, name); got != test.want {
				t.Errorf("it is %s", got)
			}
		})
	}
}
