package lockfile

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

func TestParse(t *testing.T) {
	locked, err := parse("infra/.terraform.lock.hcl", []byte(sampleLockFile))
	if err != nil || len(locked) != 2 {
		t.Fatalf("got %+v, %v", locked, err)
	}
	demo, null := locked[0], locked[1]
	if demo.Address.String() != "registry.example.com:8443/acme/demo" || demo.Version != "1.0.0-rc.1+build.5" || demo.Hashes != nil {
		t.Errorf("the first provider is %+v", demo)
	}
	if null.Address != (address.Address{Hostname: "registry.terraform.io", Namespace: "hashicorp", Name: "null"}) ||
		null.Version != "3.2.2" || null.From != "infra/.terraform.lock.hcl:4" ||
		!slices.Equal(null.Hashes, []string{"h1:zT1ZbegaAYHwQa+QwIFugArWikRJI9dqohj8xb0GY88=", "zh:3248aae6a2198f3ec8394218d05bd5e42be59f43a3a7c0b71c66ec0df08b69e7"}) {
		t.Errorf("the second provider is %+v", null)
	}
}

func TestRequirementOfLocked(t *testing.T) {
	locked, err := parse("x", []byte(sampleLockFile))
	if err != nil {
		t.Fatal(err)
	}
	r := locked[0].Requirement()
	got, err := r.Select([]string{"2.0.0", "1.0.0", "1.0.0-rc.1", "1.0.0-rc.1+build.5", "1.0.0-rc.1+build.6"})
	if got != "1.0.0-rc.1+build.5" {
		t.Errorf("got %s, %v", got, err)
	}
	if got, err := r.Select([]string{"2.0.0", "1.0.0-rc.1"}); err == nil || !strings.Contains(err.Error(), "as x:13 asks for") {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestAccepts(t *testing.T) {
	const zh, otherZH, h1, otherH1 = "zh:11", "zh:22", "h1:aa=", "h1:bb="
	for _, test := range []struct {
		rule          string
		locked, given []string
		want          bool
	}{
		{"nothing is locked", nil, []string{zh, h1}, true},
		{"nothing is known of the package", []string{zh, h1}, nil, true},
		{"the zip", []string{otherZH, zh}, []string{zh}, true},
		{"another zip", []string{otherZH}, []string{zh}, false},
		{"another zip with the same files", []string{h1, otherZH}, []string{zh, h1}, false},
		{"the same files, while the zip is not locked", []string{h1}, []string{zh, otherH1, h1}, true},
		{"other files", []string{otherH1}, []string{zh, h1}, false},
		{"files that are not known yet", []string{otherH1}, []string{zh}, true},
		{"a scheme of later clients", []string{"h9:x"}, []string{zh, h1}, true},
	} {
		if got := (Locked{Hashes: test.locked}).Accepts(test.given); got != test.want {
			t.Errorf("%s: accepted is %v", test.rule, got)
		}
	}
}

// oneLock returns a lock file with one provider.
func oneLock(source, body string) string {
	return fmt.Sprintf("provider %q {\n%s\n}\n", source, body)
}

var lockFiles = []struct{ rule, content, want, says string }{
	{"nothing locked", "", "", ""},
	{"comments only", "# This file is maintained automatically by \"terraform init\".\n", "", ""},
	{"the name is normalised", oneLock("Registry.Terraform.io/HashiCorp/Null", `version = "1.0.0"`), "registry.terraform.io/hashicorp/null 1.0.0", ""},
	{"a hostname without a dot", oneLock("local/acme/demo", `version = "1.0.0"`), "local:443/acme/demo 1.0.0", ""},
	{"attributes of later clients", oneLock("a.example.com/acme/demo", "version = \"1.0.0\"\nsource = upper(\"x\")\nnested {}"), "a.example.com/acme/demo 1.0.0", ""},
	{"blocks of later clients", "module \"x\" {\n}\nformat = 2\n" + oneLock("a.example.com/acme/demo", `version = "1.0.0"`), "a.example.com/acme/demo 1.0.0", ""},
	{"ordered by address", oneLock("b.example.com/acme/demo", `version = "1.0.0"`) + oneLock("a.example.com/acme/demo", `version = "2.0.0"`), "a.example.com/acme/demo 2.0.0 b.example.com/acme/demo 1.0.0", ""},
	{"hash schemes of later clients", oneLock("a.example.com/acme/demo", "version = \"1.0.0\"\nhashes = [\"h9:x\"]"), "a.example.com/acme/demo 1.0.0", ""},

	{"invalid HCL", "{\n", "", "lock:1: "},
	{"JSON", `{"provider":{}}`, "", "lock:1: "},
	{"a Git conflict", "<<<<<<< HEAD\n" + sampleLockFile, "", "lock:1: "},
	{"a block without a name", "provider {\n}\n", "", "lock:1: "},
	{"no hostname", oneLock("hashicorp/null", `version = "1.0.0"`), "", "lock:1: \"hashicorp/null\" is not HOSTNAME/NAMESPACE/TYPE"},
	{"an empty hostname", oneLock("/hashicorp/null", `version = "1.0.0"`), "", "is not the source of a provider"},
	{"an invalid provider", oneLock("a.example.com/acme/..", `version = "1.0.0"`), "", "lock:1: \"..\" is not a provider type"},
	{"a built-in provider", oneLock("terraform.io/builtin/terraform", `version = "1.0.0"`), "", "cannot be locked"},
	{"no version", "\n" + oneLock("a.example.com/acme/demo", ""), "", "lock:2: a.example.com/acme/demo has no version"},
	{"a version with a v", oneLock("a.example.com/acme/demo", `version = "v1.0.0"`), "", `rename it to "1.0.0"`},
	{"an invalid version", oneLock("a.example.com/acme/demo", `version = "latest"`), "", "MAJOR.MINOR.PATCH"},
	{"a version that is not a string", oneLock("a.example.com/acme/demo", `version = 1`), "", "version is not a string in quotes"},
	{"an expression", oneLock("a.example.com/acme/demo", `version = "${a}.0.0"`), "", "version is not a string in quotes"},
	{"an expression that takes forever", oneLock("a.example.com/acme/demo", `version = join([for a in [1,2,3]: [for b in [1,2,3]: b]])`), "", "version is not a string in quotes"},
	{"hashes that are not a list", oneLock("a.example.com/acme/demo", "version = \"1.0.0\"\nhashes = \"h1:x\""), "", "hashes is not a list"},
	{"a hash without its scheme", oneLock("a.example.com/acme/demo", "version = \"1.0.0\"\nhashes = [\n\"x\"]"), "", "the hash on line 4"},
	{"a provider twice", oneLock("a.example.com/acme/demo", `version = "1.0.0"`) + oneLock("A.example.com/acme/demo", `version = "2.0.0"`), "", "lock:4: a.example.com/acme/demo is locked at lock:1 already"},
	{"every error is listed", oneLock("hashicorp/null", "") + oneLock("a.example.com/acme/demo", ""), "", "lock:4: a.example.com/acme/demo has no version"},
	{"a very large file", strings.Repeat("#\n", maxSize), "", "larger than"},
}

func TestParseRules(t *testing.T) {
	for _, test := range lockFiles {
		t.Run(test.rule, func(t *testing.T) {
			locked, err := parse("lock", []byte(test.content))
			if test.says != "" {
				if err == nil || !strings.Contains(err.Error(), test.says) {
					t.Fatalf("got %+v, %v", locked, err)
				}
				return
			}
			var got []string
			for _, l := range locked {
				got = append(got, l.Address.String(), l.Version)
			}
			if err != nil || strings.Join(got, " ") != test.want {
				t.Fatalf("got %q, %v", got, err)
			}
		})
	}
}

// An accepted lock file has one exact version of each of its providers.
func FuzzParse(f *testing.F) {
	f.Add([]byte(sampleLockFile))
	for _, test := range lockFiles {
		f.Add([]byte(test.content))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		begin := time.Now()
		locked, err := parse("lock", content)
		if took := time.Since(begin); took > 5*time.Second {
			t.Fatalf("it took %s", took)
		}
		if err != nil {
			if locked != nil || !strings.Contains(err.Error(), "lock:") {
				t.Fatalf("got %+v, %v", locked, err)
			}
			return
		}
		for i, l := range locked {
			if i > 0 && l.Address.String() <= locked[i-1].Address.String() {
				t.Fatalf("%s comes after %s", l.Address, locked[i-1].Address)
			}
			if l.Address.Hostname == "" {
				t.Fatalf("%+v has no hostname", l)
			}
			if l.Legacy {
				continue
			}
			if got, err := l.Requirement().Select([]string{l.Version}); err != nil || got != l.Version {
				t.Fatalf("%s is not what it locks: %s, %v", l.Version, got, err)
			}
		}
	})
}

// Terraform 0.13 leaves providers of a legacy namespace in lock files. No registry has
// them.
func TestParseLegacyProviders(t *testing.T) {
	locked, err := parse("lock", []byte(`provider "registry.terraform.io/-/null" {
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
		if _, err := parse("lock", []byte("provider \""+source+"\" {\n  version = \"3.2.2\"\n}\n")); err == nil {
			t.Errorf("%s is accepted", source)
		}
	}
}
