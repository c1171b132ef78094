package verify_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	svchost "github.com/hashicorp/terraform-svchost"
	"golang.org/x/mod/sumdb/note"

	"github.com/caddy-terraform/caddy-terraform-registry/tlog/tlogtest"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog/verify"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

const (
	zeros = "0000000000000000000000000000000000000000000000000000000000000000"
	noH1  = "h1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
)

// onFoe installs a module of an attacker's registry, and puts it on his record.
func onFoe(m *machine, name string) *tlogtest.Scripted {
	m.t.Helper()
	foe := foeAt(m, name)
	m.write(".terraform/modules/foe/main.tf", "# of "+name)
	m.called("foe", name+"/acme/foe/aws", "", "1.0.0")
	foe.Add("offered 2000-01-01T00:00:00Z module acme/foe/aws 1.0.0 %s zh:%s", h1(m, ".terraform/modules/foe"), zeros)
	return foe
}

// A committed or kept file leads the token of a registry to no other server.
func TestFilesLeadNoTokens(t *testing.T) {
	for _, test := range []struct {
		rule   string
		change func(m *machine)
	}{
		{"the file of checkpoints, for a registry without a log", func(m *machine) {
			m.servers[host] = discovering(`{"modules.v1":"/v1/modules/"}`, http.NotFoundHandler())
			onFoe(m, "evil.example.com")
			m.verify()
			m.replace(verify.PinsName, "host evil.example.com", "host "+host)
			m.cache = t.TempDir()
		}},
		{"a kept discovery document, for a registry that cannot be reached", func(m *machine) {
			m.servers[host] = discovering(`{"tlog.v1":"https://evil.example.com/v1/tlog/"}`, http.NotFoundHandler())
			onFoe(m, "evil.example.com")
			m.called("vpc", vpc, "", "1.0.0")
			m.write(vpcPackage+"/main.tf", "")
			m.verify()
			delete(m.servers, host)
		}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			m := newMachine(t, full(t))
			test.change(m)
			m.calls, m.requests = nil, nil
			m.called("vpc", vpc, "", "1.0.0")
			m.write(vpcPackage+"/main.tf", "")
			m.tokens = map[svchost.Hostname]string{host: "SECRET"}
			m.verify()
			asked := 0
			for _, request := range m.requests {
				if strings.HasPrefix(request, "https://evil.example.com/") {
					asked++
					if strings.Contains(request, "SECRET") {
						t.Errorf("the token is sent: %s", request)
					}
				}
			}
			if asked == 0 {
				t.Errorf("the other server is not asked: %v", m.requests)
			}
		})
	}
}

// A client loads the folders that modules.json names, so other ones than those that are
// checked are found.
func TestModulesFromOtherFolders(t *testing.T) {
	const record = `"Dir":".terraform/modules/vpc/"`
	for _, test := range []struct {
		rule, from, to string
		want           []string
	}{
		{"another folder for a module", record, `"Dir":"evil"`, []string{vpc + " 1.0.0 other bytes"}},
		{"another folder for a local module in it", record + "}", record + `},{"Key":"vpc.subnet","Source":"./modules/subnet","Dir":"evil"}`, []string{vpc + " 1.0.0 ok", "./modules/subnet  other bytes"}},
		{"no version", `"Version":"1.0.0",`, "", []string{vpc + "  not on record"}},
		{"as init leaves it, with a local module", record + "}", record + `},{"Key":"vpc.subnet","Source":"./modules/subnet","Dir":".terraform/modules/vpc/modules/subnet"}`, []string{vpc + " 1.0.0 ok"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			m := installed(t, full(t))
			m.write("evil/main.tf", "# evil")
			m.replace(".terraform/modules/modules.json", test.from, test.to)
			says(t, m.verify(), append([]string{demo + " 1.2.0 ok"}, test.want...)...)
		})
	}
	// A missing answer does not hide a finding.
	m := installed(t, full(t))
	m.replace(".terraform/modules/modules.json", record, `"Dir":"evil"`)
	m.servers = nil
	report := m.verify()
	if report.Count(verify.Found) != 1 || report.Count(verify.Unanswered) != 1 {
		t.Errorf("without a network it says %+v", report.Items)
	}
}

