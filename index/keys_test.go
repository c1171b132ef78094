package index_test

import (
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

func TestKeys(t *testing.T) {
	a, b := indextest.NewPublisher(t), indextest.NewPublisher(t)
	for _, test := range []struct {
		rule   string
		build  func(files *indextest.Tree)
		path   string
		reason tree.Reason
	}{
		{"a namespace in upper case is the same", func(files *indextest.Tree) { files.Keys("ACME", a) }, "", ""},
		{"files that are not keys are ignored", func(files *indextest.Tree) {
			files.Keys("acme", a).Write("keys/README.md", "x").Write("keys/x/y.asc", "x")
		}, "", ""},
		{"a block that is not a key is withheld, the others are not", func(files *indextest.Tree) {
			files.Write("keys/acme.asc", a.PublicKey()+"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nAAAA\n-----END PGP PUBLIC KEY BLOCK-----\n")
		}, "keys/acme.asc", tree.BadKeys},
		{"two files of one namespace", func(files *indextest.Tree) { files.Keys("Acme", b).Keys("acme", a) }, "keys/Acme.asc", tree.Duplicate},
		{"an empty file", func(files *indextest.Tree) { files.Keys("acme", a).Write("keys/other.asc", "") }, "keys/other.asc", tree.Empty},
		{"a file of any size", func(files *indextest.Tree) {
			files.Keys("acme", a).Write("keys/other.asc", strings.Repeat("x", 1<<20+1))
		}, "keys/other.asc", tree.TooLarge},
		{"a folder of no hostname", func(files *indextest.Tree) { files.Keys("acme", a).Keys("a..b/acme", b) }, "keys/a..b", tree.BadName},
	} {
		t.Run(test.rule, func(t *testing.T) {
			files := indextest.New(t)
			test.build(files)
			files.Provider("acme/demo", "1.0.0", "linux_amd64").Signed(a)
			s := scan(t, files)
			if o := offerOf(s, "acme/demo", "1.0.0"); o.Signature != "publisher "+a.ID() {
				t.Errorf("the offer is %+v", o)
			}
			if test.reason == "" {
				nothingWithheld(t, s)
			} else if p := problemOf(s.Report().Withheld, test.path); p.Reason != test.reason || len(s.Report().Withheld) != 1 {
				t.Errorf("withheld is %+v", s.Report().Withheld)
			}
		})
	}
}
