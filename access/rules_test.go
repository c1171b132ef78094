package access_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

func TestDecide(t *testing.T) {
	var (
		anonymous = access.Subject{}
		ann       = access.Subject{ID: "ann", Groups: []string{"devs"}}
		bob       = access.Subject{ID: "bob"}
	)
	for _, test := range []struct {
		rule    string
		rules   string // one a line
		subject access.Subject
		right   access.Right
		allowed bool
		decides int // which of the rules, from one; zero: none
	}{
		{"without rules it is denied", "", ann, access.Read, false, 0},
		{"a resource without a rule is denied", "allow ann read other", ann, access.Read, false, 0},
		{"so is a subject without one", "allow ann read acme", bob, access.Read, false, 0},
		{"the first rule decides", "allow ann read acme\ndeny ann read acme", ann, access.Read, true, 1},
		{"also if it denies", "deny ann read acme\nallow ann read acme", ann, access.Read, false, 1},
		{"of those that cover the resource", "deny ann read acme/other\nallow ann read acme", ann, access.Read, true, 2},
		{"of those that include the subject", "deny bob read acme\nallow ann read acme", ann, access.Read, true, 2},
		{"of those about the right", "deny ann publish acme\nallow ann read acme", ann, access.Read, true, 2},
		{"a later pattern counts like the first", "allow ann read other acme", ann, access.Read, true, 1},
		{"a specific rule takes effect before a general one", "deny ann read acme/demo\nallow ann read *", ann, access.Read, false, 1},
		{"but not after it", "allow ann read *\ndeny ann read acme/demo", ann, access.Read, true, 1},
		{"one group is enough", "allow group:devs read acme", ann, access.Read, true, 1},
		{"an ID may be an exception to a group", "deny ann read acme\nallow group:devs read acme", ann, access.Read, false, 1},

		{"read does not include publish", "allow ann read acme", ann, access.Publish, false, 0},
		{"publish does not include read", "allow ann publish acme", ann, access.Read, false, 0},
		{"publish alone", "allow ann publish acme", ann, access.Publish, true, 1},
		{"an unknown right is denied", "allow anonymous read *\nallow anonymous publish *\nallow anonymous manage *", ann, access.Right(3), false, 0},

		{"publish does not include manage", "allow ann publish acme", ann, access.Manage, false, 0},
		{"manage alone", "allow ann manage acme", ann, access.Manage, true, 1},
		{"manage includes publish", "allow ann manage acme", ann, access.Publish, true, 1},
		{"manage does not include read", "allow ann manage acme", ann, access.Read, false, 0},
		{"read does not include manage", "allow ann read acme", ann, access.Manage, false, 0},
		{"who is denied to manage may publish", "deny ann manage acme\nallow ann publish acme", ann, access.Publish, true, 2},
		{"and may not manage", "deny ann manage acme\nallow ann manage acme", ann, access.Manage, false, 1},
		{"who is denied to publish may not manage", "deny ann publish acme\nallow ann manage acme", ann, access.Manage, false, 1},
		{"nor publish by the right to manage", "deny ann publish acme\nallow ann manage acme", ann, access.Publish, false, 1},
		{"unless that comes first", "allow ann manage acme\ndeny ann publish acme", ann, access.Publish, true, 1},
		{"for both rights", "allow ann manage acme\ndeny ann publish acme", ann, access.Manage, true, 1},
		{"everyone may publish if anonymous may manage", "deny ann publish acme\nallow anonymous manage acme", ann, access.Publish, true, 2},

		{"anonymous may read", "allow anonymous read acme", anonymous, access.Read, true, 1},
		{"so everyone may", "allow anonymous read acme", ann, access.Read, true, 1},
		{"even if an earlier rule denies it to them", "deny ann read acme\nallow anonymous read acme", ann, access.Read, true, 2},
		{"or to all authenticated subjects", "deny authenticated read acme\nallow anonymous read acme", ann, access.Read, true, 2},
		{"the same for publish", "deny ann publish acme\nallow anonymous publish acme", ann, access.Publish, true, 2},
		{"unless anonymous may not", "deny anonymous read acme\nallow anonymous read *", anonymous, access.Read, false, 1},
		{"which denies it to no others", "deny anonymous read acme\nallow anonymous read *", ann, access.Read, true, 2},
		{"unless another rule does", "deny anonymous read acme\ndeny ann read acme\nallow anonymous read *", ann, access.Read, false, 2},
		{"authenticated does not include anonymous", "allow authenticated read acme", anonymous, access.Read, false, 0},
		{"groups do not count without an ID", "allow group:devs read acme", access.Subject{Groups: []string{"devs"}}, access.Read, false, 0},
		{"and a wildcard matches no missing ID", "allow a* read acme", anonymous, access.Read, false, 0},
	} {
		t.Run(test.rule, func(t *testing.T) {
			var lines []string
			if test.rules != "" {
				lines = strings.Split(test.rules, "\n")
			}
			rules := rulesOf(t, lines...)
			d := rules.Decide(test.subject, test.right, provider)
			if d.Allowed != test.allowed {
				t.Errorf("allowed: %t", d.Allowed)
			}
			if i := slices.Index(slices.Collect(rules.All()), d.Rule) + 1; i != test.decides {
				t.Errorf("rule %d decides, not %d", i, test.decides)
			}
			if test.subject.Anonymous() && test.right == access.Read && rules.Public(provider) != test.allowed {
				t.Errorf("public: %t", !test.allowed)
			}
		})
	}
}

