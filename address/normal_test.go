package address

import (
	"strings"
	"testing"
	"unicode/utf8"

	tfaddr "github.com/hashicorp/terraform-registry-address"
	svchost "github.com/hashicorp/terraform-svchost"
)

// A name skips the clients' own library if it is certainly in normal form. The library
// would return such a name unchanged.
func FuzzNormalForms(f *testing.F) {
	for _, s := range []string{
		"", "a", "acme", "google-beta", "-", "-a", "a-", "a--b", "xn--bcher-kva", "a_b", "_a", "A", "0", "1a", "é", "ａ", "terraform-x", "a.b", "a..b", ".a", "a.",
		"registry.example.com", "xn--bcher-kva.example.com", "localhost", "localhost:8443", "a:443", "a:0", "a:08", "a:99999", "127.0.0.1:9000", "a.-b.c", "[::1]",
		"0123456789012345678901234567890123456789012345678901234567890123", "01234567890123456789012345678901234567890123456789012345678901234",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !utf8.ValidString(s) {
			return
		}
		if isNormalHostname(s) {
			if h, err := svchost.ForComparison(svchost.ForDisplay(s)); err != nil || string(h) != s {
				t.Errorf("the hostname %q is %q, %v", s, h, err)
			}
		}
		if isNormalLabel(s) {
			if n, err := tfaddr.ParseProviderNamespace(s); err != nil || n != s {
				t.Errorf("the namespace %q is %q, %v", s, n, err)
			}
			if n, err := tfaddr.ParseProviderPart(s); err != nil || n != s {
				t.Errorf("the type %q is %q, %v", s, n, err)
			}
		}
		if isNormalModuleName(s) {
			m, err := tfaddr.ParseModuleSource(s + "/" + s + "/aws")
			if err != nil || m.Package.Namespace != s || m.Package.Name != s {
				t.Errorf("the module name %q is %v, %v", s, m, err)
			}
		}
		if isWord(s, maxModulePart) {
			m, err := tfaddr.ParseModuleSource("acme/vpc/" + s)
			if err != nil || m.Package.TargetSystem != s {
				t.Errorf("the system %q is %v, %v", s, m, err)
			}
		}
		if strings.HasPrefix(s, "terraform-") {
			if a, err := ParseProvider("", "acme", s); err == nil {
				t.Errorf("%q is accepted as %v", s, a)
			}
		}
	})
}
