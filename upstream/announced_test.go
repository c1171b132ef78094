package upstream_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// The packages that OpenTofu's registry announces for all platforms count only as far
// as they agree with SHA256SUMS.
func TestAnnouncedPackages(t *testing.T) {
	s := newAcme(t)
	zh := func(platform string) string {
		return "zh:" + s.Sum(t, "terraform-provider-demo_1.0.0_"+platform+".zip")
	}
	const both = "[darwin_arm64 linux_amd64]"
	for _, test := range []struct {
		rule   string
		answer http.HandlerFunc
		want   string
	}{
		{"all platforms", s.Handler.ServeHTTP, both},
		{"sums in upper case", s.Edited(zh("darwin_arm64"), "zh:"+strings.ToUpper(zh("darwin_arm64")[3:])), both},
		{"a platform that SHA256SUMS does not list", s.Edited(`"darwin_arm64":`, `"plan9_arm":`), "[linux_amd64]"},
		{"a platform that is none", s.Edited(`"darwin_arm64":`, `"Darwin":`), "[linux_amd64]"},
		{"another sum than the signed one", s.Edited(zh("darwin_arm64"), "zh:"+strings.Repeat("0", 64)), "[linux_amd64]"},
		{"a second sum", s.Edited(`"`+zh("darwin_arm64")+`"`, `"`+zh("darwin_arm64")+`","zh:`+strings.Repeat("0", 64)+`"`), "[linux_amd64]"},
		{"no sum", s.Edited(`,"`+zh("darwin_arm64")+`"`, ""), "[linux_amd64]"},
		{"a sum of another form", s.Edited(zh("darwin_arm64"), "zh:"+strings.Repeat("z", 64)), "[linux_amd64]"},
		{"no h1", s.Edited(`"h1:`, `"h2:`), "[]"},
		{"an h1 of another form", s.Edited(`"h1:`, `"h1:AAAA`), "[]"},
		{"no size", s.Edited(`"package_size":`, `"size":`), "[]"},
		{"hashes without end", s.Edited(`"hashes":[`, `"hashes":[`+strings.Repeat(`"h2:a",`, 20)), "[]"},
		{"nothing", s.Edited(`"packages":`, `"other":`), "[]"},
		{"something else", s.Edited(`"packages":{`, `"packages":[1],"other":{`), "[]"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			s.Fault(metadata, test.answer)
			r, err := s.Client(t, upstream.Origin{}).Release(background(), demo, v1, nil)
			if err != nil {
				t.Fatal(err)
			}
			var platforms []string
			for platform, p := range r.Announced {
				platforms = append(platforms, platform.String())
				if len(p.Hashes) != 2 || !strings.HasPrefix(p.Hashes[0], "h1:") || p.Hashes[1] != zh(platform.String()) || p.Size <= 0 {
					t.Errorf("%s is %+v", platform, p)
				}
			}
			slices.Sort(platforms)
			if got := fmt.Sprint(platforms); got != test.want {
				t.Errorf("got %s: %v", got, slices.Collect(maps.Values(r.Announced)))
			}
		})
	}
}

// The protocols come from the package, or else from the list of versions.
func TestReleaseProtocols(t *testing.T) {
	s := newAcme(t)
	c := s.Client(t, upstream.Origin{})
	listed := wire.ProviderVersion{Version: "1.0.0", Protocols: []string{"6.0"}}
	for _, test := range []struct {
		rule   string
		answer http.HandlerFunc
		want   string
	}{
		{"of the package", s.Edited(`"protocols":["5.0"]`, `"protocols":["5.1"]`), "[5.1]"},
		{"of the list", s.Edited(`"protocols":["5.0"]`, `"protocols":[]`), "[6.0]"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			s.Fault(metadata, test.answer)
			r, err := c.Release(background(), demo, listed, nil)
			if err != nil || fmt.Sprint(r.Protocols) != test.want {
				t.Errorf("got %+v, %v", r, err)
			}
		})
	}
}