func TestAllowsAll(t *testing.T) {
	for _, test := range []struct {
		rule    string
		rules   string // one a line
		subject string
		want    bool
	}{
		{"no rules allow nothing", "", "ann", false},
		{"everything", "allow ann read *", "ann", true},
		{"everything to others", "allow ann read *", "bob", false},
		{"another right to everything", "allow ann publish *", "ann", false},
		{"nor does the right to manage everything count", "allow ann manage *", "ann", false},
		{"everything hosted is not everything", "allow ann read */*", "ann", false},
		{"everything mirrored is not", "allow ann read *.*", "ann", false},
		{"everything among other patterns", "allow ann read acme *", "ann", true},
		{"everything but a part", "deny ann read acme\nallow ann read *", "ann", false},
		{"a part that is denied too late", "allow ann read *\ndeny ann read acme", "ann", true},
		{"a part that is denied to others", "deny bob read acme\nallow authenticated read *", "ann", true},
		{"a part that is allowed before", "allow ann read acme\nallow authenticated read *", "ann", true},
		{"another right that is denied", "deny ann publish acme\nallow ann read *", "ann", true},
		{"everything to everyone", "allow anonymous read *", "", true},
		{"also to those to whom an earlier rule denies a part", "deny ann read acme\nallow anonymous read *", "ann", true},
		{"unless it is denied to everyone without an ID too", "deny anonymous read acme\ndeny ann read acme\nallow anonymous read *", "ann", false},
		{"or to these alone", "deny anonymous read acme\nallow anonymous read *", "ann", true},
		{"who are then not allowed everything", "deny anonymous read acme\nallow anonymous read *", "", false},
	} {
		t.Run(test.rule, func(t *testing.T) {
			var lines []string
			if test.rules != "" {
				lines = strings.Split(test.rules, "\n")
			}
			if got := rulesOf(t, lines...).AllowsAll(access.Subject{ID: test.subject}, access.Read); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
	if (*access.Rules)(nil).AllowsAll(access.Subject{ID: "ann"}, access.Read) {
		t.Error("nil rules allow everything")
	}
}

func TestAllowsAny(t *testing.T) {
	for _, test := range []struct {
		rule    string
		rules   []string
		subject string
		want    bool
	}{
		{"no rules allow nothing", nil, "ann", false},
		{"a part", []string{"allow ann read acme"}, "ann", true},
		{"a part to others", []string{"allow ann read acme"}, "bob", false},
		{"a part to everyone", []string{"allow anonymous read acme"}, "ann", true},
		{"to everyone with credentials", []string{"allow authenticated read acme"}, "", false},
		{"another right", []string{"allow ann publish acme"}, "ann", false},
		{"what is denied is not allowed", []string{"deny ann read acme"}, "ann", false},
		{"after everything is denied", []string{"deny ann read *", "allow authenticated read acme"}, "ann", false},
		{"before everything is denied", []string{"allow ann read acme", "deny ann read *"}, "ann", true},
		{"after everything is denied to others", []string{"deny bob read *", "allow authenticated read acme"}, "ann", true},
		{"after a part is denied", []string{"deny ann read acme", "allow authenticated read *"}, "ann", true},
		{"a part to everyone, after everything is denied", []string{"deny ann read *", "allow anonymous read acme"}, "ann", true},
	} {
		if got := rulesOf(t, test.rules...).AllowsAny(access.Subject{ID: test.subject}, access.Read); got != test.want {
			t.Errorf("%s: got %v", test.rule, got)
		}
	}
	if (*access.Rules)(nil).AllowsAny(access.Subject{}, access.Read) {
		t.Error("nil rules allow something")
	}
}

func TestAllowsHostname(t *testing.T) {
	const origin, own = "origin.example.com", "own.example.com"
	for _, test := range []struct {
		rule     string
		rules    string // one a line
		subject  string
		hostname svchost.Hostname // empty: hosted
		want     bool
	}{
		{"everything has it all", "allow anonymous read *", "", origin, true},
		{"the hostname alone", "allow anonymous read origin.example.com", "", origin, true},
		{"every name of it", "allow anonymous read origin.example.com/*/*", "", origin, true},
		{"every module is not every provider", "allow anonymous read origin.example.com/*/*/*", "", origin, false},
		{"a wildcard of hostnames", "allow anonymous read *.example.com", "", origin, true},
		{"another hostname", "allow anonymous read other.example.com", "", origin, false},
		{"a namespace of it", "allow anonymous read origin.example.com/acme", "", origin, false},
		{"hosted resources are not mirrored", "allow anonymous read */*", "", origin, false},
		{"a part that is denied", "deny anonymous read origin.example.com/acme\nallow anonymous read *", "", origin, false},
		{"a part of another hostname that is denied", "deny anonymous read other.example.com acme\nallow anonymous read *", "", origin, true},
		{"another subject", "allow ann read origin.example.com", "", origin, false},
		{"that subject", "allow ann read origin.example.com", "ann", origin, true},
		{"another right", "allow ann publish *", "ann", origin, false},
		{"everything hosted", "allow anonymous read */*", "", "", true},
		{"everything hosted, by a name of the registry", "allow anonymous read own.example.com", "", "", true},
		{"something hosted", "allow anonymous read acme", "", "", false},
		{"something hosted that is denied by name", "deny anonymous read own.example.com/acme\nallow anonymous read *", "", "", false},
		{"something mirrored that is denied", "deny anonymous read origin.example.com\nallow anonymous read *", "", "", true},
	} {
		t.Run(test.rule, func(t *testing.T) {
			rules := rulesOf(t, strings.Split(test.rules, "\n")...).WithHostnames([]svchost.Hostname{own})
			if got := rules.AllowsHostname(access.Subject{ID: test.subject}, access.Read, test.hostname); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
	if (*access.Rules)(nil).AllowsHostname(access.Subject{}, access.Read, origin) {
		t.Error("nil rules allow it")
	}
}

// Subjects of one audience have the same rights to everything.
func TestAudience(t *testing.T) {
	rules := rulesOf(t,
		"deny anonymous read acme/secret",
		"allow group:devs publish *",
		"allow anonymous read acme other",
		"deny ann read third/secret",
		"allow group:devs read third",
		"allow a* read fourth",
	)
	subjects := []access.Subject{
		{}, {Groups: []string{"devs"}}, {ID: "ann"}, {ID: "bob"}, {ID: "zoe"}, {ID: "adam"}, {ID: "ann", Groups: []string{"devs"}},
		{ID: "bob", Groups: []string{"devs"}}, {ID: "zoe", Groups: []string{"devs", "ops"}}, {ID: "adam", Groups: []string{"devs"}},
	}
	var resources []access.Resource
	for _, address := range []string{"acme/secret", "acme/demo", "third/secret", "third/demo", "fourth/demo", "fifth/demo", "a.example.com/acme/demo"} {
		a, err := access.ParseResource(address)
		if err != nil {
			t.Fatal(err)
		}
		resources = append(resources, a)
	}
	rights := make(map[string]string)
	for _, s := range subjects {
		var decided strings.Builder
		for _, a := range resources {
			fmt.Fprint(&decided, rules.Decide(s, access.Read, a).Allowed, " ")
		}
		audience := rules.Audience(s, access.Read)
		if known, ok := rights[audience]; ok && known != decided.String() {
			t.Errorf("%+v is of the audience %s, and decided as %s, not %s", s, audience, decided.String(), known)
		}
		rights[audience] = decided.String()
	}
	if len(rights) != 7 {
		t.Errorf("there are %d audiences", len(rights))
	}
}

func TestRulesAreImmutable(t *testing.T) {
	list := slices.Collect(tenRules(t).All())
	given := make([]access.Rule, len(list))
	for i, rule := range list {
		given[i] = *rule
	}
	rules := access.NewRules(given...)
	clear(given)
	for i, rule := range slices.Collect(rules.All()) {
		if rule.String() != tenLines[i] {
			t.Errorf("rule %d is %q, not %q", i+1, rule, tenLines[i])
		}
	}
}

func TestNilRulesAllowNothing(t *testing.T) {
	var rules *access.Rules
	if d := rules.Decide(access.Subject{ID: "ann"}, access.Read, provider); d != (access.Decision{}) {
		t.Errorf("the decision is %+v", d)
	}
	if rules.Public(provider) {
		t.Error("it is public")
	}
	for rule := range rules.All() {
		t.Errorf("there is the rule %q", rule)
	}
}

// tenLines are ten rules. The deciding rules of the benchmarks below are the last ones.
var tenLines = []string{
	"deny group:guests read acme/secret acme/*-internal",
	"allow anonymous read open open-*/* *.example.org/open",
	"allow ci-* publish acme acme-labs",
	"allow repo:acme/*:ref:refs/heads/main publish acme/*",
	"deny anonymous read registry.terraform.io/hashicorp/vault",
	"allow anonymous read *.terraform.io/hashicorp registry.opentofu.org/hashicorp",
	"allow group:d*-devs read labs/* labs-*/*/*",
	"deny robot read *",
	"allow authenticated read acme bücher.example/acme",
	"allow anonymous read common/v*/aws",
}

func tenRules(t testing.TB) *access.Rules { return rulesOf(t, tenLines...) }

var (
	common = access.Resource{Address: address.Address{Hostname: "registry.example.com", Namespace: "common", Name: "vpc", System: "aws"}, Hosted: true}
	job    = access.Subject{ID: "repo:acme/infra:ref:refs/heads/main", Groups: []string{"ops", "data-devs"}}
)

// Rules are asked for every request, mostly about public resources.
func TestDecidingAllocatesNothing(t *testing.T) {
	rules := tenRules(t)
	questions := map[string]func(){
		"public":      func() { rules.Public(common) },
		"not public":  func() { rules.Public(provider) },
		"mirrored":    func() { rules.Public(mirrored) },
		"in any case": func() { rules.Public(moduleMixedCase) },
		"in Unicode":  func() { rules.Public(inUnicode) },
		"allowed":     func() { rules.Decide(job, access.Read, provider) },
		"denied":      func() { rules.Decide(job, access.Publish, mirrored) },
	}
	for name, ask := range questions {
		if n := testing.AllocsPerRun(100, ask); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkPublic(b *testing.B) {
	rules := tenRules(b)
	b.ReportAllocs()
	for b.Loop() {
		if !rules.Public(common) {
			b.Fatal("it is not public")
		}
	}
}

func BenchmarkDecide(b *testing.B) {
	rules := tenRules(b)
	b.ReportAllocs()
	for b.Loop() {
		if !rules.Decide(job, access.Read, provider).Allowed {
			b.Fatal("it is denied")
		}
	}
}

// The rules of the package documentation.
func ExampleRules_Decide() {
	var list []access.Rule
	for _, line := range []string{
		"allow anonymous     read acme/demo",
		"deny  group:guests  read acme",
		"allow authenticated read acme registry.terraform.io/hashicorp",
		"allow ci-*          publish acme",
	} {
		rule, err := access.ParseRule(strings.Fields(line)...)
		if err != nil {
			fmt.Println(err)
			return
		}
		list = append(list, rule)
	}
	rules := access.NewRules(list...)

	anonymous := access.Subject{}
	guest := access.Subject{ID: "gus", Groups: []string{"guests"}}
	job := access.Subject{ID: "ci-main"}
	for _, question := range []struct {
		subject access.Subject
		right   access.Right
		address string
	}{
		{anonymous, access.Read, "acme/demo"},
		{guest, access.Read, "acme/demo"},
		{guest, access.Read, "acme/vpc/aws"},
		{guest, access.Read, "registry.terraform.io/hashicorp/null"},
		{job, access.Read, "acme/vpc/aws"},
		{job, access.Publish, "acme/vpc/aws"},
		{job, access.Read, "other/demo"},
	} {
		address, err := access.ParseResource(question.address)
		if err != nil {
			fmt.Println(err)
			return
		}
		d := rules.Decide(question.subject, question.right, address)
		fmt.Printf("%q %v %v: %t", question.subject.ID, question.right, address, d.Allowed)
		if d.Rule != nil {
			fmt.Printf(", by %v", d.Rule)
		}
		fmt.Println()
	}
	// Output:
	// "" read acme/demo: true, by allow anonymous read acme/demo
	// "gus" read acme/demo: true, by allow anonymous read acme/demo
	// "gus" read acme/vpc/aws: false, by deny group:guests read acme
	// "gus" read registry.terraform.io/hashicorp/null: true, by allow authenticated read acme registry.terraform.io/hashicorp
	// "ci-main" read acme/vpc/aws: true, by allow authenticated read acme registry.terraform.io/hashicorp
	// "ci-main" publish acme/vpc/aws: true, by allow ci-* publish acme
	// "ci-main" read other/demo: false
}

func TestParseRight(t *testing.T) {
	for _, right := range []access.Right{access.Read, access.Publish, access.Manage} {
		if got, err := access.ParseRight(right.String()); err != nil || got != right {
			t.Errorf("%v parsed again is %v, %v", right, got, err)
		}
	}
	for _, word := range []string{"", "READ", "Publish", "write", "pull", "read,publish", " read", "*", "Manage", access.Right(3).String()} {
		_, err := access.ParseRight(word)
		if err == nil {
			t.Errorf("%q is a right", word)
		} else if !strings.HasSuffix(err.Error(), "use read, publish or manage") {
			t.Errorf("%q: %v", word, err)
		}
	}
	if got := access.Right(-1).String(); got != "Right(-1)" {
		t.Errorf("an unknown right is printed as %q", got)
	}
}

func TestParseRule(t *testing.T) {
	for _, test := range []struct {
		rule  string
		words []string
		want  string
	}{
		{"the shortest", []string{"allow", "anonymous", "read", "*"}, "allow anonymous read *"},
		{"deny", []string{"deny", "authenticated", "read", "acme"}, "deny authenticated read acme"},
		{"publish", []string{"allow", "ci", "publish", "acme"}, "allow ci publish acme"},
		{"several patterns", []string{"allow", "ci", "read", "acme/*", "registry.terraform.io/hashicorp/*"}, "allow ci read acme/* registry.terraform.io/hashicorp/*"},
		{"patterns are normalised", []string{"allow", "ci", "read", "ACME", "A.example:443"}, "allow ci read acme a.example"},
		{"an ID and a group keep their case", []string{"allow", "group:The-Devs", "read", "acme"}, "allow group:The-Devs read acme"},
		{"the ID of a CI job", []string{"allow", "repo:acme/*:ref:refs/heads/main", "publish", "acme"}, "allow repo:acme/*:ref:refs/heads/main publish acme"},
		{"an e-mail address", []string{"allow", "ann@example.com", "read", "acme"}, "allow ann@example.com read acme"},
		{"a certificate's subject", []string{"allow", "CN=ci,OU=x", "read", "acme"}, "allow CN=ci,OU=x read acme"},
		{"spaces are quoted", []string{"allow", "CN=ci, OU=The Devs", "read", "acme"}, `allow "CN=ci, OU=The Devs" read acme`},
		{"backquotes for a backslash", []string{"allow", `CORP\ann`, "read", "acme"}, "allow `CORP\\ann` read acme"},
		{"and for double quotes", []string{"allow", `a"b`, "read", "acme"}, "allow `a\"b` read acme"},
		{"a comment character is quoted", []string{"allow", "#1", "read", "acme"}, `allow "#1" read acme`},
		{"so is a heredoc marker", []string{"allow", "<<EOF", "read", "acme"}, `allow "<<EOF" read acme`},
		{"and a brace", []string{"allow", "{", "read", "acme"}, `allow "{" read acme`},
		{"an ID in Unicode", []string{"allow", "Jürgen", "read", "acme"}, "allow Jürgen read acme"},
		{"a right in the place of an ID", []string{"allow", "read", "read", "acme"}, "allow read read acme"},
		{"an effect in the place of an ID", []string{"allow", "deny", "read", "acme"}, "allow deny read acme"},
		{"an ID that begins like a keyword", []string{"allow", "Anonymous2", "read", "acme"}, "allow Anonymous2 read acme"},
		{"any group", []string{"allow", "group:*", "read", "acme"}, "allow group:* read acme"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			rule, err := access.ParseRule(test.words...)
			if err != nil || rule.String() != test.want {
				t.Fatalf("%q is %q, %v", test.words, rule, err)
			}
			again, err := access.ParseRule(splitRule(rule.String())...)
			if err != nil || again.String() != test.want {
				t.Errorf("parsed again it is %q, %v", again, err)
			}
		})
	}
}

func TestParseRuleRefuses(t *testing.T) {
	for _, test := range []struct {
		rule  string
		words []string
		why   string
	}{
		{"nothing", nil, "write all four"},
		{"no effect", []string{"anonymous", "read", "*"}, `begins with allow or deny, not with "anonymous"`},
		{"an effect of another case", []string{"Allow", "ci", "read", "*"}, `not with "Allow"`},
		{"an effect alone", []string{"allow"}, `after "allow" there must be a subject`},
		{"no subject", []string{"allow", "read", "*"}, `after "allow" there must be a subject`},
		{"no subject and no pattern", []string{"deny", "read"}, `after "deny" there must be a subject`},
		{"no right", []string{"allow", "ci"}, `after "ci" there must be a right`},
		{"a pattern in the place of the right", []string{"allow", "ci", "acme/*"}, `"acme/*" is not a right`},
		{"another right", []string{"allow", "ci", "pull", "acme/*"}, `"pull" is not a right`},
		{"two IDs", []string{"allow", "ann", "bob", "read", "acme"}, `"bob" is not a right`},
		{"no pattern", []string{"allow", "ci", "read"}, `after "read" there must be a pattern`},
		{"an invalid pattern", []string{"allow", "ci", "read", "acme", "a//b"}, `"a//b" is not a pattern`},
		{"an empty ID", []string{"allow", "", "read", "*"}, `"" is not a subject`},
		{"a star as ID", []string{"allow", "*", "read", "acme"}, "write anonymous for everyone"},
		{"stars as ID", []string{"allow", "***", "read", "acme"}, "or authenticated for everyone with credentials"},
		{"anonymous in another case", []string{"deny", "Anonymous", "read", "*"}, `write "anonymous"`},
		{"authenticated in another case", []string{"deny", "AUTHENTICATED", "read", "*"}, `write "authenticated"`},
		{"group: in another case", []string{"deny", "Group:Devs", "read", "*"}, `write "group:Devs"`},
		{"groups: for group:", []string{"deny", "groups:devs", "read", "*"}, `"groups:devs" is not a group: write "group:devs"`},
		{"groups: in another case", []string{"deny", "Groups:Devs", "read", "*"}, `write "group:Devs"`},
		{"a group without a name", []string{"allow", "group:", "read", "*"}, `"group:" has no name`},
		{"a group with a space in front", []string{"allow", "group: devs", "read", "*"}, "has a space before or after the name"},
		{"a backquote", []string{"allow", "a`b", "read", "*"}, "write * in its place"},
		{"a line feed", []string{"allow", "a\nallow b", "read", "*"}, "write * in its place"},
		{"a NUL", []string{"allow", "group:a\x00", "read", "*"}, "write * in its place"},
		{"a NUL after another mistake", []string{"allow", "Group:\x00", "read", "*"}, "write * in its place"},
		{"a no-break space", []string{"allow", "ci\u00a0", "read", "*"}, "write * in its place"},
		{"an invisible character", []string{"allow", "ci\u200b", "read", "*"}, "write * in its place"},
		{"invalid UTF-8", []string{"allow", "ci\xff", "read", "*"}, "write * in its place"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			rule, err := access.ParseRule(test.words...)
			if err == nil {
				t.Fatalf("%q was parsed as %q", test.words, rule)
			}
			if rule.String() != "" || !strings.Contains(err.Error(), test.why) || strings.Contains(err.Error(), "\n") {
				t.Errorf("it is %q and refused with %q, not because of %q", rule, err, test.why)
			}
		})
	}
}

func TestZeroRuleAppliesToNothing(t *testing.T) {
	rules := access.NewRules(access.Rule{})
	if d := rules.Decide(access.Subject{ID: "ci"}, access.Read, provider); d != (access.Decision{}) {
		t.Errorf("the decision is %+v", d)
	}
	if got := slices.Collect(rules.All()); len(got) != 1 || got[0].String() != "" {
		t.Errorf("the rules are %v", got)
	}
}

// With the names of the registry, a rule for one of them is about hosted resources
// requested under any of them, and not about mirrored ones.
func TestRulesWithHostnames(t *testing.T) {
	names := []svchost.Hostname{"registry.example.com", "alias.internal:8443"}
	for _, test := range []struct {
		rule, pattern string
		address       access.Resource
		want          bool
	}{
		{"the first name", "registry.example.com/acme", provider, true},
		{"a module", "registry.example.com/acme", module, true},
		{"an alias with its port", "alias.internal:8443/acme", provider, true},
		{"an alias without its port is another name", "alias.internal/acme", provider, false},
		{"another namespace", "registry.example.com/other", provider, false},
		{"another provider", "registry.example.com/acme/other", provider, false},
		{"another hostname", "registry.terraform.io/acme", provider, false},
		{"which still covers mirrored resources", "registry.terraform.io/acme", mirroredAcme, true},
		{"an own name does not cover mirrored resources", "registry.example.com/acme", mirroredAcme, false},
		{"a wildcard that matches a name", "*.example.com", provider, true},
		{"even if another name has another port", "*:8443/acme", provider, true},
		{"a wildcard that matches no name", "*.terraform.io", provider, false},
		{"a pattern without a hostname is unchanged", "acme", provider, true},
		{"and covers no mirrored resources", "acme", mirroredAcme, false},
	} {
		t.Run(test.rule, func(t *testing.T) {
			plain := rulesOf(t, "allow anonymous read "+test.pattern)
			rules := plain.WithHostnames(names)
			if got := rules.Public(test.address); got != test.want {
				t.Errorf("%q covers %+v: %t", test.pattern, test.address, got)
			}
			// The original rules are unchanged.
			if alone := rulesOf(t, "allow anonymous read "+test.pattern); plain.Public(test.address) != alone.Public(test.address) {
				t.Error("the rules without hostnames have changed")
			}
		})
	}
	t.Run("a denial under an alias applies under every name", func(t *testing.T) {
		rules := rulesOf(t, "deny group:guests read alias.internal:8443/acme", "allow authenticated read *").WithHostnames(names)
		guest := access.Subject{ID: "jo", Groups: []string{"guests"}}
		if rules.Decide(guest, access.Read, provider).Allowed {
			t.Error("the guest may read it")
		}
		if !rules.Decide(guest, access.Read, mirroredAcme).Allowed {
			t.Error("the mirrored resource is denied too")
		}
	})
}

func TestRuleHostnames(t *testing.T) {
	rule, err := access.ParseRule("allow", "ci", "read", "acme", "Registry.Example.com:443/acme", "*.example.com/acme", "internal:443", "*")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for pattern, name := range rule.Hostnames() {
		got = append(got, pattern+" "+string(name))
	}
	if len(got) != 2 || got[0] != "registry.example.com/acme registry.example.com" || got[1] != "internal:443 internal" {
		t.Errorf("got %q", got)
	}
}

// A parsed rule prints as a rule that decides the same, on one printable line.
func FuzzParseRule(f *testing.F) {
	for _, line := range append(tenLines, "allow anonymous read *", "deny authenticated publish a.b:443/x internal:443", `allow "CN=a, O=b" read acme`) {
		words := splitRule(line)
		f.Add(words[0], words[1], words[2], words[3], words[len(words)-1], "acme", "acme/demo")
	}
	for _, line := range []string{"allow * read **", "deny group: publish /", "Allow Group:x Read a//b", "allow `\xff read \xff", "deny \n\" read .:*"} {
		words := strings.Split(line, " ")
		f.Add(words[0], words[1], words[2], words[3], "ｌｏｃａｌｈｏｓｔ", "ci", "registry.terraform.io/hashicorp/null")
	}
	f.Add("allow", "ci", "read", "p\u0385", "a／b", "ci", "acme/demo")
	f.Fuzz(func(t *testing.T, effect, who, right, pattern, another, id, address string) {
		rule, err := access.ParseRule(effect, who, right, pattern, another)
		if err != nil {
			checkSentence(t, err)
			return
		}
		line := rule.String()
		words := splitRule(line)
		if len(words) != 5 || words[1] != who || strings.ContainsFunc(line, unicode.IsControl) {
			t.Fatalf("%q has the words %q", line, words)
		}
		again, err := access.ParseRule(words...)
		if err != nil || again.String() != line {
			t.Fatalf("%q parsed again is %q, %v", line, again, err)
		}
		one, other := access.NewRules(rule), access.NewRules(again)
		for _, a := range variants(address) {
			for _, s := range []access.Subject{{}, {ID: id}, {ID: who}, {ID: "x", Groups: []string{id, strings.TrimPrefix(who, "group:")}}} {
				for _, r := range []access.Right{access.Read, access.Publish, access.Manage} {
					d, e := one.Decide(s, r, a), other.Decide(s, r, a)
					if d.Allowed != e.Allowed || (d.Rule == nil) != (e.Rule == nil) {
						t.Fatalf("%q decides %+v, parsed again %+v", line, d, e)
					}
					if d.Allowed && effect != "allow" || d.Rule != nil && (r == access.Read) != (right == "read") {
						t.Fatalf("%q decides %+v about %v", line, d, r)
					}
				}
			}
		}
	})
}

// splitRule splits a line like a Caddyfile: at spaces, except in double quotes or
// backquotes.
func splitRule(line string) (words []string) {
	for line = strings.TrimLeft(line, " "); line != ""; line = strings.TrimLeft(line, " ") {
		end := " "
		if line[0] == '"' || line[0] == '`' {
			end, line = line[:1], line[1:]
		}
		var word string
		word, line, _ = strings.Cut(line, end)
		words = append(words, word)
	}
	return words
}

// variants returns s parsed as mirrored and as hosted, and s as each part of an
// address.
func variants(s string) []access.Resource {
	list := []access.Resource{
		{Address: address.Address{Namespace: s, Name: s}, Hosted: true},
		{Address: address.Address{Hostname: svchost.Hostname(s), Namespace: s, Name: s, System: s}},
	}
	if a, err := access.ParseResource(s); err == nil {
		hosted := a
		hosted.Hosted = true
		list = append(list, a, hosted)
	}
	return list
}

// checkSentence checks that an error fits on a line.
func checkSentence(t *testing.T, err error) {
	t.Helper()
	if s := err.Error(); s == "" || strings.ContainsAny(s, "\n\r\x00") {
		t.Fatalf("the error is %q", s)
	}
}

func TestNamedGroups(t *testing.T) {
	rules := rulesOf(t, "allow alice read *", "deny group:dev read acme", "allow group:ops-* read *", "allow group:dev read *", "allow group:*-admins publish *")
	for _, test := range []struct {
		rule         string
		groups, want []string
	}{
		{"no groups", nil, nil},
		{"groups that no rule names", []string{"all", "devs"}, nil},
		{"the first that a name matches", []string{"x", "ops-2", "ops-1", "dev"}, []string{"dev", "ops-2"}},
		{"one that several names match", []string{"ops-admins", "dba-admins"}, []string{"ops-admins"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			got := rules.NamedGroups(test.groups)
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
			for _, right := range []access.Right{access.Read, access.Publish, access.Manage} {
				if all, few := rules.Audience(access.Subject{ID: "x", Groups: test.groups}, right), rules.Audience(access.Subject{ID: "x", Groups: got}, right); all != few {
					t.Errorf("%s: the rules decide otherwise with them", right)
				}
			}
		})
	}
	if got := rules.Groups(); !slices.Equal(got, []string{"dev", "ops-*", "*-admins"}) {
		t.Errorf("the names are %q", got)
	}
	if got := (*access.Rules)(nil).NamedGroups([]string{"dev"}); got != nil {
		t.Errorf("without rules: %q", got)
	}
}
