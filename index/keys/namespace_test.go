package keys_test

import (
	"path"
	"testing"
	"time"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/index/keys"
	"github.com/caddy-terraform/caddy-terraform-registry/index/memo"
)

// A namespace without a keys file, in a folder that could be listed, has no keys; its
// signatures are not checked, and the operator is told.
func TestANamespaceWithoutKeys(t *testing.T) {
	var none *keys.File
	if none.IsFile() || none.IsCopy() || none.Verifies() || none.IsUndecided(true) || none.IsUndecided(false) {
		t.Error("it has keys, or may have some")
	}
	c := keys.Claim{Address: address.Address{Namespace: "acme", Name: "demo"}, Version: "1.0.0"}
	var m memo.Memo
	for _, test := range []struct {
		rule                 string
		checksums, signature []byte
		note                 string
	}{
		{"nothing is signed", []byte("sums"), nil, ""},
		{"a signature of nothing", nil, []byte("signature"), "there is a signature without the SHA256SUMS it is of"},
		{"a signature", []byte("sums"), []byte("signature"), "the publisher's signature is not checked: put the publisher's public key in keys/acme.asc"},
	} {
		c.Checksums, c.Signature = test.checksums, test.signature
		if v, bad := none.Judge(c, &m, time.Now()); bad != nil || v.Signed || v.Note != test.note || m.Verified.Load() != 0 {
			t.Errorf("%s: it is %+v, %v", test.rule, v, bad)
		}
	}
}

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
			if got := path.Join(part.Path(), name); got != test.want {
				t.Errorf("it is %s", got)
			}
		})
	}
}

// Users write a namespace as messages and names of keys files have it.
func TestANamespaceIsParsedAsItIsWritten(t *testing.T) {
	for _, test := range []struct {
		text string
		want keys.Namespace // zero: it is refused
	}{
		{"acme", keys.Namespace{Name: "acme"}},
		{"registry.terraform.io/hashicorp", keys.Namespace{Hostname: "registry.terraform.io", Name: "hashicorp"}},
		{"", keys.Namespace{}},
		{"acme/", keys.Namespace{}},
		{"/acme", keys.Namespace{}},
		{"..", keys.Namespace{}},
		{"a.example/acme/demo", keys.Namespace{}},
		{"no host/acme", keys.Namespace{}},
	} {
		got, err := keys.ParseNamespace(test.text)
		switch {
		case got != test.want, (err == nil) != (test.want != keys.Namespace{}):
			t.Errorf("%q is %+v, %v", test.text, got, err)
		case err == nil && got.String() != test.text:
			t.Errorf("%q is written as %q", test.text, got)
		}
	}
}
