package oidc

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
)

func TestClaimMapping(t *testing.T) {
	tests := []struct {
		rule    string
		claims  string
		subject string
		groups  []string
		want    []string // the groups
	}{
		{"a list", `{"groups":["a","b"]}`, "", nil, []string{"a", "b"}},
		{"a string", `{"groups":"a"}`, "", nil, []string{"a"}},
		{"none", `{}`, "", nil, nil},
		{"null", `{"groups":null}`, "", nil, nil},
		{"a number", `{"groups":7}`, "", nil, nil},
		{"true", `{"groups":true}`, "", nil, nil},
		{"an object", `{"groups":{"a":"b"}}`, "", nil, nil},
		{"only the strings of a list", `{"groups":["a",1,true,null,["b"],{"c":"d"},"e"]}`, "", nil, []string{"a", "e"}},
		{"no empty ones", `{"groups":["","a"]}`, "", nil, []string{"a"}},
		{"each once", `{"groups":["a","a"],"roles":["a"]}`, "", []string{"groups", "roles"}, []string{"a"}},
		{"of several claims, in their order", `{"roles":["a"],"groups":["b"]}`, "", []string{"groups", "roles"}, []string{"b", "a"}},
		{"not of other claims", `{"groups":["a"]}`, "", []string{"roles"}, nil},
		{"of a claim within another", `{"realm_access":{"roles":["a"]}}`, "", []string{"realm_access.roles"}, []string{"a"}},
		{"of a claim within two others", `{"x":{"y":{"z":"a"}}}`, "", []string{"x.y.z"}, []string{"a"}},
		{"of a claim that is a URL", `{"https://example.com/groups":["a"]}`, "", []string{"https://example.com/groups"}, []string{"a"}},
		{"of a claim within one with dots", `{"x":{"my.client":{"roles":["a"]}}}`, "", []string{"x.my.client.roles"}, []string{"a"}},
		{"the whole name takes precedence", `{"x.y":"a","x":{"y":"b"}}`, "", []string{"x.y"}, []string{"a"}},
		{"no claim within a string", `{"x":"y"}`, "", []string{"x.y", "x.", ".x", "."}, nil},
		{"no comma, which would split it", `{"groups":["a,admins","b"]}`, "", nil, []string{"b"}},
		{"no comma in a string", `{"groups":"a,b"}`, "", nil, nil},
		{"no space around it, which would be trimmed", `{"groups":[" admins","admins ","\tadmins","b c"]}`, "", nil, []string{"b c"}},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			m, err := newClaimMapping(test.subject, test.groups, nil)
			if err != nil {
				t.Fatal(err)
			}
			claims := map[string]any{"sub": "alice"}
			if err := json.Unmarshal([]byte(test.claims), &claims); err != nil {
				t.Fatal(err)
			}
			got, err := m.apply(claims)
			if want := (access.Subject{ID: "alice", Groups: test.want}); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v, %v, want %+v", got, err, want)
			}
		})
	}
}

func TestRequiredClaims(t *testing.T) {
	type require = map[string][]string
	tests := []struct {
		rule    string
		require require
		claims  string
		good    bool
	}{
		{"a value", require{"a": {"x"}}, `{"a":"x"}`, true},
		{"one of several", require{"a": {"x", "y"}}, `{"a":"y"}`, true},
		{"a value in a list", require{"a": {"x"}}, `{"a":["w","x"]}`, true},
		{"a claim within another", require{"a.b": {"x"}}, `{"a":{"b":"x"}}`, true},
		{"all claims", require{"a": {"x"}, "b": {"y"}}, `{"a":"x","b":"y"}`, true},
		{"a wildcard", require{"a": {"repo:acme/*:ref:refs/heads/*"}}, `{"a":"repo:acme/vpc:ref:refs/heads/main"}`, true},
		{"any value", require{"a": {"*"}}, `{"a":"x"}`, true},
		{"not without the claim", require{"a": {"*"}}, `{}`, false},
		{"not some of the claims only", require{"a": {"x"}, "b": {"y"}}, `{"a":"x"}`, false},
		{"not another value", require{"a": {"x"}}, `{"a":"X"}`, false},
		{"not a longer one", require{"a": {"acme"}}, `{"a":"acme-evil"}`, false},
		{"not outside the wildcard", require{"a": {"acme/*"}}, `{"a":"evil/acme/x"}`, false},
		{"not a number", require{"a": {"7"}}, `{"a":7}`, false},
		{"not true", require{"a": {"true", "*"}}, `{"a":true}`, false},
		{"not an empty list", require{"a": {"*"}}, `{"a":[]}`, false},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			m, err := newClaimMapping("", nil, test.require)
			if err != nil {
				t.Fatal(err)
			}
			claims := map[string]any{"sub": "alice"}
			if err := json.Unmarshal([]byte(test.claims), &claims); err != nil {
				t.Fatal(err)
			}
			if _, err := m.apply(claims); (err == nil) != test.good {
				t.Errorf("got error %v", err)
			}
		})
	}
}

