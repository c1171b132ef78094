package address

import "testing"

func TestParseModuleSource(t *testing.T) {
	for _, test := range []struct {
		rule, source string
		address      string // empty: not from a registry
		folder       string
	}{
		{"of the default registry", "terraform-aws-modules/vpc/aws", "terraform-aws-modules/vpc/aws", ""},
		{"with a hostname", "registry.example.com/acme/vpc/aws", "registry.example.com/acme/vpc/aws", ""},
		{"with a port", "registry.example.com:8443/acme/vpc/aws", "registry.example.com:8443/acme/vpc/aws", ""},
		{"with the name of the default registry", "registry.terraform.io/acme/vpc/aws", "registry.terraform.io/acme/vpc/aws", ""},
		{"a folder of the package", "acme/vpc/aws//modules/./a", "acme/vpc/aws", "modules/a"},
		{"another case", "Registry.Example.com/Acme/VPC/aws", "registry.example.com/acme/vpc/aws", ""},
		{"a folder outside of the package", "acme/vpc/aws//../a", "", ""},
		{"a local folder", "./a/b/c", "", ""},
		{"a folder above", "../a/b", "", ""},
		{"a repository of a code host", "github.com/acme/terraform-aws-vpc", "", ""},
		{"a code host as a registry", "github.com/acme/vpc/aws", "", ""},
		{"Git", "git::https://example.com/acme/vpc.git?ref=v1", "", ""},
		{"Git by SSH", "git@github.com:acme/vpc.git", "", ""},
		{"an archive", "https://example.com/vpc.zip", "", ""},
		{"a query", "acme/vpc/aws?ref=v1", "", ""},
		{"nothing", "", "", ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			a, folder, err := ParseModuleSource(test.source)
			if test.address == "" {
				if err == nil {
					t.Fatalf("got %s, folder %q", a, folder)
				}
				return
			}
			if err != nil || a.String() != test.address || folder != test.folder {
				t.Errorf("got %s, folder %q, %v", a, folder, err)
			}
		})
	}
}

func FuzzParseModuleSource(f *testing.F) {
	f.Add("registry.example.com/acme/vpc/aws//modules/a")
	f.Add("acme/vpc/aws//../../a?x=//")
	f.Fuzz(func(t *testing.T, source string) {
		a, folder, err := ParseModuleSource(source)
		if err != nil {
			return
		}
		again, same, err := ParseModuleSource(a.String() + map[bool]string{true: "//" + folder}[folder != ""])
		if err != nil || again != a || same != folder {
			t.Errorf("%q is %s, folder %q; written out: %s, folder %q, %v", source, a, folder, again, same, err)
		}
	})
}
