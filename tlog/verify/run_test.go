package verify_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/clientconfig"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog/verify"
)

const (
	demo = "registry.example.com/acme/demo"
	vpc  = "registry.example.com/acme/vpc/aws"
)

var vpcFiles = []string{"main.tf", "# a module", "modules/subnet/main.tf", "# a submodule", ".hidden", "x", "a/.b/c", "x"}

// full is a registry with a provider and a module.
func full(t *testing.T) *registry {
	t.Helper()
	return fill(newRegistry(t))
}

func fill(r *registry) *registry {
	r.Provider("acme/demo", "1.2.0", "linux_amd64", "darwin_arm64")
	r.Write("modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz(vpcFiles...))
	r.offer()
	return r
}

// installed is a machine that has both.
func installed(t *testing.T, r *registry) *machine {
	t.Helper()
	m := newMachine(t, r)
	m.provider(r, "acme/demo", "1.2.0", "linux_amd64")
	m.module(r, "vpc", vpc, "1.0.0")
	return m
}

const (
	demoPackage = ".terraform/providers/registry.example.com/acme/demo/1.2.0/linux_amd64"
	demoBinary  = demoPackage + "/terraform-provider-demo_v1.2.0"
	vpcPackage  = ".terraform/modules/vpc"
)

// Nothing is found where nothing is wrong.
func TestWhatIsOnRecordIsFine(t *testing.T) {
	both := []string{demo + " 1.2.0 ok", vpc + " 1.0.0 ok"}
	for _, test := range []struct {
		rule   string
		change func(t *testing.T, r *registry, m *machine)
		want   []string
	}{
		{"as init leaves it", func(*testing.T, *registry, *machine) {}, both},
		{"a submodule: the package counts, not its folder", func(t *testing.T, r *registry, m *machine) {
			m.module(r, "subnet", vpc+"//modules/subnet", "1.0.0")
		}, both},
		{"a second call, copied without hidden files", func(t *testing.T, r *registry, m *machine) {
			m.second("again")
		}, both},
		{"a second call alone: the package is fetched to compare it", func(t *testing.T, r *registry, m *machine) {
			m.second("vpc")
			m.remove(vpcPackage + "/.hidden")
			m.remove(vpcPackage + "/a")
		}, both},
		{"a call in a module", func(t *testing.T, r *registry, m *machine) { m.module(r, "vpc.subnets", vpc, "1.0.0") }, both},
		{"a plugin cache", func(t *testing.T, r *registry, m *machine) {
			cache := filepath.Join(t.TempDir(), "cache")
			m.must(os.Rename(m.path(demoPackage), cache))
			m.must(os.Symlink(cache, m.path(demoPackage)))
		}, both},
		{"a lock file alone, in a fresh clone", func(t *testing.T, r *registry, m *machine) { m.remove(".terraform") }, both[:1]},
		{"other versions that were left behind", func(t *testing.T, r *registry, m *machine) {
			m.write(".terraform/providers/registry.example.com/acme/demo/1.1.0/linux_amd64/terraform-provider-demo", "old")
		}, both},
		{"hashes of a scheme that clients pass over", func(t *testing.T, r *registry, m *machine) {
			m.replace(".terraform.lock.hcl", "hashes = [", "hashes = [ \"h9:x\",")
		}, both},
		{"modules that are local or from elsewhere", func(t *testing.T, r *registry, m *machine) {
			m.replace(".terraform/modules/modules.json", `"Dir":"."}`, `"Dir":"."},{"Key":"git","Source":"git::https://example.com/a.git","Dir":".terraform/modules/git"},{"Key":"local","Source":"./x","Dir":"x"}`)
		}, both},
		{"a client without lock files, which has another folder", func(t *testing.T, r *registry, m *machine) {
			m.remove(".terraform.lock.hcl")
			m.must(os.Rename(m.path(".terraform/providers"), m.path(".terraform/plugins")))
			m.write(".terraform/plugins/selections.json", "{}")
		}, both},
		{"two versions in two folders", func(t *testing.T, r *registry, m *machine) {
			r.Write("modules/acme/vpc/aws/1.1.0/main.tf", "# a folder")
			r.offer()
			m.module(r, "new", vpc, "1.1.0")
		}, append(both[:2:2], vpc+" 1.1.0 ok")},
		{"a package whose module is in a folder", func(t *testing.T, r *registry, m *machine) {
			r.Write("modules/acme/vpc/aws/1.1.0.tar.gz", indextest.TarGz("vpc-1.1.0/main.tf", ""))
			r.offer()
			m.module(r, "new", vpc, "1.1.0")
		}, append(both[:2:2], vpc+" 1.1.0 ok")},
		{"a link in the package, of which clients make an empty file", func(t *testing.T, r *registry, m *machine) {
			r.Write("modules/acme/vpc/aws/1.1.0.tar.gz", linked(t))
			r.offer()
			m.module(r, "new", vpc, "1.1.0")
		}, append(both[:2:2], vpc+" 1.1.0 ok")},
		{"a link in the package that is followed", func(t *testing.T, r *registry, m *machine) {
			r.Write("modules/acme/vpc/aws/1.1.0.tar.gz", linked(t))
			r.offer()
			m.module(r, "new", vpc, "1.1.0")
			m.write(".terraform/modules/new/link.tf", "# linked")
		}, append(both[:2:2], vpc+" 1.1.0 ok")},
		{"a link in the package that is kept", func(t *testing.T, r *registry, m *machine) {
			r.Write("modules/acme/vpc/aws/1.1.0.tar.gz", linked(t))
			r.offer()
			m.module(r, "new", vpc, "1.1.0")
			m.remove(".terraform/modules/new/link.tf")
			m.must(os.Symlink("main.tf", m.path(".terraform/modules/new/link.tf")))
		}, append(both[:2:2], vpc+" 1.1.0 ok")},
		{"withdrawn and restored", func(t *testing.T, r *registry, m *machine) {
			r.Write("modules/acme/vpc/aws/registry.hcl", `withdrawn "1.0.0" {}`)
			r.offer()
			r.Remove("modules/acme/vpc/aws/registry.hcl")
			r.offer()
		}, both},
		{"the same files, packed again", func(t *testing.T, r *registry, m *machine) {
			r.Write("modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz(append([]string{"main.tf", vpcFiles[1]}, vpcFiles[2:]...)...)+"\n")
			r.offer()
		}, both},
	} {
		t.Run(test.rule, func(t *testing.T) {
			r := full(t)
			m := installed(t, r)
			test.change(t, r, m)
			says(t, m.verify(), test.want...)
			says(t, m.verify(), test.want...) // by what has been kept
		})
	}
}

// Hashes of platforms that the registry has never fetched are in the publisher's SHA256SUMS.
func TestHashesOfSHA256SUMS(t *testing.T) {
	r := newRegistry(t)
	p := r.Provider("acme/demo", "1.2.0", "linux_amd64", "darwin_arm64").Checksums()
	sums := r.Read(p.ChecksumsName())
	r.Remove("providers/acme/demo/" + address.PackageName("demo", "1.2.0", address.Platform{OS: "darwin", Arch: "arm64"}))
	r.offer()
	m := newMachine(t, r)
	m.provider(r, "acme/demo", "1.2.0", "linux_amd64")
	mac := ""
	for line := range strings.Lines(sums) {
		if strings.Contains(line, "darwin_arm64") {
			mac, _, _ = strings.Cut(line, " ")
		}
	}
	m.replace(".terraform.lock.hcl", "hashes = [", `hashes = [ "zh:`+mac+`",`)
	says(t, m.verify(), demo+" 1.2.0 ok")

	r.Write(p.ChecksumsName(), strings.Replace(sums, mac, strings.Repeat("0", 64), 1))
	r.offer()
	report := m.verify()
	says(t, report, demo+" 1.2.0 other bytes")
	if f := report.Items[0].Findings[0]; !strings.Contains(f.Detail, "1 of 3 hashes in the lock file are in no entry, and they are not in SHA256SUMS either: zh:"+mac) {
		t.Errorf("it says %s", f.Detail)
	}
}

func TestFindings(t *testing.T) {
	for _, test := range []struct {
		rule      string
		change    func(t *testing.T, r *registry, m *machine)
		item      string // whose result is
		want      string
		where     string
		detail    string
		differing string
	}{
		{rule: "a byte of a module", item: vpc, want: "other bytes", where: vpcPackage, differing: "[{main.tf changed}]",
			change: func(t *testing.T, r *registry, m *machine) { m.write(vpcPackage+"/main.tf", "# a modulE") }},
		{rule: "files that a module wrote into itself, and files that are gone", item: vpc, want: "other bytes", where: vpcPackage,
			differing: "[{lambda.zip added} {modules/subnet/main.tf missing}]",
			change: func(t *testing.T, r *registry, m *machine) {
				m.write(vpcPackage+"/lambda.zip", "x")
				m.remove(vpcPackage + "/modules/subnet/main.tf")
			}},
		{rule: "a hidden file with another content", item: vpc, want: "other bytes", differing: "[{.hidden changed}]",
			change: func(t *testing.T, r *registry, m *machine) { m.write(vpcPackage+"/.hidden", "y") }},
		{rule: "a link to elsewhere", item: vpc, want: "other bytes", differing: "[{evil.tf added}]",
			change: func(t *testing.T, r *registry, m *machine) {
				m.must(os.Symlink("/tmp/evil.tf", m.path(vpcPackage+"/evil.tf")))
			}},
		{rule: "a link in the place of a file", item: vpc, want: "other bytes", differing: "[{main.tf changed}]",
			change: func(t *testing.T, r *registry, m *machine) {
				m.remove(vpcPackage + "/main.tf")
				m.must(os.Symlink("modules/subnet/main.tf", m.path(vpcPackage+"/main.tf")))
			}},
		{rule: "a byte of a second call's copy", item: vpc, want: "other bytes", where: ".terraform/modules/again", differing: "[{main.tf changed}]",
			change: func(t *testing.T, r *registry, m *machine) {
				m.second("again")
				m.write(".terraform/modules/again/main.tf", "")
			}},
		{rule: "a byte of a provider's binary", item: demo, want: "other bytes", where: demoPackage, detail: "the installed files have the hash h1:",
			change: func(t *testing.T, r *registry, m *machine) { m.write(demoBinary, "evil") }},
		{rule: "a second binary beside a provider's", item: demo, want: "other bytes", where: demoPackage,
			change: func(t *testing.T, r *registry, m *machine) {
				m.write(demoPackage+"/terraform-provider-demo_v9", "evil")
			}},
		{rule: "a hash in the lock file", item: demo, want: "other bytes", where: ".terraform.lock.hcl:1", detail: "1 of 4 hashes in the lock file are in no entry",
			change: func(t *testing.T, r *registry, m *machine) {
				m.replace(".terraform.lock.hcl", "hashes = [", `hashes = [ "zh:`+strings.Repeat("0", 64)+`",`)
			}},
		{rule: "a zip that is replaced in the tree and installed again", item: demo, want: "other bytes, other bytes",
			change: func(t *testing.T, r *registry, m *machine) {
				r.Write("providers/acme/demo/terraform-provider-demo_1.2.0_linux_amd64.zip", indextest.Zip("terraform-provider-demo_v1.2.0", "evil"))
				r.offer()
				m.locked.Reset()
				m.provider(r, "acme/demo", "1.2.0", "linux_amd64")
			}},
		{rule: "a module that is replaced in the tree and installed again", item: vpc, want: "other bytes", detail: "the registry serves other bytes now, too",
			change: func(t *testing.T, r *registry, m *machine) {
				r.Write("modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", "# evil"))
				r.offer()
				m.remove(vpcPackage)
				m.calls = nil
				m.module(r, "vpc", vpc, "1.0.0")
			}},
		{rule: "a version that is not on record", item: vpc, want: "not on record",
			change: func(t *testing.T, r *registry, m *machine) {
				m.replace(".terraform/modules/modules.json", "1.0.0", "1.0.1")
			}},
		{rule: "a platform that is not on record", item: demo, want: "not on record", detail: "the log has no package for linux_arm64",
			change: func(t *testing.T, r *registry, m *machine) {
				m.write(strings.Replace(demoPackage, "amd64", "arm64", 1)+"/terraform-provider-demo", "evil")
			}},
		{rule: "a module withdrawn since", item: vpc, want: "withdrawn", detail: "acme/vpc/aws 1.0.0 is withdrawn: subnets overlap",
			change: func(t *testing.T, r *registry, m *machine) {
				r.Write("modules/acme/vpc/aws/registry.hcl", "withdrawn \"1.0.0\" {\n  reason = \"subnets overlap\"\n}")
				r.offer()
			}},
		{rule: "a provider withdrawn since", item: demo, want: "withdrawn", detail: "acme/demo 1.2.0 is withdrawn: it deletes",
			change: func(t *testing.T, r *registry, m *machine) {
				r.Write("providers/acme/demo/registry.hcl", "withdrawn \"1.2.0\" {\n  reason = \"it deletes\"\n}")
				r.offer()
			}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			r := full(t)
			m := installed(t, r)
			test.change(t, r, m)
			for range 2 { // the second time by what has been kept
				report := m.verify()
				item := report.Items[0]
				if test.item == vpc {
					item = report.Items[1]
				}
				want := []string{demo + " 1.2.0 ok", vpc + " " + report.Items[1].Version + " ok"}
				for i, w := range want {
					if strings.HasPrefix(w, test.item) {
						want[i] = strings.TrimSuffix(w, "ok") + test.want
					}
				}
				says(t, report, want...)
				f := item.Findings[0]
				if test.where != "" && !strings.HasSuffix(f.Where, filepath.FromSlash(test.where)) || !strings.Contains(f.Detail, test.detail) || test.differing != "" && fmt.Sprint(f.Files) != test.differing {
					t.Errorf("it says %+v", f)
				}
			}
		})
	}
}