// The log of one host cannot take the place of the log of another, in whatever order the two
// are found.
func TestALogThatTheFileHasOfAnotherHost(t *testing.T) {
	for _, name := range []string{"a.example.com", "zz.example.com"} {
		t.Run(name, func(t *testing.T) {
			m := installed(t, full(t))
			foe := onFoe(m, name)
			says(t, m.verify(), demo+" 1.2.0 ok", vpc+" 1.0.0 ok", name+"/acme/foe/aws 1.0.0 ok")
			m.servers[host] = discovering(`{"tlog.v1":"https://`+name+`/v1/tlog/"}`, m.servers[host])
			m.remove(".terraform.lock.hcl")
			m.write(vpcPackage+"/main.tf", "# evil")
			foe.Add("offered 2000-01-01T00:00:00Z module acme/vpc/aws 1.0.0 %s zh:%s", h1(m, vpcPackage), zeros)
			report := m.verify()
			if alarms := report.Alarms(); len(alarms) != 1 || alarms[0].Kind != verify.Renamed || report.Count(verify.OK) != 0 {
				t.Errorf("it says %v, and %v", alarms, report.Items)
			}
		})
	}
}

// The hash is made of lines, one for each file. A name with a line feed does not stand for others.
func TestNamesWithLineFeeds(t *testing.T) {
	sum := func(content string) string { return wire.SHA256Of([]byte(content)).String() }
	m := installed(t, full(t))
	m.remove(vpcPackage + "/main.tf")
	m.remove(vpcPackage + "/a/.b/c")
	m.write(vpcPackage+"/a/.b/c\n"+sum("# a module")+"  main.tf", "x")
	m.write(demoPackage+"/a\nb", "")
	for range 2 {
		says(t, m.verify(), demo+" 1.2.0 other bytes", vpc+" 1.0.0 other bytes")
	}
}

// A checkpoint that the file cannot hold does not count: no later run would compare it.
func TestACheckpointThatCannotBeKept(t *testing.T) {
	r := full(t)
	m := installed(t, r)
	signer, public := tlogtest.NewSigner(t, tlogtest.Origin)
	again, err := note.Sign(&note.Note{Text: r.log.Head().String() + "x\n\ny\n"}, signer)
	m.must(err)
	m.servers[host] = changed(m.servers[host], func(q *http.Request, body string) string {
		if strings.HasSuffix(q.URL.Path, "/key") {
			return public + "\n"
		}
		return strings.Replace(body, string(r.log.Head().Signed), string(again), 1)
	})
	report := m.verify()
	says(t, report, demo+" 1.2.0 unanswered", vpc+" 1.0.0 unanswered")
	if !report.Failed() || report.Logs[0].Pinned != "kept" {
		t.Errorf("of the log it says %+v", report.Logs)
	}
}

// A package without anything to compare is not as on record.
func TestALockFileWithNothingToCompare(t *testing.T) {
	for rule, hashes := range map[string]string{"no hashes": "", "hashes of other schemes": `"h9:x"`} {
		m := newMachine(t, full(t))
		m.write(".terraform.lock.hcl", "provider \""+demo+"\" {\n version = \"1.2.0\"\n hashes = ["+hashes+"]\n}\n")
		report := m.verify()
		if says(t, report, demo+" 1.2.0 other bytes"); t.Failed() {
			t.Fatal(rule)
		}
	}
}

// An entry that claims the files of an earlier one has not its bytes.
func TestAZipThatClaimsTheFilesOfAnother(t *testing.T) {
	for _, test := range []struct{ rule, pack, want string }{
		{"another zip", "", "replaced, other bytes"},
		{"a folder that is packed in another way", "pack:1 ", "ok"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			m := newMachine(t, full(t))
			foe := foeAt(m, host)
			m.write(".terraform.lock.hcl", "provider \""+demo+"\" {\n version = \"1.2.0\"\n hashes = [\"zh:"+strings.Repeat("2", 64)+"\"]\n}\n")
			foe.Entries = []string{zipAt("1", test.pack), zipAt("2", test.pack)}
			says(t, m.verify(), demo+" 1.2.0 "+test.want)
		})
	}
}

