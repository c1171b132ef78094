package registryhcl_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
)

func constraints(t testing.TB, text string) address.Constraints {
	t.Helper()
	c, err := address.ParseConstraints(text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestSetNotice(t *testing.T) {
	text := func(s string) *string { return &s }
	long := strings.Repeat("a", 600)
	for _, test := range []struct {
		rule, before string
		versions     string
		reason, link *string
		after        string
		fails        string
	}{
		{"to a new file", "", "<1.2", text("a \"b\" ${c}"), text("https://example.com/"),
			"withdrawn \"< 1.2\" {\n  reason = \"a \\\"b\\\" $${c}\"\n  link   = \"https://example.com/\"\n}\n", ""},
		{"behind what there is, which stays as it is written", "# ours\nowner=\"a\"   # and so on\n\n\nwithdrawn \"1.0.0\" {}", "1.1.0", nil, nil,
			"# ours\nowner=\"a\"   # and so on\n\n\nwithdrawn \"1.0.0\" {}\n\nwithdrawn \"1.1.0\" {\n}\n", ""},
		{"a text with accents of their own", "", "1.1.0", text("cafe\u0301"), nil, "withdrawn \"1.1.0\" {\n  reason = \"caf\u00e9\"\n}\n", ""},
		{"the same is not written twice", "withdrawn \"= 1.1.0\" { reason = \"a\" }", "1.1.0", text("a"), nil, "withdrawn \"= 1.1.0\" { reason = \"a\" }", ""},
		{"of another kind is another one", "deprecated \"1.1.0\" {\n}\n", "1.1.0", nil, nil, "deprecated \"1.1.0\" {\n}\n\nwithdrawn \"1.1.0\" {\n}\n", ""},
		{"an argument is replaced, and what is not given stays", "withdrawn \"1.1.0\" { # c\n\t# d\n\treason   = \"a\" # e\n\tlink = \"https://a.example/\"\n}\n", "1.1.0", text("b"), nil,
			"withdrawn \"1.1.0\" { # c\n\t# d\n\treason   = \"b\" # e\n\tlink = \"https://a.example/\"\n}\n", ""},
		{"an argument is added", "withdrawn \"1.1.0\" {\n  reason = \"a\"\n}\nowner = \"b\"\n", "1.1.0", nil, text("https://a.example/"),
			"withdrawn \"1.1.0\" {\n  reason = \"a\"\n  link   = \"https://a.example/\"\n}\nowner = \"b\"\n", ""},
		{"an argument is added to a block that someone has formatted", "withdrawn \"1.1.0\" {\n\treason = \"a\" # c\n}\n", "1.1.0", nil, text("https://a.example/"),
			"withdrawn \"1.1.0\" {\n\treason = \"a\" # c\n  link = \"https://a.example/\"\n}\n", ""},
		{"a block on one line is written anew", "withdrawn \"1.1.0\" {}\nwithdrawn \"1.2.0\" { reason = \"a\" }\n", "1.2.0", nil, text("https://a.example/"),
			"withdrawn \"1.1.0\" {}\nwithdrawn \"1.2.0\" {\n  reason = \"a\"\n  link   = \"https://a.example/\"\n}\n", ""},
		{"a text over several lines is replaced", "withdrawn \"1.1.0\" {\n  reason = <<-EOT\n    a\n  EOT\n  link = \"https://a.example/\"\n}\n", "1.1.0", text("b"), nil,
			"withdrawn \"1.1.0\" {\n  reason = \"b\"\n  link = \"https://a.example/\"\n}\n", ""},
		{"a problem elsewhere is no obstacle to editing in place", "team = \"a\"\nwithdrawn \"1.1.0\" {\n  # c\n  reason = \"a\"\n}\n", "1.1.0", text("b"), nil,
			"team = \"a\"\nwithdrawn \"1.1.0\" {\n  # c\n  reason = \"b\"\n}\n", ""},
		{"an unknown argument of the block stays", "withdrawn \"1.1.0\" {\n  ticket = 42 # c\n}\n", "1.1.0", text("b"), nil,
			"withdrawn \"1.1.0\" {\n  ticket = 42 # c\n  reason = \"b\"\n}\n", ""},
		{"a reason that is too long is not cut in the file, if it is not given", "withdrawn \"1.1.0\" {\n  reason = \"" + long + "\"\n}\n", "1.1.0", nil, text("https://a.example/"),
			"withdrawn \"1.1.0\" {\n  reason = \"" + long + "\"\n  link = \"https://a.example/\"\n}\n", ""},
		{"a block on one line with something else stays", "owner = \"a\"\nwithdrawn \"1.1.0\" { ticket = 42 }\n", "1.1.0", text("b"), nil, "",
			"line 2: the block has more than a reason and a link on its line: edit it by hand"},
		{"and one with a comment", "withdrawn \"1.1.0\" { /* c */ }\n", "1.1.0", text("b"), nil, "", "line 1: the block has more than a reason and a link"},
		{"line breaks in a reason are spaces", "", "1.1.0", text("a\n b\x1b"), nil, "withdrawn \"1.1.0\" {\n  reason = \"a b\"\n}\n", ""},
		{"an unknown block elsewhere is no obstacle", "x {\n}\n", "1.1.0", nil, nil, "x {\n}\n\nwithdrawn \"1.1.0\" {\n}\n", ""},
		{"a file that is not HCL stays", "owner = \"a\"\nwithdrawn \"1.0.0\" {\n", "1.1.0", nil, nil, "", "line 2: "},
		{"one that is too deep", "a = " + strings.Repeat("[", 200), "1.1.0", nil, nil, "", "line 1: it is nested too deeply"},
		{"a link that is none", "", "1.1.0", nil, text("ftp://x"), "", "the link ftp://x is not the URL of a web page: begin it with https://, without a user or password"},
		{"a reason that is too long", "", "1.1.0", text(strings.Repeat("a", 501)), nil, "", "the reason is longer than 500 characters: shorten it"},
		{"no versions", "", "", nil, nil, "", "name the versions: withdrawn \">= 0\" stands for all"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			e := registryhcl.Edit{Kind: registryhcl.WithdrawnNotice, Versions: constraints(t, test.versions), Reason: test.reason, Link: test.link}
			after, err := registryhcl.Set([]byte(test.before), e)
			if test.fails != "" {
				if err == nil || !strings.HasPrefix(err.Error(), test.fails) {
					t.Errorf("the error is %v", err)
				}
				return
			}
			if err != nil || string(after) != test.after {
				t.Errorf("it is %q (%v)", after, err)
			}
		})
	}
}

func TestRemoveNotices(t *testing.T) {
	for _, test := range []struct{ rule, before, after, removed string }{
		{"the only one", "withdrawn \"1.1.0\" {\n}\n", "", "withdrawn"},
		{"with its comment, and one empty line", "owner = \"a\"\n\n# why\n// and how\nwithdrawn \"1.1.0\" {\n  reason = \"b\"\n}\n\n# b\nwithdrawn \"1.2.0\" {}\n",
			"owner = \"a\"\n\n# b\nwithdrawn \"1.2.0\" {}\n", "withdrawn"},
		{"of both kinds, and twice", "deprecated \"=1.1.0\" {}\nwithdrawn \"1.1.0\" {}\nowner = \"a\"\nwithdrawn \"1.1.0\" {}\n", "owner = \"a\"\n", "deprecated, withdrawn"},
		{"at the end", "owner = \"a\"\n\nwithdrawn \"1.1.0\" {}", "owner = \"a\"\n", "withdrawn"},
		{"wider ones stay", "withdrawn \"< 2.0.0\" {}\n", "withdrawn \"< 2.0.0\" {}\n", ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			after, kinds, err := registryhcl.Remove([]byte(test.before), constraints(t, "1.1.0"))
			var removed []string
			for _, k := range kinds {
				removed = append(removed, string(k))
			}
			if err != nil || string(after) != test.after || strings.Join(removed, ", ") != test.removed {
				t.Errorf("it is %q without %q (%v)", after, removed, err)
			}
		})
	}
}