// A copy of a package, which lacks hidden files, is compared with the package. It is no finding
// that the registry fails.
func TestPackagesThatCannotBeFetched(t *testing.T) {
	for _, test := range []struct {
		rule   string
		status int
		body   string
		want   string
		says   string
	}{
		{"the registry fails", http.StatusServiceUnavailable, "", "unanswered", "it answered 503"},
		{"the registry refuses it", http.StatusForbidden, `{"errors":["ask ann"]}`, "unanswered", "it answered 403 Forbidden: ask ann"},
		{"the registry does not serve it any more", http.StatusNotFound, "", "other bytes", "the registry does not serve the package any more"},
		{"the origin of a mirror has other bytes now", http.StatusUnprocessableEntity, `{"errors":["its tag has moved"]}`, "other bytes", "the registry does not serve the package any more: its tag has moved"},
		{"the registry serves something else", http.StatusOK, "", "other bytes", "the package that the registry serves cannot be read"},
	} {
		r := full(t)
		m := newMachine(t, r)
		m.module(r, "vpc", vpc, "1.0.0")
		m.remove(vpcPackage + "/.hidden")
		plain := m.servers[host]
		m.servers[host] = except(plain, "/archive.", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(test.status)
			w.Write([]byte(test.body))
		})
		t.Log(test.rule)
		report := m.verify()
		says(t, report, vpc+" 1.0.0 "+test.want)
		if said := fmt.Sprint(report.Items[0].Why, report.Items[0].Findings); !strings.Contains(said, test.says) {
			t.Errorf("it says %s", said)
		}
		m.servers[host] = plain
		says(t, m.verify(), vpc+" 1.0.0 ok")
	}
}