// The files of an archive are not all that clients unpack: its "h1:" does not cover links. So an
// entry with the files of an earlier one and other bytes is of another package.
func TestAnArchiveThatClaimsTheFilesOfAnother(t *testing.T) {
	for _, test := range []struct{ rule, pack, want string }{
		{"another archive", "", "replaced"},
		{"a folder that is packed in another way", " pack:1", "ok"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			m := newMachine(t, full(t))
			foe := foeAt(m, host)
			m.called("vpc", vpc, "", "1.0.0")
			m.write(vpcPackage+"/main.tf", "# a module")
			for _, digit := range []string{"1", "2"} {
				foe.Add("offered 1999-01-01T00:00:00Z module acme/vpc/aws 1.0.0 %s zh:%s%s", h1(m, vpcPackage), strings.Repeat(digit, 64), test.pack)
			}
			report := m.verify()
			says(t, report, vpc+" 1.0.0 "+test.want)
			for _, f := range report.Items[0].Findings {
				if f.Detail != "the log has two packages of it with other files or bytes" {
					t.Errorf("it says %q", f.Detail)
				}
			}
		})
	}
}

// A version has one package, also if an entry has the hostname of the registry in its address, and no
// entry of another spelling of the version counts: monitors would not compare it.
func TestEntriesOfTheSameVersionInOtherWords(t *testing.T) {
	for _, test := range []struct {
		rule, address, version, want string
		tells                        string // by look-ups
	}{
		{"with the hostname", host + "/acme/vpc/aws", "1.0.0", "replaced, other bytes", " "},
		{"another spelling of the version", "acme/vpc/aws", "1.0", "not on record", " 1.0 "},
		{"with a v", "acme/vpc/aws", "v1.0.0", "not on record", " v1.0.0 "},
	} {
		t.Run(test.rule, func(t *testing.T) {
			m := newMachine(t, full(t))
			foe := foeAt(m, host)
			m.called("vpc", vpc, "", "1.0.0")
			m.write(vpcPackage+"/main.tf", "# good")
			foe.Add("offered 1999-01-01T00:00:00Z module acme/vpc/aws 1.0.0 %s zh:%s", h1(m, vpcPackage), zeros)
			m.write(vpcPackage+"/main.tf", "# evil")
			foe.Add("offered 1999-01-02T00:00:00Z module %s %s %s zh:%s", test.address, test.version, h1(m, vpcPackage), strings.Repeat("1", 64))
			foe.Tells = func(entry string) bool { return strings.Contains(entry, test.tells) }
			says(t, m.verify(), vpc+" 1.0.0 "+test.want)
		})
	}
}

// An entry of a module that names the files of two packages proves neither.
func TestAnEntryOfTwoPackages(t *testing.T) {
	m := newMachine(t, full(t))
	foe := foeAt(m, host)
	m.called("vpc", vpc, "", "1.0.0")
	m.write(vpcPackage+"/main.tf", "# good")
	good := h1(m, vpcPackage)
	m.write(vpcPackage+"/main.tf", "# evil")
	foe.Add("offered 1999-01-01T00:00:00Z module acme/vpc/aws 1.0.0 %s %s zh:%s", good, h1(m, vpcPackage), zeros)
	says(t, m.verify(), vpc+" 1.0.0 not on record")
}

