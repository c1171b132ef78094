package upstream

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

const sampleLockFile = `# This file is maintained automatically by "terraform init".
# Manual edits may be lost in future updates.

provider "registry.terraform.io/hashicorp/null" {
  version     = "3.2.2"
  constraints = "~> 3.0"
  hashes = [
    "h1:zT1ZbegaAYHwQa+QwIFugArWikRJI9dqohj8xb0GY88=",
    "zh:3248aae6a2198f3ec8394218d05bd5e42be59f43a3a7c0b71c66ec0df08b69e7",
  ]
}

provider "registry.example.com:8443/acme/demo" {
  version = "1.0.0-rc.1+build.5"
}
`

func TestLockFile(t *testing.T) {
	locked, err := ParseLockFile("infra/.terraform.lock.hcl", []byte(sampleLockFile))
	if err != nil || len(locked) != 2 {
		t.Fatalf("it is %+v, %v", locked, err)
	}
	demo, null := locked[0], locked[1]
	if demo.Address.String() != "registry.example.com:8443/acme/demo" || demo.Version != "1.0.0-rc.1+build.5" || demo.Constraints != "" || demo.Hashes != nil {
		t.Errorf("the first is %+v", demo)
	}
	if null.Address != (address.Address{Hostname: "registry.terraform.io", Namespace: "hashicorp", Name: "null"}) ||
		null.Version != "3.2.2" || null.Constraints != "~> 3.0" || null.From != "infra/.terraform.lock.hcl:4" ||
		!slices.Equal(null.Hashes, []string{"h1:zT1ZbegaAYHwQa+QwIFugArWikRJI9dqohj8xb0GY88=", "zh:3248aae6a2198f3ec8394218d05bd5e42be59f43a3a7c0b71c66ec0df08b69e7"}) {
		t.Errorf("the second is %+v", null)
	}
}

func TestALockedVersionIsExact(t *testing.T) {
	locked, err := ParseLockFile("x", []byte(sampleLockFile))
	if err != nil {
		t.Fatal(err)
	}
	r, err := locked[0].Requirement()
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.Select([]string{"2.0.0", "1.0.0", "1.0.0-rc.1", "1.0.0-rc.1+build.5", "1.0.0-rc.1+build.6"})
	if got != "1.0.0-rc.1+build.5" {
		t.Errorf("it is %s, %v", got, err)
	}
	if got, err := r.Select([]string{"2.0.0", "1.0.0-rc.1"}); err == nil || !strings.Contains(err.Error(), "as x:13 asks for") {
		t.Errorf("it is %s, %v", got, err)
	}
}

// oneLock is a lock file with one provider.
func oneLock(source, body string) string {
	return fmt.Sprintf("provider %q {\n%s\n}\n", source, body)
}

