package e2e_test

import (
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// While the root is missing, everything stays offered, including archives. When
// it is back, files added in the meantime are offered too.
func TestRootRenamedAway(t *testing.T) {
	t.Parallel()
	files := newTree(t).
		Provider("acme/demo", "1.0.0", platforms("plan9_386")).
		Module("acme/vpc/aws", "1.0.0", asTarGz)
	registry := startRegistry(t, site("registry.example.com", files, "rescan off"))
	urls := []string{
		versionsOfDemo,
		"https://registry.example.com/v1/providers/acme/demo/1.0.0/download/plan9/386",
		"https://registry.example.com/v1/mirror/registry.example.com/acme/demo/terraform-provider-demo_1.0.0_plan9_386.zip",
		"https://registry.example.com/v1/modules/acme/vpc/aws/1.0.0/archive.tar.gz",
	}
	before := map[string]Response{}
	for _, url := range urls {
		before[url] = registry.Get(t, url)
	}
	unchanged := func(when string) {
		t.Helper()
		for _, url := range urls {
			if now := registry.Get(t, url); now.Status != 200 || now.Body != before[url].Body {
				t.Errorf("%s, %s: %d", when, url, now.Status)
			}
		}
	}

	away := files.Dir + ".away"
	if err := os.Rename(files.Dir, away); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(away) })
	answer := registry.Admin(t, http.MethodPost, "/terraform_registry/rescan")
	if answer.Status != 503 || !strings.Contains(answer.Body, "opening the root") {
		t.Errorf("a scan without the root: %d %s", answer.Status, answer.Body)
	}
	unchanged("without the root")

	(&Tree{Dir: away, t: t}).Provider("acme/demo", "1.1.0", platforms("plan9_386"))
	if err := os.Rename(away, files.Dir); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the version added in the meantime is listed", func() bool { return registry.lists(t, versionsOfDemo, "1.1.0") })
	if got := registry.Get(t, urls[1]); got.Body != before[urls[1]].Body {
		t.Error("the release that was present all the time has changed")
	}
	// The folder is watched again.
	files.Provider("acme/demo", "1.2.0", platforms("plan9_386"))
	eventually(t, "the version added later is listed", func() bool { return registry.lists(t, versionsOfDemo, "1.2.0") })
}

// withoutOverride makes a process of root obey file permissions, as the
// processes of other users do.
func withoutOverride(t *testing.T) func(*exec.Cmd) {
	if os.Getuid() != 0 {
		return func(*exec.Cmd) {}
	}
	setpriv, err := exec.LookPath("setpriv")
	require(t, err)
	return func(cmd *exec.Cmd) {
		cmd.Args = append([]string{setpriv, "--bounding-set", "-dac_override,-dac_read_search", cmd.Path}, cmd.Args[1:]...)
		cmd.Path = setpriv
	}
}

// If a folder cannot be read, the versions in it stay listed. New files in it are not
// listed until it can be read again. Its files are not missing but out of reach.
// Nothing else is affected. It is logged once.
func TestFolderThatCannotBeRead(t *testing.T) {
	t.Parallel()
	files := newTree(t).
		Provider("acme/demo", "1.0.0", platforms("plan9_386")).
		Provider("acme/other", "1.0.0", platforms("plan9_386"))
	registry := startRegistryAs(t, withoutOverride(t), site("registry.example.com", files, "rescan off"))

	folder := files.Path("providers/acme/other")
	t.Cleanup(func() { os.Chmod(folder, 0o755) })
	other := "https://registry.example.com/v1/providers/acme/other/versions"
	download := "https://registry.example.com/v1/mirror/registry.example.com/acme/other/terraform-provider-other_1.0.0_plan9_386.zip"
	for range 2 {
		point := len(registry.Log.Entries())
		if err := os.Chmod(folder, 0); err != nil {
			t.Fatal(err)
		}
		registry.Log.WaitAfter(t, point, 1, "the event caused a scan", Entry.scan)
		registry.Rescan(t)
		if !registry.lists(t, other, "1.0.0") {
			t.Error("what was known of it is not listed any more")
		}
		if answer := registry.Get(t, download); answer.Status != 503 || answer.Header.Get("Retry-After") == "" {
			t.Errorf("a file in it: %d %s", answer.Status, answer.Body)
		}
		// The event caused one scan, and the admin API another. A scan logs withheld
		// files after it has finished.
		registry.Log.WaitAfter(t, point, 2, "it was scanned twice", Entry.scan)
		isWithheld := func(e Entry) bool { return e.Message == "withheld" }
		registry.Log.WaitAfter(t, point, 1, "it is withheld", isWithheld)
		withheld := registry.Log.Find(point, isWithheld)
		if len(withheld) != 1 || !strings.Contains(withheld[0].Line, `"path":"providers/acme/other","reason":"unreadable"`) {
			t.Errorf("withheld according to the log: %v", withheld)
		}
		if !registry.lists(t, versionsOfDemo, "1.0.0") {
			t.Error("another provider is missing as well")
		}
		if err := os.Chmod(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		registry.Rescan(t)
		if answer := registry.Get(t, download); answer.Status != 200 {
			t.Errorf("a file in it once it can be read: %d %s", answer.Status, answer.Body)
		}
	}
}

// If the clock is set back, files have times in the future. They are served,
// remembered and watched like any others. (A test cannot set a file's time of
// change, so that case is left to the tests of the index.)
func TestFilesFromTheFuture(t *testing.T) {
	t.Parallel()
	folders := newTree(t).
		Provider("acme/demo", "1.0.0", platforms("plan9_386"), zipsOnly).
		Module("acme/vpc/aws", "1.0.0", asFolder)
	future := time.Now().Add(10 * 365 * 24 * time.Hour).Truncate(time.Second)
	files := []string{demoPackage("1.0.0", "plan9_386"), "modules/acme/vpc/aws/1.0.0/main.tf"}
	date := func(when time.Time) {
		t.Helper()
		for _, name := range files {
			if err := os.Chtimes(folders.Path(name), when, when); err != nil {
				t.Fatal(err)
			}
		}
	}
	date(future)
	s := site("registry.example.com", folders, "rescan off")
	registry := startRegistry(t, s)
	archives := []string{
		"https://registry.example.com/v1/mirror/registry.example.com/acme/demo/terraform-provider-demo_1.0.0_plan9_386.zip",
		"https://registry.example.com/v1/modules/acme/vpc/aws/1.0.0/archive.tar.gz",
	}
	for _, url := range archives {
		if answer := registry.Get(t, url); answer.Status != 200 {
			t.Errorf("%s: %d", url, answer.Status)
		}
	}

	// Changed, with the same size and an earlier time, as after the clock was
	// corrected.
	etags := map[string]string{}
	for _, url := range archives {
		etags[url] = registry.Get(t, url).Header.Get("ETag")
	}
	if err := writeZip(folders.Path(files[0]), "terraform-provider-demo_v1.0.0", strings.NewReader("another")); err != nil {
		t.Fatal(err)
	}
	writeFile(t, folders.Path(files[1]), strings.ToUpper(folders.Read(files[1])))
	date(time.Now().Add(-time.Hour))
	for _, url := range archives {
		eventually(t, url+" has other bytes", func() bool {
			answer := registry.Get(t, url)
			return answer.Status == 200 && answer.Header.Get("ETag") != etags[url]
		})
	}

	date(future)
	registry.Settle(t)
	registry.Restart(t, s)
	if scan := registry.firstScan(t); scan.number("read") != 0 || scan.Offered != 2 {
		t.Errorf("after a restart: %s", scan.Line)
	}
}