// SHA256SUMS, which no entry proves, says nothing of a platform that has an entry.
func TestSHA256SUMSAgainstAnEntry(t *testing.T) {
	r := full(t)
	m := installed(t, r)
	sums := string(m.get("/v1/mirror/" + demo + "/terraform-provider-demo_1.2.0_SHA256SUMS"))
	darwin := ""
	for line := range strings.Lines(sums) {
		if strings.Contains(line, "darwin_arm64") {
			darwin, _, _ = strings.Cut(line, " ")
		}
	}
	evil := strings.Repeat("e", 64)
	m.replace(".terraform.lock.hcl", darwin, evil)
	forged := strings.Replace(sums, darwin, evil, 1)
	plain := changed(m.servers[host], func(q *http.Request, body string) string {
		return strings.Replace(body, "shasums "+wire.SHA256Of([]byte(sums)).String(), "shasums "+wire.SHA256Of([]byte(forged)).String(), 1)
	})
	m.servers[host] = except(plain, "_SHA256SUMS", func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(forged)) })
	says(t, m.verify(), demo+" 1.2.0 other bytes", vpc+" 1.0.0 ok")
}

// The age of a version is the age of the youngest package that is used.
func TestAgeOfFurtherPlatforms(t *testing.T) {
	const amd64, arm64 = ".terraform/providers/" + demo + "/1.2.0/linux_amd64", ".terraform/providers/" + demo + "/1.2.0/linux_arm64"
	lock := func(hash string) string {
		return "provider \"" + demo + "\" {\n version = \"1.2.0\"\n hashes = [\"" + hash + "\"]\n}\n"
	}
	for _, test := range []struct {
		rule  string
		setup func(m *machine)
		want  string
	}{
		{"the new package is installed", func(m *machine) {
			m.remove(amd64)
			m.write(".terraform.lock.hcl", lock(h1(m, arm64)))
		}, "too young"},
		{"the new package is locked", func(m *machine) {
			m.write(".terraform.lock.hcl", lock("zh:"+strings.Repeat("1", 64)))
			m.remove(".terraform/providers")
		}, "too young"},
		{"the old package alone", func(m *machine) {
			m.remove(arm64)
			m.write(".terraform.lock.hcl", lock(h1(m, amd64)))
		}, "ok"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			m := newMachine(t, full(t))
			m.write(amd64+"/terraform-provider-demo", "old")
			m.write(arm64+"/terraform-provider-demo", "new")
			foe := foeAt(m, host)
			foe.Add("offered 1999-01-01T00:00:00Z provider acme/demo 1.2.0 linux_amd64 %s zh:%s", h1(m, amd64), zeros)
			foe.Add("offered 2000-01-01T23:00:00Z provider acme/demo 1.2.0 linux_arm64 %s zh:%s", h1(m, arm64), strings.Repeat("1", 64))
			test.setup(m)
			says(t, m.verify(func(o *verify.Options) { o.MinAge = 30 * 24 * time.Hour }), demo+" 1.2.0 "+test.want)
		})
	}
}

// The age of what was mirrored counts from the date of its origin, if the entry has it.
func TestAgeAtAnOrigin(t *testing.T) {
	const folder = ".terraform/providers/" + demo + "/1.2.0/linux_amd64"
	for _, test := range []struct{ rule, event, origin, want string }{
		{"published long ago, and fetched lately", "offered 2000-01-01T23:00:00Z", "1999-01-01T00:00:00Z", "ok"},
		{"published lately, and there when the log was begun", "found 2000-01-01T23:00:00Z", "2000-01-01T20:00:00Z", "too young"},
		{"published later than it was fetched, which is a lie", "offered 1999-01-01T00:00:00Z", "2000-01-01T20:00:00Z", "too young"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			m := newMachine(t, full(t))
			m.write(folder+"/terraform-provider-demo", "the provider")
			m.write(".terraform.lock.hcl", "provider \""+demo+"\" {\n version = \"1.2.0\"\n hashes = [\""+h1(m, folder)+"\"]\n}\n")
			foeAt(m, host).Add("%s provider acme/demo 1.2.0 linux_amd64 %s zh:%s origin:%s", test.event, h1(m, folder), zeros, test.origin)
			says(t, m.verify(func(o *verify.Options) { o.MinAge = 30 * 24 * time.Hour }), demo+" 1.2.0 "+test.want)
		})
	}
}

