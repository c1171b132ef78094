package lockfile

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
)

func TestModuleCallSelects(t *testing.T) {
	for _, test := range []struct {
		rule, constraints, offered string
		want, says                 string
	}{
		{"the newest", "", "1.0.0 1.10.0 1.9.0", "1.10.0", ""},
		{"of those that are allowed", "~> 1.9.0", "1.0.0 1.10.0 1.9.0 1.9.3", "1.9.3", ""},
		{"of a major version, as clients read one number", "~> 1", "1.0.0 2.0.0", "2.0.0", ""},
		{"no pre-release", "", "1.0.0 2.0.0-rc.1", "1.0.0", ""},
		{"a pre-release that is named", "2.0.0-rc.1", "1.0.0 2.0.0-rc.1", "2.0.0-rc.1", ""},
		{"no pre-release for its boundary", ">= 2.0.0-rc.1", "2.0.0-rc.2 2.0.0", "2.0.0", ""},
		{"versions with a v or without a patch", "", "v1.2", "1.2.0", ""},
		{"the first of its builds, as clients take them for the same", "1.0.0+a", "1.0.0+b 1.0.0 1.0.0+a", "1.0.0", ""},
		{"other texts than versions are ignored", "", "latest 1.0.0", "1.0.0", ""},
		{"none is on offer", "", "latest", "", "no version of registry.terraform.io/acme/vpc/aws is on offer"},
		{"none is allowed", "> 2", "1.0.0 2.0.0", "", "is > 2, as acme/vpc/aws@> 2 asks for: the newest on offer is 2.0.0"},
		{"pre-releases only", "", "1.0.0-rc.1", "", "is any release, as"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			argument := strings.TrimSuffix("acme/vpc/aws@"+test.constraints, "@")
			c, err := ParseModuleCall(argument, false)
			if err != nil || c.String() != "registry.terraform.io/"+argument {
				t.Fatalf("%q is %s, %v", argument, c, err)
			}
			got, err := c.Select(strings.Fields(test.offered))
			if got != test.want || test.says == "" && err != nil || test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func TestParseModuleCallFails(t *testing.T) {
	for _, test := range []struct{ argument, says string }{
		{"hashicorp/null", "is not a module"},
		{"git::https://example.com/a.git", "is not a module"},
		{"acme/vpc/aws@", "ends in @"},
		{"acme/vpc/aws@newest", "is not a version constraint"},
		{"acme/vpc/aws@" + strings.Repeat("> 1,", 1000) + "> 1", "too long"},
	} {
		if c, err := ParseModuleCall(test.argument, false); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%.40q: got %s, %v", test.argument, c, err)
		}
	}
	if c, err := ParseModuleCall("acme/vpc/aws//modules/a", true); err != nil || c.String() != "registry.opentofu.org/acme/vpc/aws//modules/a" {
		t.Errorf("of OpenTofu: got %s, %v", c, err)
	}
}

// newPackage returns the package of a version, given as names and contents of its files.
func newPackage(t *testing.T, name, folder string, files ...string) *Package {
	t.Helper()
	p := &Package{Name: name, Folder: folder}
	for i := 0; i < len(files); i += 2 {
		if !p.Wants(files[i]) {
			continue
		}
		if err := p.Add(files[i], []byte(files[i+1])); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func TestConfigurationFollowsCalls(t *testing.T) {
	const vpc = "registry.terraform.io/acme/vpc/aws"
	requires := func(constraints string) string {
		return fmt.Sprintf("terraform {\n required_providers {\n  null = { version = %q }\n }\n}\n", constraints)
	}
	for _, test := range []struct {
		rule   string
		call   string
		folder string
		files  []string
		calls  []string // to which the module leads
		needs  []string
		says   string
	}{
		{"its providers and calls", vpc, "", []string{"main.tf", requires("~> 3.0") + "module \"x\" {\n source  = \"acme/x/any\"\n version = \"1.0.0\"\n}", "README.md", "", "modules/a/main.tf", requires("1.0.0")},
			[]string{"registry.terraform.io/acme/x/any@1.0.0"}, []string{"registry.terraform.io/hashicorp/null@~> 3.0 of vpc//main.tf:3"}, ""},
		{"a folder in it, and its local calls", vpc + "//modules/a", "", []string{"main.tf", requires("1.0.0"), "modules/a/main.tf", "module \"b\" {\n source = \"../b\"\n}", "modules/b/main.tf", requires("2.0.0")},
			nil, []string{"registry.terraform.io/hashicorp/null@2.0.0 of vpc//modules/b/main.tf:3"}, ""},
		{"a module that lies in a folder of its package", vpc + "//b", "top/a", []string{"top/a/b/main.tf", "module \"c\" {\n source = \"../../c\"\n}", "top/c/main.tf", requires("2.0.0")},
			nil, []string{"registry.terraform.io/hashicorp/null@2.0.0 of vpc//top/c/main.tf:3"}, ""},
		{"a module that calls itself", vpc, "", []string{"main.tf", "module \"x\" {\n source = \"acme/vpc/aws\"\n}"}, nil, nil, ""},
		{"a module that calls its own folder by its address", vpc, "", []string{"main.tf", "module \"x\" {\n source = \"acme/vpc/aws//a\"\n}"},
			[]string{vpc + "//a"}, nil, ""},
		{"a local call that leads out", vpc, "", []string{"main.tf", "module \"x\" {\n source = \"../x\"\n}"}, nil,
			[]string{`unresolved vpc//main.tf:1: module "x": ../x leads out of the package, which clients refuse`}, ""},
		{"a local call of nothing", vpc, "", []string{"main.tf", "module \"x\" {\n source = \"./x\"\n}"}, nil,
			[]string{`unresolved vpc//main.tf:1: module "x": its folder vpc//x: it does not exist`}, ""},
		{"its tests are not installed by those who call it", vpc, "", []string{"main.tf", "", "x.tftest.hcl", "!"}, nil, nil, ""},
		{"only submodules", vpc, "", []string{"modules/a/main.tf", requires("1.0.0"), "modules/b/main.tf", requires("> 0.9"), "examples/c/main.tf", requires("2.0.0"), "modules/a/nested/main.tf", "!"},
			nil, []string{"registry.terraform.io/hashicorp/null@> 0.9, 1.0.0 of vpc//modules/a/main.tf:3 vpc//modules/b/main.tf:3"}, ""},
		{"no module", vpc, "", []string{"README.md", ""}, nil, nil, "vpc: there is no .tf file in it"},
		{"no such folder", vpc + "//modules/a", "", []string{"main.tf", ""}, nil, nil, "vpc//modules/a: it does not exist"},
		{"a file that clients cannot read", vpc, "", []string{"a/../main.tf", "module {"}, nil, nil, "vpc//main.tf:1: "},
		{"a large file", vpc, "", []string{"main.tf", strings.Repeat("#", MaxPackageFile+1)}, nil, nil, "vpc//main.tf: it is larger than "},
		{"brackets enough for the parser's stack", vpc, "", []string{"main.tf", "a = " + strings.Repeat("[for a in ", maxNesting+1)}, nil, nil, "vpc//main.tf: there is too much in it"},
		{"brackets within the bound", vpc, "", []string{"main.tf", "a = " + strings.Repeat("[for a in ", maxNesting)}, nil, nil, "vpc//main.tf:1: "},
	} {
		t.Run(test.rule, func(t *testing.T) {
			call, err := ParseModuleCall(test.call, false)
			if err != nil {
				t.Fatal(err)
			}
			c := CallingModule(call, false)
			if calls := c.Calls(); len(calls) != 1 || calls[0].String() != test.call {
				t.Fatalf("its calls are %v", calls)
			}
			err = c.Add(call, newPackage(t, "vpc", test.folder, test.files...))
			if test.says == "" && err != nil || test.says != "" && (err == nil || !strings.HasPrefix(err.Error(), test.says)) {
				t.Fatalf("got %v", err)
			}
			var calls []string
			for _, call := range c.Calls() {
				calls = append(calls, call.String())
			}
			if got := needs(c); !slices.Equal(calls, test.calls) || got != strings.Join(test.needs, "\n") {
				t.Errorf("got calls %q, needs\n%s", calls, got)
			}
		})
	}
}

func TestPackagesAreBounded(t *testing.T) {
	var p Package
	large := make([]byte, maxPackageBytes/4)
	for i := range 5 {
		if err := p.Add(path.Join("a", fmt.Sprint(i)+".tf"), large); (err != nil) != (i == 4) {
			t.Errorf("file %d: %v", i, err)
		}
	}
}

func FuzzPackage(f *testing.F) {
	f.Add("module \"x\" {\n source = \"../${1}x\"\n}", `{"module": {"x": {"source": "acme/x/any//a"}}}`)
	f.Fuzz(func(t *testing.T, native, json string) {
		p := newPackage(t, "p", "", "main.tf", native, "more.tf.json", json)
		call, err := ParseModuleCall("acme/vpc/aws", false)
		if err != nil {
			t.Fatal(err)
		}
		c := CallingModule(call, true)
		c.Calls()
		if err := c.Add(call, p); err != nil && !strings.HasPrefix(err.Error(), "p") {
			t.Errorf("the error does not say where: %v", err)
		}
		for _, call := range c.Calls() {
			if _, err := ParseModuleCall(call.String(), true); err != nil {
				t.Errorf("%s: %v", call, err)
			}
		}
	})
}