// The "h1:" of a package does not cover its links. So what the cache has of a package says nothing
// of another one with the same files.
func TestPackagesWithTheSameFiles(t *testing.T) {
	const dns = "registry.example.com/acme/dns/aws"
	tampered := func(r *registry, m *machine) { // with a link that only the package of dns has
		m.module(r, "vpc", vpc, "1.0.0")
		m.must(os.Symlink("main.tf", m.path(vpcPackage+"/link.tf")))
	}
	whole := func(r *registry, m *machine) { m.module(r, "dns", dns, "1.0.0") }
	for _, test := range []struct {
		rule   string
		before string // the module that the cache has; empty: none
		change func(r *registry, m *machine)
		want   string
	}{
		{"an added link is found", "", tampered, vpc + " 1.0.0 other bytes"},
		{"and after a package that has this link", dns, tampered, vpc + " 1.0.0 other bytes"},
		{"a link of the package is none that was added", "", whole, dns + " 1.0.0 ok"},
		{"nor after a package without it", vpc, whole, dns + " 1.0.0 ok"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			r := newRegistry(t)
			r.Write("modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", "# linked"))
			r.Write("modules/acme/dns/aws/1.0.0.tar.gz", linked(t))
			r.offer()
			m := newMachine(t, r)
			if test.before != "" {
				m.module(r, "before", test.before, "1.0.0")
				m.write(".terraform/modules/before/added.tf", "") // so that the package is fetched
				says(t, m.verify(), test.before+" 1.0.0 other bytes")
				m.remove(".terraform")
				m.calls = nil
			}
			test.change(r, m)
			says(t, m.verify(), test.want)
		})
	}
}

