package feed

import (
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
)

func notice(t *testing.T, constraints, reason string) registryhcl.Notice {
	t.Helper()
	c, err := address.ParseConstraints(constraints)
	if err != nil {
		t.Fatal(err)
	}
	return registryhcl.Notice{Versions: c, Reason: reason}
}

func TestANoticeIsOneEntry(t *testing.T) {
	vpc := address.Address{Namespace: "acme", Name: "vpc", System: "aws"}
	leaks, late := notice(t, "< 1.2.0", "It leaks."), notice(t, "1.3.0", "")
	entries := func(versions ...Noticed) (all []Entry) {
		for _, e := range Notices(vpc, Withdrawn, time.Time{}, versions) {
			all = append(all, e.Entry("id", "version", "url"))
		}
		return all
	}
	got := entries(Noticed{"1.3.0", late}, Noticed{"1.1.0", leaks}, Noticed{"1.0.0", leaks})
	if len(got) != 2 || got[0].Title != "acme/vpc/aws 1.3.0 is withdrawn" || got[0].Text != "No reason is given." ||
		got[1].Title != "acme/vpc/aws < 1.2.0 is withdrawn" || got[1].Text != "It leaks. Versions here: 1.1.0, 1.0.0." {
		t.Errorf("two notices are %+v", got)
	}
	if more := entries(Noticed{"1.1.9", leaks}, Noticed{"1.1.0", leaks}); more[0].ID != got[1].ID {
		t.Errorf("with a further version it is %s, and was %s", more[0].ID, got[1].ID)
	}
	for _, other := range []registryhcl.Notice{notice(t, "< 1.2.0", "It leaks a lot."), notice(t, "< 1.3.0", "It leaks.")} {
		if entries(Noticed{"1.1.0", other})[0].ID == got[1].ID {
			t.Errorf("%+v is not news", other)
		}
	}
	var many []Noticed
	for range 12 {
		many = append(many, Noticed{"1.0.0", leaks})
	}
	if text := entries(many...)[0].Text; len(text) > 120 {
		t.Errorf("it names all: %s", text)
	}
}
