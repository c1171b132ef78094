package registryhcl_test

import (
	"fmt"
	"reflect"
	"runtime/debug"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	version "github.com/hashicorp/go-version"

	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
)

// said is metadata on one line, for comparison.
func said(m registryhcl.File) string {
	var words []string
	for _, text := range [][2]string{{"description", m.Description}, {"source", m.Source}, {"owner", m.Owner}} {
		if text[1] != "" {
			words = append(words, text[0]+"="+text[1])
		}
	}
	for _, n := range m.Deprecated {
		words = append(words, strings.TrimSpace("deprecated "+n.Versions.String()+" "+n.String()))
	}
	for _, n := range m.Withdrawn {
		words = append(words, strings.TrimSpace("withdrawn "+n.Versions.String()+" "+n.String()))
	}
	if g := m.Git; g != nil {
		words = append(words, fmt.Sprintf("git %s//%s %s %v", g.URL, g.Folder, g.Tags, g.FetchAll))
	}
	return strings.Join(words, "; ")
}

func TestParseMetadata(t *testing.T) {
	for _, test := range []struct {
		rule, content, says string
		problems            []string
	}{
		{"an empty file says nothing", "", "", nil},
		{"all there is", `
description = "A VPC with subnets in every zone"
source      = "https://github.com/acme/terraform-aws-vpc"
owner       = "platform team"

deprecated "< 1.2.0" {
  reason = "subnets overlap: use 1.2 or newer"
  link   = "https://example.com/subnets"
}
withdrawn "1.3.0" {
  reason = "CVE-2026-1"
}`, "description=A VPC with subnets in every zone; source=https://github.com/acme/terraform-aws-vpc; owner=platform team; " +
			"deprecated < 1.2.0 subnets overlap: use 1.2 or newer (https://example.com/subnets); withdrawn 1.3.0 CVE-2026-1", nil},
		{"blocks are repeated, and say no reason", "deprecated \"1.0.0\" {}\ndeprecated \">= 2, < 2.3\" {}\nwithdrawn \">= 0\" {}\n",
			"deprecated 1.0.0; deprecated >= 2, < 2.3; withdrawn >= 0", nil},
		{"Windows writes it with a byte order mark", "\ufeffowner = \"a\"\r\nwithdrawn \"1.0.0\" {\r\n}\r\n", "owner=a; withdrawn 1.0.0", nil},
		{"a text over several lines becomes one line", "description = <<-EOT\n    First.\n\n    Second.\n  EOT\n", "description=First. Second.", nil},
		{"what does not print is dropped", `owner = "a\u001b[31m\u0000b\u202e c"`, "owner=a[31mb c", nil},

		{"unknown names", "descripton = \"x\"\nowner = \"a\"\nwithdraw \"1.0.0\" {}\n", "owner=a",
			[]string{"line 1: there is no argument descripton: use description, source or owner", "line 3: there is no block withdraw: use deprecated, withdrawn or git"}},
		{"an argument where a block is meant", `withdrawn = "1.0.0"`, "",
			[]string{`line 1: withdrawn is a block: write withdrawn "< 1.2.0" { reason = "…" }`}},
		{"a constraint that is none hides no other", "withdrawn \"1.x\" {}\nwithdrawn \"1.1.0\" {}\n", "withdrawn 1.1.0",
			[]string{`line 1: "1.x" is not a version constraint: write an operator and up to three numbers, like ~> 1.2, and a comma before the next one`}},
		{"no constraint", "withdrawn {}\ndeprecated \"\" {}\ndeprecated \"1.0.0\" \"1.1.0\" {}\n", "", []string{
			`line 1: a block withdrawn has one version constraint, such as withdrawn "< 1.2.0": repeat the block for others`,
			`line 2: name the versions: deprecated ">= 0" stands for all`,
			`line 3: a block deprecated has one version constraint, such as deprecated "< 1.2.0": repeat the block for others`,
		}},
		{"a link that pages cannot have", `
source = "git@github.com:acme/x.git"
deprecated "1.0.0" {
  link = "javascript:alert(1)"
}
deprecated "1.1.0" { link = "https://user:secret@example.com/" }`, "deprecated 1.0.0; deprecated 1.1.0", []string{
			"line 2: source must be the URL of a web page: begin it with https://, without a user or password",
			"line 4: link must be the URL of a web page: begin it with https://, without a user or password",
			"line 6: link must be the URL of a web page: begin it with https://, without a user or password",
		}},
		{"values of other types, and expressions, are not evaluated", `
description = 1
owner       = "a${1 + 1}"
deprecated "1.0.0" {
  reason = null
}`, "deprecated 1.0.0", []string{
			"line 2: description must be a plain string: write it in quotation marks",
			"line 3: owner must be a plain string: write it in quotation marks",
			"line 5: reason must be a plain string: write it in quotation marks",
		}},
		{"a notice with more than it can say", "withdrawn \"1.0.0\" {\n  reasons = \"x\"\n  deprecated \"1.1.0\" {}\n}", "withdrawn 1.0.0", []string{
			"line 2: there is no argument reasons in a block withdrawn: use reason or link",
			"line 3: there are no blocks in a block withdrawn: close it with } before this line",
		}},
		{"half a file", "withdrawn \"1.0.0\" {}\nwithdrawn \"1.1.0\" {\n  reason = \"CVE", "withdrawn 1.0.0; withdrawn 1.1.0 CVE",
			[]string{"line 3: no closing marker was found for the string"}},
		{"a text that is too long is cut", fmt.Sprintf("owner = %q", strings.Repeat("ä", 201)), "owner=" + strings.Repeat("ä", 199) + "…",
			[]string{"line 1: owner is longer than 200 characters, which is all that is shown: shorten it"}},
		{"a file that is too large", "owner = \"a\"\n" + strings.Repeat("#", 64<<10), "", []string{"line 1: the file is larger than 64 KiB: shorten it"}},
		{"a repository", "git {\n  url = \"https://GitHub.com/acme/vpc.git\"\n}\n", "git https://github.com/acme/vpc.git// v{version} false", nil},
		{"a repository with all there is", `git {
  url    = "https://git.example.com:8443/acme/modules/"
  folder = "modules/vpc/"
  tags   = "vpc/v{version}"
  fetch  = "all"
}`, "git https://git.example.com:8443/acme/modules//modules/vpc vpc/v{version} true", nil},
		{"a repository that is not over HTTPS", `git { url = "git@github.com:acme/vpc.git" }`, "",
			[]string{"line 1: git: url must be the URL of a repository: begin it with https://, without a user, a password or a branch"}},
		{"a repository with credentials", `git { url = "https://u:p@github.com/acme/vpc.git" }`, "",
			[]string{"line 1: git: url must be the URL of a repository: begin it with https://, without a user, a password or a branch"}},
		{"a repository with a folder in its URL", `git { url = "https://github.com/acme/modules.git//vpc" }`, "",
			[]string{"line 1: git: url has the folder of a module after //, as sources in Terraform have: name it as folder"}},
		{"no repository", "git {\n}\n", "",
			[]string{"line 1: git: url must be the URL of a repository: begin it with https://, without a user, a password or a branch"}},
		{"two repositories: the first counts", "git {\n url = \"https://a.example/a\"\n}\ngit {\n url = \"https://b.example/b\"\n}\n", "git https://a.example/a// v{version} false",
			[]string{"line 4: there is more than one block git: a module has one repository"}},
		{"a folder that leads out", "git {\n url = \"https://a.example/a\"\n folder = \"../b\"\n}\n", "",
			[]string{"line 1: git: folder must be the path of a folder in the repository, such as modules/vpc: its names have letters, digits and -._~+ only"}},
		{"tags without a version", "git {\n url = \"https://a.example/a\"\n tags = \"v*\"\n}\n", "",
			[]string{`line 1: git: tags: "v*" has no {version}: write it where tags have the version, such as vpc/v{version}`}},
		{"another word for fetch", "git {\n url = \"https://a.example/a\"\n fetch = \"some\"\n}\n", "",
			[]string{"line 1: git: fetch is some: write all, or leave it out to fetch a version when it is first asked for"}},
		{"an argument of git that there is not", "git {\n url = \"https://a.example/a\"\n path = \"b\"\n}\nowner = \"a\"\n", "owner=a",
			[]string{"line 3: there is no argument path in a block git: use url, folder, tags or fetch"}},
		{"git is a block", `git = "https://a.example/a"`, "", []string{`line 1: git is a block: write git { url = "https://…" }`}},
		{"it is not HCL", `{"withdrawn": {"1.0.0": {}}}`, "", []string{"line 1: an argument or block definition is required here"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			m, problems := registryhcl.Parse([]byte(test.content))
			if got := said(m); got != test.says {
				t.Errorf("it says %q, not %q", got, test.says)
			}
			var got []string
			for _, p := range problems {
				got = append(got, p.String())
			}
			if !reflect.DeepEqual(got, test.problems) {
				t.Errorf("the problems are %q", got)
			}
		})
	}
}