// Two logs of one name are the same log, or neither counts.
func TestTwoLogsOfOneName(t *testing.T) {
	const alias = "alias.example.com"
	for _, test := range []struct {
		rule string
		twin func(r *registry) http.Handler
		kind verify.AlarmKind // empty: none
	}{
		{"a second name of the registry", func(r *registry) http.Handler { return served{r} }, ""},
		{"with another key", func(r *registry) http.Handler { return served{full(t)} }, verify.OtherKey},
		{"with the same key and other entries", func(r *registry) http.Handler { return served{fill(newRegistryIn(t, r.storage.Twin()))} }, verify.Forked},
		{"a longer one with the same key and other entries", func(r *registry) http.Handler {
			twin := fill(newRegistryIn(t, r.storage.Twin()))
			twin.Write("modules/acme/vpc/aws/1.1.0/main.tf", "")
			twin.offer()
			return served{twin}
		}, verify.Forked},
	} {
		t.Run(test.rule, func(t *testing.T) {
			r := full(t)
			m := installed(t, r)
			m.servers[alias] = test.twin(r)
			m.write(".terraform/modules/b/main.tf", "")
			m.called("b", alias+"/acme/vpc/aws", "", "1.0.0")
			report := m.verify()
			alarms := report.Alarms()
			if test.kind == "" {
				if len(alarms) > 0 || report.Logs[0].Pinned != "first use" {
					t.Errorf("it says %v, %+v", alarms, report.Logs)
				}
				return
			}
			if len(alarms) != 2 || alarms[0].Kind != test.kind || alarms[1].Kind != test.kind || report.Count(verify.OK) != 0 {
				t.Errorf("it has the alarms %v, and %d items are fine", alarms, report.Count(verify.OK))
			}
			if pins, err := verify.ReadPins(m.path(verify.PinsName)); len(pins) > 0 || err != nil {
				t.Errorf("it has written %v, %v", pins, err)
			}
		})
	}
}

// A host that has led to a log cannot do without it afterwards.
func TestHostsThatLoseTheirLog(t *testing.T) {
	const alias = "alias.example.com"
	for _, test := range []struct {
		rule  string
		first func(m *machine)
		want  []string
	}{
		{"a host that came to the log later", func(m *machine) {
			m.verify()
			m.servers[alias] = discovering(`{"tlog.v1":"https://`+host+`/v1/tlog/"}`, http.NotFoundHandler())
			m.called("b", alias+"/acme/b/aws", "", "1.0.0")
			m.write(".terraform/modules/b/main.tf", "# evil")
			report := m.verify()
			if report.Logs[0].Pinned != "hosts added" {
				t.Errorf("of the log it says %+v", report.Logs)
			}
			m.servers[alias] = discovering(`{}`, http.NotFoundHandler())
		}, []string{demo + " 1.2.0 ok", vpc + " 1.0.0 ok", alias + "/acme/b/aws 1.0.0 not on record"}},
		{"a host whose log the user has named", func(m *machine) {
			m.verify(func(o *verify.Options) { o.URLs = []string{"https://" + host + "/v1/tlog/"} })
			m.write(vpcPackage+"/main.tf", "# evil")
			m.servers[host] = discovering(`{}`, m.servers[host])
		}, []string{demo + " 1.2.0 ok", vpc + " 1.0.0 other bytes"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			m := installed(t, full(t))
			test.first(m)
			says(t, m.verify(), test.want...)
		})
	}
}