// A disk without room for the package says nothing of the module.
func TestAPackageThatCannotBeWritten(t *testing.T) {
	r := full(t)
	m := newMachine(t, r)
	m.module(r, "vpc", vpc, "1.0.0")
	m.remove(vpcPackage + "/.hidden")
	t.Setenv("TMPDIR", m.path("none"))
	p, _, err := verify.ReadProject(m.dir, verify.DefaultData)
	m.must(err)
	if report, _, _, err := verify.Run(t.Context(), m.options(), []verify.Project{p}); err == nil || !strings.Contains(err.Error(), m.path("none")) {
		t.Errorf("it says %v, %v", report, err)
	}
}

func TestAge(t *testing.T) {
	m := installed(t, full(t))
	for _, test := range []struct {
		rule string
		age  time.Duration
		want string
	}{
		{"old enough", 23 * time.Hour, "ok"},
		{"too young", 25 * time.Hour, "too young"},
	} {
		report := m.verify(func(o *verify.Options) { o.MinAge = test.age })
		says(t, report, demo+" 1.2.0 "+test.want, vpc+" 1.0.0 "+test.want)
	}
	// The clock of a CI job may be behind the clock of the registry.
	report := m.verify(func(o *verify.Options) { o.Now = o.Now.Add(-48 * time.Hour) })
	says(t, report, demo+" 1.2.0 ok", vpc+" 1.0.0 ok")
}