// The parser is recursive: deeply nested text is not parsed.
func TestNestingIsBounded(t *testing.T) {
	before := debug.SetMaxStack(8 << 20) // one more frame a byte would exceed it
	defer debug.SetMaxStack(before)
	for _, opening := range []string{"[", "(", "{", "a {", "!", "-", `"${`, "a?", "a[*].", "a.*.", "%{if a}", "f(", "{a=", "a ? b : "} {
		for _, format := range []string{"owner = %s", "owner = 1" + strings.Repeat("]", 30_000) + "\nowner = %.30000s", "owner = %s\nwithdrawn \"1.0.0\" {}", "owner = \"%s\"", "withdrawn \"1.0.0\" {\n%s", "%s"} {
			const size = 64<<10 - 100
			m, problems := registryhcl.Parse(fmt.Appendf(nil, format, strings.Repeat(opening, size/len(opening))))
			if len(problems) == 0 && m.Owner == "" {
				t.Errorf("%q in %q is no problem: %+v", opening, format, m)
			}
		}
	}
}

func TestManyProblemsAndNotices(t *testing.T) {
	m, problems := registryhcl.Parse([]byte(strings.Repeat("withdrawn \"1.0.0\" {}\n", 1500) + strings.Repeat("deprecated {}\n", 100)))
	if len(m.Withdrawn) != 1000 || len(problems) != 20 {
		t.Errorf("%d notices and %d problems", len(m.Withdrawn), len(problems))
	}
	if _, problems = registryhcl.Parse([]byte(`withdrawn "` + strings.Repeat("!= 1.0.0-a, ", 2) + strings.Repeat("> 1", 1) + `" {}`)); len(problems) > 0 {
		t.Errorf("a list of constraints: %v", problems)
	}
}

