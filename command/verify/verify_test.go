package verify

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/dirhash"

	"github.com/caddy-terraform/caddy-terraform-registry/command/commandtest"
	"github.com/caddy-terraform/caddy-terraform-registry/command/remote"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog/tlogtest"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog/verify"
)

// A server is a registry with a log.
type server struct {
	*httptest.Server
	t   *testing.T
	log *tlogtest.Scripted

	meanwhile func() // at each request; may be nil
}

// host is the name of the server in addresses.
func (s *server) host() string { return s.Listener.Addr().String() }

func newServer(t *testing.T) *server {
	t.Helper()
	commandtest.NoClientConfiguration(t)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	s := &server{t: t, log: tlogtest.NewScripted(t, tlogtest.Origin)}
	s.Server = httptest.NewTLSServer(s)
	t.Cleanup(s.Close)
	return s
}

// newKey puts another log in the place of the log, with the same entries.
func (s *server) newKey() {
	s.t.Helper()
	entries := s.log.Entries
	s.log = tlogtest.NewScripted(s.t, tlogtest.Origin)
	s.log.Entries = entries
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.meanwhile != nil {
		s.meanwhile()
	}
	if strings.HasSuffix(r.URL.Path, "/versions") {
		fmt.Fprint(w, `{"modules":[{"versions":[{"version":"1.0.0","deprecation":{"reason":"use \u001b[31m2","link":""}}]}]}`)
		return
	}
	s.log.ServeHTTP(w, r)
}

// project is a folder with an installed module, and its h1.
func (s *server) project(t *testing.T) (dir, h1 string) {
	t.Helper()
	dir = t.TempDir()
	commandtest.Write(t, dir, ".terraform/modules/vpc/main.tf", "# a module")
	commandtest.Write(t, dir, ".terraform/modules/modules.json", fmt.Sprintf(`{"Modules":[{"Key":"vpc","Source":"%s/acme/vpc/aws","Version":"1.0.0","Dir":".terraform/modules/vpc"}]}`, s.host()))
	h1, err := dirhash.HashDir(filepath.Join(dir, ".terraform", "modules", "vpc"), "", dirhash.Hash1)
	if err != nil {
		t.Fatal(err)
	}
	return dir, h1
}

func (s *server) run(args ...string) (out, errs string, status int) {
	s.t.Helper()
	out, errs, err := commandtest.Run(s.t.Context(), Command(remote.Network{Roots: commandtest.Roots(s.Server), Pause: time.Millisecond}), args...)
	return out, errs, commandtest.Status(err)
}

const moduleEntry = "offered 2026-01-02T03:04:05Z module acme/vpc/aws 1.0.0 %s zh:0000000000000000000000000000000000000000000000000000000000000000"

func TestVerify(t *testing.T) {
	s := newServer(t)
	dir, h1 := s.project(t)
	s.log.Add(moduleEntry, h1)

	says := func(rule string, want int, parts ...string) string {
		t.Helper()
		out, errs, status := s.run(dir)
		if status != want {
			t.Errorf("%s: the status is %d, want %d:\n%s%s", rule, status, want, out, errs)
		}
		commandtest.Says(t, out+errs, parts...)
		if before, _, alarm := strings.Cut(out, "THE LOG IS"); alarm { // checkpoints are copied whole
			out = before
		}
		commandtest.Fits(t, strings.ReplaceAll(out, s.log.Public, ""))
		return out
	}
	address := s.host() + "/acme/vpc/aws"
	out := says("at the first use", 0, address+" 1.0.0 2026-01-02 ok", "As on record: 1 of 1 version.", "The log registry.example.com/v1/tlog is used for the first time here, with 1 entry.", s.log.Public, "use ?[31m2")
	if strings.Contains(out, "\x1b") {
		t.Errorf("a sentence of the registry is printed as it came:\n%q", out)
	}
	if out := says("the second time", 0, "As on record: 1 of 1 version."); strings.Contains(out, "first time") {
		t.Errorf("it is said again:\n%s", out)
	}

	out, _, status := s.run(dir, "--json")
	var report verify.Report
	if err := json.Unmarshal([]byte(out), &report); err != nil || status != 0 || len(report.Items) != 1 || report.Items[0].Status != verify.OK || report.Logs[0].Origin != "registry.example.com/v1/tlog" {
		t.Errorf("as JSON, the status is %d, %v:\n%s", status, err, out)
	}

	commandtest.Write(t, dir, ".terraform/modules/vpc/main.tf", "# evil")
	commandtest.Write(t, dir, ".terraform/modules/vpc/new\x1b.tf", "# evil")
	says("another file", 1, "FINDINGS "+address+" 1.0.0 other bytes: "+filepath.Join(dir, ".terraform/modules/vpc")+": it is not the package that is on record", "With findings: 1.")

	s.newKey()
	says("another key", 1, "THE LOG IS NOT WHAT IT WAS", "other key", "It was seen before:", "— registry.example.com/v1/tlog ", "It is shown now:", "Show both to others")

	s.Close()
	os.Setenv("XDG_CACHE_HOME", t.TempDir())
	says("no answer", 2, "NOT KNOWN", "Not known: 1.")
}