// The discovery of a host does not lead to another log than the user has named before.
func TestAnotherLogThanTheUserHasNamed(t *testing.T) {
	const evil = "evil.example.com"
	m := installed(t, full(t))
	m.verify(func(o *verify.Options) { o.URLs = []string{"https://" + host + "/v1/tlog/"} })
	m.write(vpcPackage+"/main.tf", "# evil")
	foeAt(m, evil).Add("offered 2000-01-01T00:00:00Z module acme/vpc/aws 1.0.0 %s zh:%s", h1(m, vpcPackage), zeros)
	m.servers[host] = discovering(`{"tlog.v1":"https://`+evil+`/v1/tlog/"}`, m.servers[host])
	report := m.verify()
	says(t, report, demo+" 1.2.0 unproven", vpc+" 1.0.0 unproven")
	if alarms := report.Alarms(); len(alarms) != 1 || alarms[0].Kind != verify.Renamed {
		t.Errorf("it has the alarms %v", alarms)
	}
}

// A document that cannot be read does not say that there is no log.
func TestDiscoveryThatCannotBeRead(t *testing.T) {
	for _, document := range []string{"[]", "<html>", `{"tlog.v1":{"url":"/v1/tlog/"}}`, `{"tlog.v1":"ftp://example.com/"}`} {
		m := installed(t, full(t))
		m.servers[host] = discovering(document, m.servers[host])
		t.Log(document)
		says(t, m.verify(), demo+" 1.2.0 unanswered", vpc+" 1.0.0 unanswered")
	}
}

// No proof shows that a look-up has all entries, but an earlier one shows which it had.
func TestEntriesThatAreLeftOut(t *testing.T) {
	m := newMachine(t, full(t))
	foe := foeAt(m, host)
	m.called("vpc", vpc, "", "1.0.0")
	m.write(vpcPackage+"/main.tf", "# good")
	foe.Add("offered 1999-01-01T00:00:00Z module acme/vpc/aws 1.0.0 %s zh:%s", h1(m, vpcPackage), zeros)
	says(t, m.verify(), vpc+" 1.0.0 ok")
	m.write(vpcPackage+"/main.tf", "# evil")
	foe.Add("offered 2000-01-01T00:00:00Z module acme/vpc/aws 1.0.0 %s zh:%s", h1(m, vpcPackage), strings.Repeat("1", 64))
	foe.Tells = func(entry string) bool { return !strings.Contains(entry, zeros) }
	m.servers[host] = changed(foe, func(q *http.Request, body string) string { // an answer that is none does not take the place of the earlier one
		if strings.Contains(q.URL.Path, "/lookup/") {
			return "<html>"
		}
		return body
	})
	says(t, m.verify(), vpc+" 1.0.0 unanswered")
	m.servers[host] = foe
	for range 2 { // also the next time
		report := m.verify(func(o *verify.Options) { o.Update = true })
		says(t, report, vpc+" 1.0.0 unproven")
		if alarms := report.Alarms(); len(alarms) != 1 || alarms[0].Kind != verify.Shrank || alarms[0].Before == "" || alarms[0].Now == "" {
			t.Errorf("it has the alarms %v", alarms)
		}
	}
}

// What the cache has of an answer counts only if the log proves it.
func TestALookupThatIsChangedInTheCache(t *testing.T) {
	m := installed(t, full(t))
	says(t, m.verify(), demo+" 1.2.0 ok", vpc+" 1.0.0 ok")
	changeKept(t, m, "/acme/vpc/aws/1.0.0", "acme/vpc/aws 1.0.0 ", "acme/vpc/aws 1.0.1 ")
	says(t, m.verify(), demo+" 1.2.0 ok", vpc+" 1.0.0 ok")
}