func FuzzParseMetadata(f *testing.F) {
	f.Add("description = \"a\"\nsource = \"https://a.example\"\ndeprecated \"< 1\" {\n  reason = \"b\"\n  link = \"http://c.example\"\n}\nwithdrawn \"1.0.0\" {}\n")
	f.Add("owner = <<EOT\na\nEOT\nwithdrawn \"~> 1.0, != 1.0.1\" {")
	f.Add("a = [{(!-\"${%{")
	versions := []*version.Version{version.Must(version.NewVersion("1.0.0")), version.Must(version.NewVersion("2.0.0-rc.1"))}
	f.Fuzz(func(t *testing.T, content string) {
		m, problems := registryhcl.Parse([]byte(content))
		lines := strings.Count(content, "\n") + 1
		for _, p := range problems {
			if p.Line < 1 || p.Line > lines || p.Detail == "" || !shows(p.Detail) {
				t.Fatalf("the problem is %+v", p)
			}
		}
		for _, n := range append(m.Deprecated, m.Withdrawn...) {
			if len(n.Versions) == 0 || !shows(n.Reason) || n.Link != "" && !strings.HasPrefix(n.Link, "http") {
				t.Fatalf("the notice is %+v", n)
			}
		}
		for _, v := range versions {
			m.DeprecatedVersion(v)
			m.WithdrawnVersion(v)
		}
		if !shows(m.Description) || !shows(m.Owner) || m.Source != "" && !strings.HasPrefix(m.Source, "http") {
			t.Fatalf("it is %+v", m)
		}
	})
}

// shows reports whether a text can be shown on one line of a terminal.
func shows(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}