// A company's host block may lie in a file of its own, beside the main configuration of clients.
func TestHostBlockInTheFolderOfConfigurations(t *testing.T) {
	s := newServer(t)
	origin := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { // without a log
		fmt.Fprint(w, `{"modules.v1":"/v1/modules/"}`)
	}))
	t.Cleanup(origin.Close)
	name := origin.Listener.Addr().String()
	dir, _ := s.project(t)
	commandtest.Write(t, dir, ".terraform/modules/modules.json", `{"Modules":[{"Key":"vpc","Source":"`+name+`/acme/vpc/aws","Version":"1.0.0","Dir":".terraform/modules/vpc"}]}`)
	s.log.Add("offered 2026-01-02T03:04:05Z module "+name+"/acme/vpc/aws 1.0.0 %s zh:"+strings.Repeat("0", 64), "h1:"+strings.Repeat("A", 43)+"=")
	home, folder := os.Getenv("HOME"), ".terraform.d"
	if runtime.GOOS == "windows" {
		home, folder = t.TempDir(), "terraform.d"
		t.Setenv("APPDATA", home)
	}
	commandtest.Write(t, home, folder+"/company.tfrc", "host \""+name+"\" {\n  services = { \"modules.v1\" = \"https://"+s.host()+"/v1/registries/"+name+"/modules/\" }\n}\n")
	roots := commandtest.Roots(s.Server)
	roots.AddCert(origin.Certificate())
	out, errs, err := commandtest.Run(t.Context(), Command(remote.Network{Roots: roots, Pause: time.Millisecond}), dir)
	if commandtest.Status(err) != 1 {
		t.Errorf("status %d\n%s%s", commandtest.Status(err), out, errs)
	}
	commandtest.Says(t, out+errs, name+"/acme/vpc/aws 1.0.0 2026-01-02 other bytes")
}

func TestMisuse(t *testing.T) {
	s := newServer(t)
	dir, _ := s.project(t)
	for _, test := range []struct {
		rule string
		args []string
		want string
	}{
		{"nothing there", []string{t.TempDir()}, "there is nothing of Terraform or OpenTofu in"},
		{"no folder", []string{filepath.Join(dir, "none"), "--recursive"}, "no such file or directory"},
		{"two folders", []string{dir, dir}, "give one folder"},
		{"a folder to watch", []string{dir, "--watch", s.host()}, "give one folder, or --watch and no folder"},
		{"no duration", []string{dir, "--min-age", "old"}, `--min-age: "old" is no duration: write it like 7d or 12h`},
		{"no URL", []string{dir, "--log", "ftp://a"}, "is not the URL of a log"},
		{"no log to watch", []string{"--watch", "://"}, "is not the URL of a log"},
		{"a variable for a key that is empty", []string{dir, "--key", ""}, "--key: it is empty"},
		{"a variable for a log that is empty", []string{"--watch", "", "--once"}, "--watch: it is empty"},
		{"folders to watch", []string{"--watch", s.host(), "--recursive"}, "--recursive does not go with --watch"},
		{"another log to watch", []string{"--watch", s.host(), "--log", s.host()}, "--log does not go with --watch"},
		{"an age of what is watched", []string{"--watch", s.host(), "--min-age", "7d"}, "--min-age does not go with --watch"},
		{"a namespace of a folder", []string{dir, "--namespace", "acme"}, "--namespace belongs to --watch"},
		{"a folder that is checked once", []string{dir, "--once"}, "--once belongs to --watch"},
		{"no pause", []string{"--watch", s.host(), "--interval", "0s"}, "--interval: give a duration such as 1m"},
	} {
		out, errs, status := s.run(test.args...)
		if status != 2 {
			t.Errorf("%s: the status is %d:\n%s%s", test.rule, status, out, errs)
		}
		commandtest.Says(t, errs, test.want)
	}
}

