package address_test

import (
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

func TestTagPatterns(t *testing.T) {
	for _, test := range []struct {
		rule, pattern, tag string
		version            string // empty: it is none of the module's
		err                string
	}{
		{"a v", "v{version}", "v1.2.0", "1.2.0", ""},
		{"no v", "{version}", "1.2.0", "1.2.0", ""},
		{"a folder", "vpc/v{version}", "vpc/v1.2.0", "1.2.0", ""},
		{"a name", "vpc-{version}", "vpc-1.2.0", "1.2.0", ""},
		{"something after it", "release-{version}-aws", "release-1.2.0-aws", "1.2.0", ""},
		{"prereleases and builds", "v{version}", "v1.2.0-rc.1+build.5", "1.2.0-rc.1+build.5", ""},
		{"a v that the pattern lacks", "{version}", "v1.2.0", "", ""},
		{"a v too many", "v{version}", "vv1.2.0", "", ""},
		{"another module", "vpc/v{version}", "subnet/v1.2.0", "", ""},
		{"another module, of which the name begins like it", "vpc-{version}", "vpc-endpoint-1.2.0", "", ""},
		{"the pattern itself", "v{version}", "v{version}", "", ""},
		{"no version", "v{version}", "v", "", ""},
		{"before and after overlap", "v1{version}1", "v1", "", ""},
		{"the tag of a release series", "v{version}", "v1", "", "not a whole version"},
		{"another one", "v{version}", "v1.2", "", "not a whole version"},
		{"a version that no client takes", "v{version}", "v1.2.3.4", "", "MAJOR.MINOR.PATCH"},
		{"leading zeros", "v{version}", "v1.02.0", "", "MAJOR.MINOR.PATCH"},
		{"a long version", "v{version}", "v1.0.0-" + strings.Repeat("a", 200), "", "at most 128"},
	} {
		p, err := address.ParseTagPattern(test.pattern)
		if err != nil || p.String() != test.pattern {
			t.Errorf("%s: got the pattern %s, %v", test.rule, p, err)
			continue
		}
		v, ok, err := p.Version(test.tag)
		switch {
		case test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)):
			t.Errorf("%s: got error %v, not %s", test.rule, err, test.err)
		case test.err == "" && (err != nil || ok != (test.version != "") || ok && v.String() != test.version):
			t.Errorf("%s: got %v, %v, %v", test.rule, v, ok, err)
		}
	}
}

func TestBadTagPatterns(t *testing.T) {
	for _, test := range []struct{ rule, pattern, says string }{
		{"nothing", "", "has no {version}"},
		{"no version", "vpc-*", "has no {version}"},
		{"two versions", "{version}/{version}", "twice"},
		{"another placeholder", "{module}/v{version}", "nothing but {version}"},
		{"a glob", "*/v{version}", "not a glob"},
		{"a space", "v {version}", "no tag has"},
		{"a line break", "v\n{version}", "no tag has"},
	} {
		if _, err := address.ParseTagPattern(test.pattern); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: got %v, not %s", test.rule, err, test.says)
		}
	}
}

// The version of a tag is in the form in which the registry lists it, and the pattern with
// that version is the tag.
func FuzzTagPattern(f *testing.F) {
	f.Add("v{version}", "v1.2.0")
	f.Add("vpc/v{version}", "vpc/v1.0.0-rc.1")
	f.Add("{version}-aws", "1.0.0+5-aws")
	f.Add("{version}{version}", "1")
	f.Fuzz(func(t *testing.T, pattern, tag string) {
		p, err := address.ParseTagPattern(pattern)
		if err != nil {
			return
		}
		if p.String() != pattern {
			t.Errorf("%q became %q", pattern, p)
		}
		if v, ok, err := p.Version(tag); ok && err == nil && p.Tag(v.String()) != tag {
			t.Errorf("%q matches %q as %s", pattern, tag, v)
		}
	})
}