// A version that was there when the log was begun has no age, and is old enough.
func TestWhatWasFoundHasNoAge(t *testing.T) {
	r := full(t)
	m := newMachine(t, r)
	r.offer()
	m.module(r, "first", host+"/acme/first/any", "0.0.1")
	report := m.verify(func(o *verify.Options) { o.MinAge = 1000 * time.Hour })
	says(t, report, host+"/acme/first/any 0.0.1 ok")
	if report.Items[0].Since != nil {
		t.Error("it has an age")
	}
}

func TestDeprecated(t *testing.T) {
	r := full(t)
	m := installed(t, r)
	r.Write("modules/acme/vpc/aws/registry.hcl", "deprecated \"< 1.2\" {\n  reason = \"use 1.2\"\n  link = \"https://example.com\"\n}")
	r.Write("providers/acme/demo/registry.hcl", "deprecated \"1.2.0\" {\n  reason = \"use 2\"\n}")
	r.offer()
	report := m.verify()
	says(t, report, demo+" 1.2.0 ok", vpc+" 1.0.0 ok")
	if got := report.Items[0].Deprecated; got != "version 1.2.0 is deprecated: use 2" {
		t.Errorf("of the provider it says %q", got)
	}
	if got := report.Items[1].Deprecated; got != "use 1.2 (https://example.com)" {
		t.Errorf("of the module it says %q", got)
	}
}

const public = "registry.terraform.io"

// mirrored is a machine with packages that the registry mirrors from another one, which has no log.
func mirrored(t *testing.T) *machine {
	t.Helper()
	r := newRegistry(t)
	r.Provider(public+"/hashicorp/null", "3.2.0", "linux_amd64")
	r.Write("modules/"+public+"/acme/vpc/aws/1.0.0/main.tf", "# a module")
	r.offer()
	m := newMachine(t, r)
	m.servers[public] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Write([]byte(`{"providers.v1":"/v1/providers/","modules.v1":"/v1/modules/"}`))
	})
	m.provider(r, public+"/hashicorp/null", "3.2.0", "linux_amd64")
	m.module(r, "vpc", public+"/acme/vpc/aws", "1.0.0")
	return m
}