// An instance that has not got the newest entries leaves nothing out, and may be asked again.
func TestAnInstanceThatIsBehind(t *testing.T) {
	m := newMachine(t, full(t))
	foe := foeAt(m, host)
	m.called("vpc", vpc, "", "1.0.0")
	m.write(vpcPackage+"/main.tf", "# good")
	foe.Add("offered 1999-01-01T00:00:00Z module acme/vpc/aws 1.0.0 %s zh:%s", h1(m, vpcPackage), zeros)
	old := make(map[string]string)
	m.servers[host] = changed(foe, func(q *http.Request, body string) string {
		old[q.URL.Path] = body
		return body
	})
	says(t, m.verify(), vpc+" 1.0.0 ok")
	foe.Add("offered 1999-01-02T00:00:00Z module acme/vpc/aws 1.0.0 %s zh:%s", h1(m, vpcPackage), zeros)
	m.servers[host] = foe
	says(t, m.verify(), vpc+" 1.0.0 ok")
	asked := 0
	m.servers[host] = changed(foe, func(q *http.Request, body string) string {
		if strings.HasSuffix(q.URL.Path, "/checkpoint") || strings.Contains(q.URL.Path, "/lookup/") {
			asked++
			return old[q.URL.Path]
		}
		return body
	})
	report := m.verify()
	says(t, report, vpc+" 1.0.0 unanswered")
	if alarms := report.Alarms(); len(alarms) > 0 || asked < 3 {
		t.Errorf("asked %d times, it has the alarms %v", asked, alarms)
	}
	m.servers[host] = foe
	says(t, m.verify(), vpc+" 1.0.0 ok")
}

// An instance that has not got the newest entries looks for them when it is asked for a proof. There is none
// if the log was rolled back.
func TestAnInstanceThatCatchesUp(t *testing.T) {
	for _, test := range []struct {
		rule   string
		behind func(asked, path string) bool // asked has the earlier paths
		want   string
		alarm  verify.AlarmKind // empty: none
	}{
		{"it catches up when it is asked for a proof", func(asked, path string) bool { return !strings.Contains(asked+path, "/consistency") }, "ok", ""},
		{"another instance answers next", func(asked, path string) bool { return !strings.Contains(asked, "/lookup/") }, "ok", ""},
		{"the log was rolled back", func(asked, path string) bool { return true }, "unproven", verify.Shrank},
	} {
		t.Run(test.rule, func(t *testing.T) {
			m := newMachine(t, full(t))
			foe := foeAt(m, host)
			m.called("vpc", vpc, "", "1.0.0")
			m.write(vpcPackage+"/main.tf", "")
			add := func(name string) {
				foe.Add("offered 1999-01-01T00:00:00Z module acme/%s/aws 1.0.0 %s zh:%s", name, h1(m, vpcPackage), zeros)
			}
			add("vpc")
			old := *foe
			add("vpc")
			says(t, m.verify(), vpc+" 1.0.0 ok")
			add("other")
			asked := ""
			m.servers[host] = http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				isBehind := test.behind(asked, q.URL.Path)
				asked += q.URL.Path + " "
				if isBehind {
					old.ServeHTTP(w, q)
				} else {
					foe.ServeHTTP(w, q)
				}
			})
			report := m.verify()
			says(t, report, vpc+" 1.0.0 "+test.want)
			if alarms := report.Alarms(); (test.alarm != "") != (len(alarms) == 1) || len(alarms) == 1 && alarms[0].Kind != test.alarm {
				t.Errorf("it has the alarms %v", alarms)
			}
			m.servers[host] = foe
			add("another")
			foe.Tells = func(entry string) bool { return entry != foe.Entries[1] }
			if alarms := m.verify().Alarms(); len(alarms) != 1 || alarms[0].Kind != verify.Shrank {
				t.Errorf("when it leaves the entry out later, it has the alarms %v", alarms)
			}
		})
	}
}

// A provider that comes from the disk alone is in no log that could be asked.
func TestProvidersFromTheDisk(t *testing.T) {
	m := newMachine(t, full(t))
	m.write(".terraform.lock.hcl", "provider \"corp.example.com/corp/tool\" {\n version = \"1.0.0\"\n hashes = [\""+noH1+"\"]\n}\n")
	for _, test := range []struct{ include, want string }{{"corp.example.com/*/*", "no log"}, {"other.example.com/*/*", "not on record"}} {
		m.configure(`provider_installation {
  filesystem_mirror {
    path    = "/usr/share/terraform/providers"
    include = ["` + test.include + `"]
  }
  direct {
    exclude = ["corp.example.com/*/*"]
  }
}`)
		says(t, m.verify(), "corp.example.com/corp/tool 1.0.0 "+test.want)
	}
}
