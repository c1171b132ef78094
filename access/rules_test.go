package access_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

func TestDecide(t *testing.T) {
	var (
		nobody = access.Subject{}
		ann    = access.Subject{ID: "ann", Groups: []string{"devs"}}
		bob    = access.Subject{ID: "bob"}
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
		{"what no rule is about is denied", "allow ann read other", ann, access.Read, false, 0},
		{"whom no rule is about as well", "allow ann read acme", bob, access.Read, false, 0},
		{"the first rule decides", "allow ann read acme\ndeny ann read acme", ann, access.Read, true, 1},
		{"in either way", "deny ann read acme\nallow ann read acme", ann, access.Read, false, 1},
		{"of those about the address", "deny ann read acme/other\nallow ann read acme", ann, access.Read, true, 2},
		{"of those about the subject", "deny bob read acme\nallow ann read acme", ann, access.Read, true, 2},
		{"of those about the right", "deny ann publish acme\nallow ann read acme", ann, access.Read, true, 2},
		{"a later pattern is as good as the first", "allow ann read other acme", ann, access.Read, true, 1},
		{"a narrow rule goes before a wide one", "deny ann read acme/demo\nallow ann read *", ann, access.Read, false, 1},
		{"and behind it says nothing", "allow ann read *\ndeny ann read acme/demo", ann, access.Read, true, 1},
		{"one group is enough", "allow group:devs read acme", ann, access.Read, true, 1},
		{"an ID may be an exception of a group", "deny ann read acme\nallow group:devs read acme", ann, access.Read, false, 1},

		{"to read is not to publish", "allow ann read acme", ann, access.Publish, false, 0},
		{"to publish is not to read", "allow ann publish acme", ann, access.Read, false, 0},
		{"to publish is to publish", "allow ann publish acme", ann, access.Publish, true, 1},
		{"what is no right nobody has", "allow anonymous read *\nallow anonymous publish *", ann, access.Right(2), false, 0},

		{"anonymous may", "allow anonymous read acme", nobody, access.Read, true, 1},
		{"so everybody may", "allow anonymous read acme", ann, access.Read, true, 1},
		{"even whom a rule before denies it", "deny ann read acme\nallow anonymous read acme", ann, access.Read, true, 2},
		{"or all who are known", "deny authenticated read acme\nallow anonymous read acme", ann, access.Read, true, 2},
		{"to publish as well", "deny ann publish acme\nallow anonymous publish acme", ann, access.Publish, true, 2},
		{"unless anonymous may not", "deny anonymous read acme\nallow anonymous read *", nobody, access.Read, false, 1},
		{"which denies it to no others", "deny anonymous read acme\nallow anonymous read *", ann, access.Read, true, 2},
		{"who may be denied it for themselves", "deny anonymous read acme\ndeny ann read acme\nallow anonymous read *", ann, access.Read, false, 2},
		{"who is known may, anonymous may not", "allow authenticated read acme", nobody, access.Read, false, 0},
		{"groups are nobody's without an ID", "allow group:devs read acme", access.Subject{Groups: []string{"devs"}}, access.Read, false, 0},
		{"nor is what begins with anything", "allow a* read acme", nobody, access.Read, false, 0},
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

func TestPublic(t *testing.T) {
	rules := rulesOf(t,
		"deny anonymous read acme/secret",
		"allow anonymous read acme",
		"allow anonymous publish other",
		"allow authenticated read *",
	)
	for _, test := range []struct {
		rule, address string
		want          bool
	}{
		{"what anonymous may read", "acme/demo", true},
		{"not what anonymous may not", "acme/secret", false},
		{"nor in another case", "Acme/Secret", false},
		{"not what anonymous may publish", "other/demo", false},
		{"not what all others may read", "third/demo", false},
		{"not what is mirrored of the same name", "registry.terraform.io/acme/demo", false},
	} {
		t.Run(test.rule, func(t *testing.T) {
			a, err := access.ParseResource(test.address)
			if err != nil {
				t.Fatal(err)
			}
			if got := rules.Public(a); got != test.want {
				t.Errorf("%v: %t", a, got)
			}
		})
	}
}

func TestRulesStayAsTheyAre(t *testing.T) {
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

// tenLines are rules in which those asked about below come last.
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
	common   = access.Resource{Address: address.Address{Hostname: "registry.example.com", Namespace: "common", Name: "vpc", System: "aws"}, Hosted: true}
	somebody = access.Subject{ID: "repo:acme/infra:ref:refs/heads/main", Groups: []string{"ops", "data-devs"}}
)

// Every request asks, most of them for what is public.
func TestDecidingAllocatesNothing(t *testing.T) {
	rules := tenRules(t)
	asked := map[string]func(){
		"public":      func() { rules.Public(common) },
		"not public":  func() { rules.Public(provider) },
		"mirrored":    func() { rules.Public(mirrored) },
		"in any case": func() { rules.Public(moduleAsItIs) },
		"in Unicode":  func() { rules.Public(inUnicode) },
		"allowed":     func() { rules.Decide(somebody, access.Read, provider) },
		"denied":      func() { rules.Decide(somebody, access.Publish, mirrored) },
	}
	for name, ask := range asked {
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
		if !rules.Decide(somebody, access.Read, provider).Allowed {
			b.Fatal("it is denied")
		}
	}
}

// The rules of the package's comment.
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

	nobody := access.Subject{}
	guest := access.Subject{ID: "gus", Groups: []string{"guests"}}
	job := access.Subject{ID: "ci-main"}
	for _, question := range []struct {
		subject access.Subject
		right   access.Right
		address string
	}{
		{nobody, access.Read, "acme/demo"},
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