// Logs are found where clients install from.
func TestWhereLogsAreFound(t *testing.T) {
	const null, publicVPC = public + "/hashicorp/null 3.2.0 ", public + "/acme/vpc/aws 1.0.0 "
	mirror := clientconfig.Registry{Hostnames: []string{host}, URL: "https://" + host + "/v1"}
	for _, test := range []struct {
		rule         string
		settings     string
		logs         []string
		null, module string
	}{
		{"of the registry itself, which has none", "", nil, "no log", "no log"},
		{"of a mirror, by whose protocol there are no modules", mirror.Mirror(), nil, "ok", "no log"},
		{"of a registry that stands in", mirror.StandIn(clientconfig.Origin{Hostname: public, Providers: true, Modules: true}), nil, "ok", "ok"},
		{"of a registry that stands in for providers alone", mirror.StandIn(clientconfig.Origin{Hostname: public, Providers: true}), nil, "ok", "no log"},
		{"of a host block that names the log", `host "registry.terraform.io" { services = { "tlog.v1" = "https://registry.example.com/v1/tlog/" } }`, nil, "ok", "ok"},
		{"by the URL of the log", "", []string{"https://registry.example.com/v1/tlog"}, "ok", "ok"},
		{"by the hostname of the registry", "", []string{"registry.example.com"}, "ok", "ok"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			m := mirrored(t)
			m.configure(test.settings)
			logs := func(o *verify.Options) { o.URLs = test.logs }
			says(t, m.verify(logs), null+test.null, publicVPC+test.module)
			says(t, m.verify(logs, func(o *verify.Options) { o.RequireLog = true }), null+test.null, publicVPC+test.module)
		})
	}
}

// A mirror with a log has what clients get from it on record. That they may get it from
// elsewhere as well must not hide that it is not there.
func TestProvidersBesideAMirror(t *testing.T) {
	for _, test := range []struct{ rule, direct, want string }{
		{"from its registry, which has no log", "direct {}", "not on record"},
		{"from its registry, and not from the mirror", "direct {}", "no log"},
		{"from nowhere else", "", "not on record"},
	} {
		m := mirrored(t)
		m.replace(".terraform.lock.hcl", "null", "other")
		m.remove(".terraform/modules")
		exclude := ""
		if test.want == "no log" {
			exclude = "exclude = [\"" + public + "/*/*\"]"
		}
		m.configure(fmt.Sprintf("provider_installation {\n network_mirror {\n url = \"https://%s/v1/mirror/\"\n %s\n }\n %s\n}", host, exclude, test.direct))
		says(t, m.verify(), public+"/hashicorp/other 3.2.0 "+test.want)
	}
}

// A token is sent to its host, and to the hosts to which that one leads.
func TestTokens(t *testing.T) {
	m := mirrored(t)
	m.tokens = map[svchost.Hostname]string{public: "public", host: "own", "evil.example.com": "evil"}
	m.servers["evil.example.com"] = http.NotFoundHandler()
	m.servers[host] = except(m.servers[host], "/versions", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://evil.example.com"+r.URL.Path, http.StatusFound)
	})
	m.configure(clientconfig.Registry{URL: "https://" + host + "/v1"}.StandIn(clientconfig.Origin{Hostname: public, Providers: true, Modules: true}))
	for _, test := range []struct{ rule, own, want string }{
		{"of the log's own host", "own", "own"},
		{"of the host that the settings lead to it from, as clients do", "", "public"},
	} {
		m.requests, m.tokens[host] = nil, test.own
		m.verify()
		seen := make(map[string]bool)
		for _, request := range m.requests {
			url, token, _ := strings.Cut(request, " ")
			wanted := test.want
			if strings.HasPrefix(url, "https://evil.example.com") || strings.Contains(url, "/.well-known/") {
				wanted = ""
			}
			if token != wanted {
				t.Errorf("%s: %s is asked with the token %q", test.rule, url, token)
			}
			seen[strings.SplitAfterN(url, "/", 4)[2]] = true
		}
		if !seen["evil.example.com/"] || !seen[host+"/"] {
			t.Errorf("%s: only %v are asked", test.rule, seen)
		}
	}
}

// Without a network, answers count that have been kept, and versions without one are named.
func TestWithoutANetwork(t *testing.T) {
	r := full(t)
	m := installed(t, r)
	says(t, m.verify(), demo+" 1.2.0 ok", vpc+" 1.0.0 ok")
	r.Write("modules/acme/vpc/aws/1.1.0/main.tf", "")
	r.offer()
	m.module(r, "new", vpc, "1.1.0")
	m.servers = nil
	report := m.verify()
	says(t, report, demo+" 1.2.0 ok", vpc+" 1.0.0 ok", vpc+" 1.1.0 unanswered")
	if len(report.Kept) != 1 || report.Failed() || !strings.Contains(report.Items[2].Why, "no route to host") {
		t.Errorf("it says %+v, %s", report, report.Items[2].Why)
	}
	m.cache = t.TempDir()
	report = m.verify()
	says(t, report, demo+" 1.2.0 unanswered", vpc+" 1.0.0 unanswered", vpc+" 1.1.0 unanswered")
}