func TestRecursive(t *testing.T) {
	s := newServer(t)
	one, h1 := s.project(t)
	two, _ := s.project(t)
	s.log.Add(moduleEntry, h1)
	root := t.TempDir()
	for name, dir := range map[string]string{"a": one, "b/c": two} {
		if err := os.CopyFS(filepath.Join(root, name), os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
	}
	commandtest.Write(t, root, "b/c/.terraform/modules/vpc/main.tf", "# evil")
	out, errs, status := s.run(root, "--recursive")
	if status != 1 {
		t.Errorf("the status is %d:\n%s%s", status, out, errs)
	}
	commandtest.Says(t, out, "1.0.0 in "+filepath.Join(root, "b/c")+" other bytes", "As on record: 1 of 2 versions. With findings: 1.")
	if _, err := os.Stat(filepath.Join(root, verify.PinsName)); err != nil {
		t.Error(err)
	}
}

func TestWatch(t *testing.T) {
	s := newServer(t)
	t.Chdir(t.TempDir())
	watch := func(rule string, want int, args ...string) (out, errs string) {
		t.Helper()
		out, errs, status := s.run(append([]string{"--watch", s.host(), "--once"}, args...)...)
		if status != want {
			t.Errorf("%s: the status is %d, want %d:\n%s%s", rule, status, want, out, errs)
		}
		return out, errs
	}
	h1 := func(letter string) string { return "h1:" + strings.Repeat(letter, 43) + "=" }
	s.log.Add(moduleEntry, h1("A"))
	out, errs := watch("the first time", 0)
	commandtest.Says(t, errs, "It has 1 entry: only those that come later are printed.")
	if out != "" {
		t.Errorf("it prints\n%s", out)
	}
	s.log.Add("%s", strings.ReplaceAll(fmt.Sprintf(moduleEntry, h1("A")), "1.0.0", "1.1.0"))
	s.log.Add("%s", strings.ReplaceAll(fmt.Sprintf(moduleEntry, h1("A")), "acme/", "other/"))
	if out, _ := watch("a namespace", 0, "--namespace", "acme"); out != "2026-01-02T03:04:05Z offered module acme/vpc/aws 1.1.0\n" {
		t.Errorf("it prints\n%s", out)
	}
	s.log.Add(moduleEntry, h1("E"))
	out, _ = watch("a conflict", 1, "--namespace", "other", "--json")
	var entry watchedEntry
	if err := json.NewDecoder(bytes.NewReader([]byte(out))).Decode(&entry); err != nil || entry.Index != 3 || entry.Conflict == nil || *entry.Conflict != 0 {
		t.Errorf("as JSON it prints\n%s", out)
	}
	out, _ = watch("a conflict that has been printed", 1)
	commandtest.Says(t, out, "ENTRY 3 HAS OTHER FILES THAN ENTRY 0")
	s.log.Add("%s", strings.ReplaceAll(fmt.Sprintf(moduleEntry, h1("A")+" "+h1("E")), "1.0.0", "1.2.0"))
	out, _ = watch("an entry of two packages", 1)
	commandtest.Says(t, out, "ENTRY 4 HAS THE FILES OF TWO PACKAGES")
	s.log.Add("offered 2026-01-02T03:04:05Z provider acme/demo 1.0.0 linux_amd64 %s %s zh:%s", h1("A"), h1("E"), strings.Repeat("0", 64))
	out, _ = watch("a provider with two hashes of files", 1)
	commandtest.Says(t, out, "offered provider acme/demo 1.0.0 linux_amd64 it has several h1:")
	s.newKey()
	out, _ = watch("another key", 1)
	commandtest.Says(t, out, "THE LOG IS NOT WHAT IT WAS")
}

// A log that was begun in place of another one says so, also to who watches one namespace.
func TestWatchALogThatContinuesAnother(t *testing.T) {
	s := newServer(t)
	t.Chdir(t.TempDir())
	watch := func(args ...string) (out string) {
		t.Helper()
		out, errs, status := s.run(append([]string{"--watch", s.host(), "--once", "--namespace", "acme"}, args...)...)
		if status != 0 {
			t.Errorf("the status is %d:\n%s%s", status, out, errs)
		}
		return out
	}
	watch() // while the log has no entry
	signer, _ := tlogtest.NewSigner(t, "old.example.com/v1/tlog")
	signed, err := tlog.Checkpoint{Origin: "old.example.com/v1/tlog", Size: 52}.Sign(signer)
	if err != nil {
		t.Fatal(err)
	}
	succession, err := tlog.NewSuccession(signed)
	if err != nil {
		t.Fatal(err)
	}
	succession.Time = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s.log.Entries = []string{succession.String()}
	before, err := os.ReadFile(verify.PinsName)
	if err != nil {
		t.Fatal(err)
	}
	if out := watch(); out != "the log was begun on 2026-01-02T03:04:05Z in place of old.example.com/v1/tlog, which had 52 entries\n" {
		t.Errorf("it prints\n%s", out)
	}
	if err := os.WriteFile(verify.PinsName, before, 0o644); err != nil {
		t.Fatal(err)
	}
	var entry watchedEntry
	if out := watch("--json"); json.Unmarshal([]byte(out), &entry) != nil || entry.Event != "continues" || entry.Address != "old.example.com/v1/tlog" {
		t.Errorf("as JSON it prints\n%s", out)
	}
}

// A checkpoint that is not written is not compared the next time, so the run has failed.
func TestWhatCannotBeWritten(t *testing.T) {
	s := newServer(t)
	dir, h1 := s.project(t)
	s.log.Add(moduleEntry, h1)
	file := filepath.Join(t.TempDir(), "none", "file")
	_, errs, status := s.run(dir, "--checkpoint", file)
	if status != 2 {
		t.Errorf("the status is %d", status)
	}
	commandtest.Says(t, errs, "What was seen of the logs could not be written: ")
	out, _, status := s.run(dir, "--checkpoint", file, "--json")
	var report verify.Report
	if err := json.Unmarshal([]byte(out), &report); err != nil || status != 2 || report.Unwritten == "" {
		t.Errorf("as JSON, the status is %d, %v:\n%s", status, err, out)
	}
}

// The document of --json is the one in the manual: programs read it, so names and forms stay.
func TestDocument(t *testing.T) {
	manual, err := os.ReadFile(filepath.Join("..", "..", "docs", "verify.md"))
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(t)
	dir, h1 := s.project(t)
	s.log.Add(moduleEntry, h1)
	commandtest.Write(t, dir, ".terraform/modules/vpc/main.tf", "# evil")
	t.Chdir(dir)
	out, errs, status := s.run("--json")
	if status != 1 {
		t.Errorf("the status is %d:\n%s%s", status, out, errs)
	}
	out = strings.NewReplacer(s.host(), "registry.example.com", s.log.Public, "registry.example.com/v1/tlog+48c54eab+AV…", "use ?[31m2", "use version 2").Replace(out)
	_, documented, _ := strings.Cut(string(manual), "```json\n")
	documented, _, _ = strings.Cut(documented, "```")
	if out != documented {
		t.Errorf("it prints\n%s\nand the manual has\n%s", out, documented)
	}
}

// Several runs may share a file, as a monitor of one log and of another. None writes what it has read
// long ago over what others have seen since.
func TestWhatOthersKeepMeanwhile(t *testing.T) {
	s := newServer(t)
	dir, h1 := s.project(t)
	s.log.Add(moduleEntry, h1)
	for _, args := range [][]string{{dir}, {"--watch", s.host(), "--once"}} {
		file := filepath.Join(t.TempDir(), "file")
		signer, public := tlogtest.NewSigner(t, "other.example.com/v1/tlog")
		c := tlog.Checkpoint{Origin: "other.example.com/v1/tlog", Size: 52}
		signed, err := c.Sign(signer)
		if err != nil {
			t.Fatal(err)
		}
		s.meanwhile = func() {
			if err := verify.WritePins(file, []verify.Pin{{URL: "https://other.example.com/", Keys: []string{public}, Signed: signed, Checkpoint: c}}); err != nil {
				t.Error(err)
			}
		}
		if out, errs, status := s.run(append(args, "--checkpoint", file)...); status != 0 {
			t.Errorf("%v: the status is %d:\n%s%s", args, status, out, errs)
		}
		if pins, err := verify.ReadPins(file); err != nil || len(pins) != 2 {
			t.Errorf("%v: kept is %v, %v", args, pins, err)
		}
	}
}

// A monitor that starts before the log can be reached goes on, unless it is to end.
func TestWatchALogThatCannotBeReachedYet(t *testing.T) {
	s := newServer(t)
	t.Chdir(t.TempDir())
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	s.meanwhile = func() { panic(http.ErrAbortHandler) }
	if _, errs, status := s.run("--watch", s.host(), "--once"); status != 2 {
		t.Errorf("with --once, the status is %d:\n%s", status, errs)
	}
	asked := 0
	s.meanwhile = func() {
		if asked++; asked <= 3 { // with all attempts of one question
			panic(http.ErrAbortHandler)
		}
		s.meanwhile = nil
		stop()
	}
	_, errs, err := commandtest.Run(ctx, Command(remote.Network{Roots: commandtest.Roots(s.Server), Pause: time.Millisecond}), "--watch", s.host(), "--interval", "1ms")
	if commandtest.Status(err) != 0 || asked != 4 || !strings.Contains(errs, s.host()+": ") {
		t.Errorf("it has asked %d times, and says %v\n%s", asked, err, errs)
	}
}

// Whoever stops the command is told what it has found so far, and not that all is well if it has not
// looked.
func TestWatchThatIsStopped(t *testing.T) {
	h1 := func(letter string) string { return "h1:" + strings.Repeat(letter, 43) + "=" }
	for _, test := range []struct {
		rule    string
		args    []string
		entries []string // sums
		after   int      // requests
		want    int
	}{
		{"before it has read the log once", []string{"--once"}, []string{"A"}, 1, 2},
		{"while it waits for more", []string{"--interval", "1ms"}, []string{"A"}, 50, 0},
		{"after it has found two packages of a version", []string{"--interval", "1ms"}, []string{"A", "E"}, 50, 1},
	} {
		t.Run(test.rule, func(t *testing.T) {
			s := newServer(t)
			t.Chdir(t.TempDir())
			for _, letter := range test.entries {
				s.log.Add(moduleEntry, h1(letter))
			}
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			asked := 0
			s.meanwhile = func() {
				if asked++; asked == test.after {
					stop()
				}
			}
			_, errs, err := commandtest.Run(ctx, Command(remote.Network{Roots: commandtest.Roots(s.Server), Pause: time.Millisecond}), append([]string{"--watch", s.host()}, test.args...)...)
			if status := commandtest.Status(err); status != test.want {
				t.Errorf("the status is %d, want %d, %v\n%s", status, test.want, err, errs)
			}
		})
	}
}
