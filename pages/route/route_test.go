package route

import (
	"strings"
	"testing"
)

func TestRoutesHaveANormalForm(t *testing.T) {
	for _, test := range []struct{ name, path, want string }{
		{"names in upper case", "/modules/Acme/VPC/aws", "/modules/acme/vpc/aws"},
		{"a version with parts left out", "/modules/acme/vpc/aws/v1.2", "/modules/acme/vpc/aws/1.2.0"},
		{"a provider's version with parts left out", "/providers/acme/demo/v1.2", "/providers/acme/demo/1.2.0"},
		{"a build of a version", "/modules/acme/vpc/aws/1.0.0+build.5", "/modules/acme/vpc/aws/1.0.0+build.5"},
		{"a submodule", "/modules/acme/vpc/aws/latest/submodules/subnets", "/modules/acme/vpc/aws/latest/submodules/subnets"},
		{"a file with a space", "/modules/acme/vpc/aws/1.0.0/files/a%20b/c%3f.md", "/modules/acme/vpc/aws/1.0.0/files/a%20b/c%3F.md"},
		{"the code of a package", "/modules/acme/vpc/aws/v1.0/code/", "/modules/acme/vpc/aws/1.0.0/code"},
		{"a page of a file", "/modules/acme/vpc/aws/latest/code/a%20b/c%3f.tf", "/modules/acme/vpc/aws/latest/code/a%20b/c%3F.tf"},
		{"a mirrored module", "/registries/Registry.Terraform.io/modules/acme/vpc/aws", "/registries/registry.terraform.io/modules/acme/vpc/aws"},
		{"a hostname in Unicode", "/registries/b%C3%BCcher.example/providers/acme/demo", "/registries/xn--bcher-kva.example/providers/acme/demo"},
		{"a hostname with a port", "/registries/localhost:8443/providers/acme/demo", "/registries/localhost:8443/providers/acme/demo"},
		{"a namespace", "/modules/Acme/", "/modules/acme"},
		{"a module without a system", "/modules/Acme/VPC", "/modules/acme/vpc"},
		{"a mirrored namespace", "/registries/Registry.Terraform.io/providers/Acme", "/registries/registry.terraform.io/providers/acme"},
		{"a registry", "/registries/Registry.Terraform.io/", "/registries/registry.terraform.io"},
		{"what is no version", "/modules/Acme/vpc/aws/one/a%20b", "/modules/acme/vpc/aws/one/a%20b"},
		{"a page of documentation", "/providers/acme/demo/1.0.0/docs/resources/greeting", "/providers/acme/demo/1.0.0/docs/resources/greeting"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, ok := Parse(test.path)
			if !ok || r.Path() != test.want {
				t.Errorf("%v, %s", ok, r.Path())
			}
		})
	}
}

func FuzzRoutes(f *testing.F) {
	for _, path := range []string{
		"/", "//", "/modules/a/b/c", "/modules/a/b/c/latest/files/x%2e%2e/y", "/registries/a.b/providers/c/d/1.0.0/docs/x", "/modules/a/b/c/1.0.0/examples/%00", "/modules/a/b/c/1.0.0/code", "/modules/a/b/c/latest/code/x%2fy/z", "/modules/a", "/registries/a.b/providers/c", "/registries/a.b", "/modules/a/b/c/x/y", "/providers/a/b/1.0/c",
	} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		r, ok := Parse(path)
		if !ok {
			return
		}
		normal := r.Path()
		if again, ok := Parse(normal); !ok || again != r {
			t.Errorf("%q is %+v, and its normal form %q is %+v", path, r, normal, again)
		}
		if !strings.HasPrefix(normal, "/") || strings.HasPrefix(normal, "//") || strings.Contains(normal, "/../") || strings.ContainsAny(normal, "\\\r\n\x00 ") {
			t.Errorf("%q leads to %q", path, normal)
		}
	})
}