// For any claims, a subject has an ID, and its groups stay the same when they are
// joined and split again.
func FuzzClaimMapping(f *testing.F) {
	for _, claims := range []string{
		`{"sub":"alice","groups":["a","b"]}`,
		`{"sub":"alice","groups":"a,b","realm_access":{"roles":[" a",1,null]}}`,
		`{"sub":7}`, `{"a.b":{"c":"d"},"a":{"b":{"c":["e"]}}}`, `null`, `[]`, `{"":{"":""}}`,
	} {
		for _, name := range []string{"groups", "realm_access.roles", "a.b.c", "", ".", "..."} {
			f.Add(claims, "sub", name, "a*")
		}
	}
	f.Fuzz(func(t *testing.T, text, subject, groups, value string) {
		var claims map[string]any
		if json.Unmarshal([]byte(text), &claims) != nil {
			return
		}
		m, err := newClaimMapping(subject, []string{groups}, nil)
		if err != nil {
			return
		}
		s, err := m.apply(claims)
		if err != nil {
			if s.ID != "" || s.Groups != nil {
				t.Errorf("refused, but returned %+v", s)
			}
			return
		}
		if strings.TrimSpace(s.ID) == "" {
			t.Errorf("the subject is %q", s.ID)
		}
		var again []string
		if len(s.Groups) > 0 {
			for group := range strings.SplitSeq(strings.Join(s.Groups, ","), ",") {
				again = append(again, strings.TrimSpace(group))
			}
		}
		if !slices.Equal(again, s.Groups) {
			t.Errorf("%q became %q", s.Groups, again)
		}
		m.require = []requiredClaim{{groups, []string{value}}}
		if other, err := m.apply(claims); err == nil && !reflect.DeepEqual(other, s) {
			t.Errorf("a required claim makes %+v of %+v", other, s)
		}
	})
}

// A text presented as a token is refused with an error that does not contain it.
func FuzzVerify(f *testing.F) {
	p := newProvider(f)
	v := p.verifier(Options{})
	good := p.token()
	f.Add(good)
	f.Add(p.token("aud", "other"))
	f.Add(p.sign(newKey(f, "first", jose.EdDSA), p.claims("groups", []string{"a"})))
	for _, s := range []string{"", "..", "a.b.c", "e30.e30.", "eyJhbGciOiJub25lIn0.e30.", strings.Repeat(good, 2), good[1:], good[:len(good)-1]} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, token string) {
		s, err := v.Verify(context.Background(), token)
		switch {
		case err == nil && s.ID == "alice" && token[:strings.LastIndex(token, ".")] == good[:strings.LastIndex(good, ".")]:
		case err == nil:
			t.Errorf("accepted as %+v", s)
		case !errors.Is(err, errNotJWT) && !errors.Is(err, ErrRefused):
			t.Errorf("got error %v", err)
		case s.ID != "" || s.Groups != nil:
			t.Errorf("refused, but returned %+v", s)
		case leaks(err, token) && len(token) > 200:
			t.Errorf("error %q has the token in it", err)
		}
	})
}