func TestSetGit(t *testing.T) {
	git := func(repository, folder, tags, fetch string) registryhcl.Git {
		g, err := registryhcl.ParseGit(repository, folder, tags, fetch)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	const block = "git {\n  url = \"https://a.example/a\"\n}\n"
	for _, test := range []struct {
		rule, before string
		git          registryhcl.Git
		after        string
	}{
		{"to a new file", "", git("https://a.example/a", "", "", ""), block},
		{"behind what there is", "# ours\nowner=\"a\"\n", git("https://a.example/a", "", "v{version}", ""), "# ours\nowner=\"a\"\n\n" + block},
		{"in the place of another", "git { url = \"https://b.example/b\" }\n# ours\nowner=\"a\"\n", git("https://a.example/a", "b", "b-{version}", "all"),
			"git {\n  url    = \"https://a.example/a\"\n  folder = \"b\"\n  tags   = \"b-{version}\"\n  fetch  = \"all\"\n}\n# ours\nowner=\"a\"\n"},
		{"the same is not written twice", "git { url = \"https://a.example/a\" } # ours\n", git("https://a.example/a", "", "", ""), "git { url = \"https://a.example/a\" } # ours\n"},
		{"in the place of what is none", "git {\n}\n", git("https://a.example/a", "", "", ""), block},
	} {
		t.Run(test.rule, func(t *testing.T) {
			if after, err := registryhcl.SetGit([]byte(test.before), test.git); err != nil || string(after) != test.after {
				t.Errorf("it is %q (%v)", after, err)
			}
		})
	}
}

// Whatever a file contains, a notice counts after it is set, and is gone after it is
// removed.
func FuzzSetNotice(f *testing.F) {
	f.Add("", "a", "https://a.example/")
	f.Add("withdrawn \"< 2\" { reason = \"x\" }\n", "b", "")
	f.Add("withdrawn \"<2\" {\n reason = <<A\nx\nA\n link = \"https://b.example\"}", "${x}", "https://a.example/?a=${b}")
	f.Fuzz(func(t *testing.T, before, reason, link string) {
		e := registryhcl.Edit{Kind: registryhcl.WithdrawnNotice, Versions: constraints(t, "< 2"), Reason: &reason, Link: &link}
		if e.Check() != nil {
			return
		}
		after, err := registryhcl.Set([]byte(before), e)
		if err != nil {
			return
		}
		m, problems := registryhcl.Parse(after)
		old, oldProblems := registryhcl.Parse([]byte(before))
		if len(problems) > len(oldProblems) || len(m.Deprecated) != len(old.Deprecated) {
			t.Fatalf("%q has become %q: %v", before, after, problems)
		}
		if !slices.ContainsFunc(m.Withdrawn, func(n registryhcl.Notice) bool { return n.Versions.String() == "< 2" }) {
			t.Fatalf("%q has become %q", before, after)
		}
		again, err := registryhcl.Set(after, e)
		if err != nil || string(again) != string(after) {
			t.Fatalf("once more, %q has become %q (%v)", after, again, err)
		}
		removed, _, err := registryhcl.Remove(after, e.Versions)
		if m, _ := registryhcl.Parse(removed); err != nil || slices.ContainsFunc(m.Withdrawn, func(n registryhcl.Notice) bool { return n.Versions.String() == "< 2" }) {
			t.Fatalf("%q without it is %q (%v)", after, removed, err)
		}
	})
}