var lockFiles = []struct{ rule, content, want, says string }{
	{"nothing locked", "", "", ""},
	{"comments only", "# This file is maintained automatically by \"terraform init\".\n", "", ""},
	{"the name is normalised", oneLock("Registry.Terraform.io/HashiCorp/Null", `version = "1.0.0"`), "registry.terraform.io/hashicorp/null 1.0.0", ""},
	{"arguments of later clients", oneLock("a.example.com/acme/demo", "version = \"1.0.0\"\nsource = upper(\"x\")\nnested {}"), "a.example.com/acme/demo 1.0.0", ""},
	{"blocks of later clients", "module \"x\" {\n}\nformat = 2\n" + oneLock("a.example.com/acme/demo", `version = "1.0.0"`), "a.example.com/acme/demo 1.0.0", ""},
	{"ordered by address", oneLock("b.example.com/acme/demo", `version = "1.0.0"`) + oneLock("a.example.com/acme/demo", `version = "2.0.0"`), "a.example.com/acme/demo 2.0.0 b.example.com/acme/demo 1.0.0", ""},
	{"hashes of schemes to come", oneLock("a.example.com/acme/demo", "version = \"1.0.0\"\nhashes = [\"h9:x\"]"), "a.example.com/acme/demo 1.0.0", ""},

	{"no HCL", "{\n", "", "lock:1: "},
	{"JSON", `{"provider":{}}`, "", "lock:1: "},
	{"a conflict in Git", "<<<<<<< HEAD\n" + sampleLockFile, "", "lock:1: "},
	{"a block without a name", "provider {\n}\n", "", "lock:1: "},
	{"no hostname", oneLock("hashicorp/null", `version = "1.0.0"`), "", "lock:1: \"hashicorp/null\" is not HOSTNAME/NAMESPACE/TYPE"},
	{"no provider", oneLock("a.example.com/acme/..", `version = "1.0.0"`), "", "lock:1: \"..\" is not a provider type"},
	{"what no registry has", oneLock("terraform.io/builtin/terraform", `version = "1.0.0"`), "", "cannot be locked"},
	{"no version", "\n" + oneLock("a.example.com/acme/demo", ""), "", "lock:2: a.example.com/acme/demo has no version"},
	{"a version with a v", oneLock("a.example.com/acme/demo", `version = "v1.0.0"`), "", `rename it to "1.0.0"`},
	{"a version that is none", oneLock("a.example.com/acme/demo", `version = "latest"`), "", "MAJOR.MINOR.PATCH"},
	{"a version that is no string", oneLock("a.example.com/acme/demo", `version = 1`), "", "version is not a string in quotes"},
	{"an expression", oneLock("a.example.com/acme/demo", `version = "${1}.0.0"`), "", "version is not a string in quotes"},
	{"an expression that takes forever", oneLock("a.example.com/acme/demo", `version = join([for a in [1,2,3]: [for b in [1,2,3]: b]])`), "", "version is not a string in quotes"},
	{"constraints that are none", oneLock("a.example.com/acme/demo", "version = \"1.0.0\"\nconstraints = \"latest\""), "", "not a version constraint"},
	{"hashes that are no list", oneLock("a.example.com/acme/demo", "version = \"1.0.0\"\nhashes = \"h1:x\""), "", "hashes is not a list"},
	{"a hash without its scheme", oneLock("a.example.com/acme/demo", "version = \"1.0.0\"\nhashes = [\n\"x\"]"), "", "the hash on line 4"},
	{"a provider twice", oneLock("a.example.com/acme/demo", `version = "1.0.0"`) + oneLock("A.example.com/acme/demo", `version = "2.0.0"`), "", "lock:4: a.example.com/acme/demo is locked at lock:1 already"},
	{"all that is wrong is told", oneLock("hashicorp/null", "") + oneLock("a.example.com/acme/demo", ""), "", "lock:4: a.example.com/acme/demo has no version"},
	{"a very large one", strings.Repeat("#\n", maxLockFile), "", "larger than"},
}

func TestLockFiles(t *testing.T) {
	for _, test := range lockFiles {
		t.Run(test.rule, func(t *testing.T) {
			locked, err := ParseLockFile("lock", []byte(test.content))
			if test.says != "" {
				if err == nil || !strings.Contains(err.Error(), test.says) {
					t.Fatalf("it is %+v, %v", locked, err)
				}
				return
			}
			var got []string
			for _, l := range locked {
				got = append(got, l.Address.String(), l.Version)
			}
			if err != nil || strings.Join(got, " ") != test.want {
				t.Fatalf("it is %q, %v", got, err)
			}
		})
	}
}

// Whatever is accepted is one exact version of each of its providers.
func FuzzParseLockFile(f *testing.F) {
	f.Add([]byte(sampleLockFile))
	for _, test := range lockFiles {
		f.Add([]byte(test.content))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		begin := time.Now()
		locked, err := ParseLockFile("lock", content)
		if took := time.Since(begin); took > 5*time.Second {
			t.Fatalf("it takes %s", took)
		}
		if err != nil {
			if locked != nil || !strings.Contains(err.Error(), "lock:") {
				t.Fatalf("it is %+v, %v", locked, err)
			}
			return
		}
		for i, l := range locked {
			if i > 0 && l.Address.String() <= locked[i-1].Address.String() {
				t.Fatalf("%s comes after %s", l.Address, locked[i-1].Address)
			}
			r, err := l.Requirement()
			if err != nil || l.Address.Hostname == "" {
				t.Fatalf("%+v: %v", l, err)
			}
			if got, err := r.Select([]string{l.Version}); err != nil || got != l.Version {
				t.Fatalf("%s is not what it locks: %s, %v", l.Version, got, err)
			}
		}
	})
}

// Terraform 0.13 leaves providers of a legacy namespace behind, of no registry.
func TestLegacyProvidersInALockFile(t *testing.T) {
	locked, err := ParseLockFile("lock", []byte(`provider "registry.terraform.io/-/null" {
  version = "3.2.2"
}
provider "registry.terraform.io/hashicorp/null" {
  version = "3.2.2"
}
`))
	if err != nil || len(locked) != 2 || !locked[0].Legacy || locked[0].Address.String() != "registry.terraform.io/-/null" || locked[0].From != "lock:1" || locked[1].Legacy {
		t.Errorf("got %+v, %v", locked, err)
	}
	for _, source := range []string{"registry.example.com/-/null", "registry.terraform.io/-/", "registry.terraform.io/-/a/b"} {
		if _, err := ParseLockFile("lock", []byte("provider \""+source+"\" {\n  version = \"3.2.2\"\n}\n")); err == nil {
			t.Errorf("%s is taken", source)
		}
	}
}
