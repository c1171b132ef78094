package registryhcl_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
)

// blocks are notices about versions below 1.0.0.
func blocks(kind string, count int) string {
	var b strings.Builder
	for n := range count {
		fmt.Fprintf(&b, "%s \"0.%d.0\" {}\n", kind, n)
	}
	return b.String()
}

// An edit that would not count, or by which something else would not, is refused.
func TestEditsThatWouldNotCount(t *testing.T) {
	withdraw := func(before []byte) ([]byte, error) {
		return registryhcl.Set(before, registryhcl.Edit{Kind: registryhcl.WithdrawnNotice, Versions: constraints(t, "1.1.0")})
	}
	deprecate := func(before []byte) ([]byte, error) {
		return registryhcl.Set(before, registryhcl.Edit{Kind: registryhcl.DeprecatedNotice, Versions: constraints(t, "1.1.0")})
	}
	restore := func(before []byte) ([]byte, error) {
		after, _, err := registryhcl.Remove(before, constraints(t, "1.1.0"))
		return after, err
	}
	connect := func(before []byte) ([]byte, error) {
		g, err := registryhcl.ParseGit("https://a.example/a", "", "", "")
		if err != nil {
			t.Fatal(err)
		}
		return registryhcl.SetGit(before, g)
	}
	const tooLarge = "it would be larger than 64 KiB: put several versions into one constraint"
	const tooMany = "it would have more than 1000 blocks withdrawn: put several versions into one constraint"
	const elsewhere = "other parts of the file would not be read after the change: edit it by hand"
	full := "# " + strings.Repeat("a", registryhcl.MaxSize-10) + "\n"
	for _, test := range []struct {
		rule, before string
		edit         func([]byte) ([]byte, error)
		says         string // empty: it counts
	}{
		{"a notice for which the file has no room", full, withdraw, tooLarge},
		{"a repository for which it has no room", full, connect, tooLarge},
		{"one block more than count", blocks("withdrawn", 1000), withdraw, tooMany},
		{"a block that does not count already", blocks("withdrawn", 1000) + "withdrawn \"1.1.0\" {}\n", withdraw, tooMany},
		{"the last block that counts", blocks("withdrawn", 999), withdraw, ""},
		{"a block of the other kind", blocks("withdrawn", 1001), deprecate, ""},
		{"a block less", blocks("withdrawn", 1000) + "withdrawn \"1.1.0\" {}\n", restore, ""},
		{"a block less, in whose place another one counts", "withdrawn \"1.1.0\" {}\n" + blocks("withdrawn", 1000), restore, ""},
		{"a comment that begins behind the block", "withdrawn \"1.1.0\" {\n} /* see\nthe ticket */\n", restore, elsewhere},
		{"a comment that ends before it", "/* the ticket\n*/ withdrawn \"1.1.0\" {\n}\n\nwithdrawn \"1.2.0\" {}\n", restore, elsewhere},
		{"and would go on to the next one", "/* the ticket\n*/ withdrawn \"1.1.0\" {\n}\n\nwithdrawn \"1.2.0\" {}\n/* c */\n", restore, elsewhere},
		{"also over an argument", "/* the ticket\n*/ withdrawn \"1.1.0\" {\n}\nowner = \"a\"\n/* c */\n", restore, elsewhere},
		{"a comment on the line of the block", "/* c */ withdrawn \"1.1.0\" {} /* d */\nowner = \"a\"\n", restore, ""},
		{"while an unknown block may withdraw it", "withdrawn \"1.1.0\" {}\n\nmaintainer {\n}\n", restore, "line 3: there is no block maintainer: use deprecated, withdrawn or git: fix the file first"},
		{"while only the block itself cannot be read", "withdrawn \"1.1.0\" {\n  versions {}\n}\n", restore, ""},
		{"while something withdraws nothing", "team = \"a\"\nwithdrawn \"1.1.0\" {}\n", restore, ""},
		{"a deprecation, which no unknown block keeps", "deprecated \"1.1.0\" {}\nmaintainer {\n}\n", restore, ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			after, err := test.edit([]byte(test.before))
			switch {
			case test.says == "" && (err != nil || string(after) == test.before):
				t.Errorf("it is %q (%v)", after, err)
			case test.says != "" && (err == nil || err.Error() != test.says):
				t.Errorf("the error is %v", err)
			}
		})
	}
}
