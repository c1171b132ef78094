package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// For a tree with files of each kind, the metrics, the admin API and the log agree.
func TestOperations(t *testing.T) {
	t.Parallel()
	acme := publisher(t, "acme")
	files := newTree(t).
		Provider("acme/demo", "1.0.0", platforms("plan9_386", "linux_mips"), signedBy(acme)).
		Provider("acme/demo", "1.1.0", platforms("plan9_386", "linux_mips"), tampered("linux_mips")).
		Module("acme/vpc/aws", "1.0.0", asTarGz).
		Keys("acme", acme)
	writeFile(t, files.Path("providers/README.md"), "not a part of the tree\n")
	const bad = "providers/acme/demo/terraform-provider-demo_1.1.0_linux_mips.zip"
	registry := startRegistry(t, site("registry.example.com", files))
	registry.Settle(t)

	t.Run("the metrics", func(t *testing.T) {
		label := fmt.Sprintf("root=%q", files.Dir)
		metrics := registry.Metrics(t)
		for series, want := range map[string]float64{
			`offered{kind="provider",` + label + `}`:             2,
			`offered{kind="module",` + label + `}`:               1,
			`withheld{reason="checksum_mismatch",` + label + `}`: 1,
			`pending{` + label + `}`:                             0,
			`scans_total{result="failure",` + label + `}`:        0,
		} {
			if got, there := metrics["caddy_terraform_registry_"+series]; !there || got != want {
				t.Errorf("%s is %v, want %v", series, got, want)
			}
		}
		for series, limits := range map[string][2]float64{
			`index_age_seconds{` + label + `}`:            {0, 60},
			`scan_duration_seconds{` + label + `}`:        {0.000001, 60},
			`scans_total{result="success",` + label + `}`: {2, 10_000},
			`archives_total{` + label + `,source="read"}`: {5, 10_000},
			`archives_total{` + label + `,source="memo"}`: {5, 100_000},
		} {
			if got := metrics["caddy_terraform_registry_"+series]; got < limits[0] || got > limits[1] {
				t.Errorf("%s is %v, which is not within %v", series, got, limits)
			}
		}
		// Labels have few values: none names a file, a provider or a client.
		series := 0
		for name := range metrics {
			if !strings.HasPrefix(name, "caddy_terraform_registry_") || strings.HasPrefix(name, "caddy_terraform_registry_build_info{") {
				continue
			}
			series++
			for _, label := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(name, -1) {
				switch label[1] {
				case "root", "kind", "reason", "result", "source", "code", "method", "le":
				default:
					t.Errorf("%s has the label %s", name, label[1])
				}
			}
			for _, unbounded := range []string{"demo", "vpc", "1.0.0", ".zip"} {
				if strings.Contains(strings.ReplaceAll(name, files.Dir, ""), unbounded) {
					t.Errorf("%s names %s", name, unbounded)
				}
			}
		}
		if series > 100 {
			t.Errorf("there are %d series", series)
		}
	})

	t.Run("the indexes", func(t *testing.T) {
		states := registry.Indexes(t)
		state := states[files.Dir]
		if len(states) != 1 || state.Offered["provider"] != 2 || state.Offered["module"] != 1 ||
			state.Withheld["checksum_mismatch"] != 1 || state.Pending != 0 || state.Scans == 0 || state.Failed != 0 || state.Progress != nil {
			t.Errorf("they are %+v", states)
		}
	})

	t.Run("the report", func(t *testing.T) {
		answer := registry.Admin(t, http.MethodGet, "/terraform_registry/report?root="+url.QueryEscape(files.Dir))
		if answer.Status != 200 || answer.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%d %s", answer.Status, answer.Header)
		}
		var reports map[string]Report
		if err := json.Unmarshal([]byte(answer.Body), &reports); err != nil {
			t.Fatal(err)
		}
		report := reports[files.Dir]
		if len(report.Offered) != 3 || report.reasons()[bad] != "checksum_mismatch" {
			t.Errorf("it is %+v", report)
		}
		// It equals the report of `check`.
		if printed, _ := check(t, files); len(printed.Offered) != 3 || fmt.Sprint(printed.Withheld) != fmt.Sprint(report.Withheld) {
			t.Errorf("check withholds %v, the report %v", printed.Withheld, report.Withheld)
		}
	})

	t.Run("invalid requests", func(t *testing.T) {
		for _, test := range []struct {
			method, path string
			status       int
			allow        string
		}{
			{http.MethodPost, "/terraform_registry/indexes", 405, "GET"},
			{http.MethodDelete, "/terraform_registry/report", 405, "GET"},
			{http.MethodGet, "/terraform_registry/rescan", 405, "POST"},
			{http.MethodGet, "/terraform_registry/indexes?root=/nowhere", 404, ""},
			{http.MethodGet, "/terraform_registry/report?root=/nowhere", 404, ""},
			{http.MethodPost, "/terraform_registry/rescan?root=/nowhere", 404, ""},
			{http.MethodGet, "/terraform_registry/other", 404, ""},
		} {
			answer := registry.Admin(t, test.method, test.path)
			if answer.Status != test.status || answer.Header.Get("Allow") != test.allow {
				t.Errorf("%s %s: %d, Allow %q, want %d and %q", test.method, test.path,
					answer.Status, answer.Header.Get("Allow"), test.status, test.allow)
			}
		}
	})

	// Caddy has no built-in handler for events. At the debug level, it logs
	// each of them.
	t.Run("the events", func(t *testing.T) {
		events := func(name string) []Entry {
			return registry.Log.Find(0, func(e Entry) bool { return e.Logger == "events" && e.Event == name })
		}
		rescanned, withheld := events("terraform_registry_rescanned"), events("terraform_registry_withheld")
		if len(rescanned) == 0 || !strings.Contains(rescanned[0].Line, `"root":"`+files.Dir+`"`) {
			t.Errorf("the events of scans are %v", rescanned)
		}
		if len(withheld) != 1 || !strings.Contains(withheld[0].Line, bad) || !strings.Contains(withheld[0].Line, "checksum_mismatch") {
			t.Errorf("the events of withheld files are %v", withheld)
		}
	})

	t.Run("a withheld file is logged once for each change", func(t *testing.T) {
		about := func(point int) []Entry {
			return registry.Log.Find(point, func(e Entry) bool {
				return e.Message == "withheld" && strings.Contains(e.Line, bad)
			})
		}
		for range 3 {
			registry.Rescan(t)
		}
		if lines := about(0); len(lines) != 1 || lines[0].Level != "warn" {
			t.Errorf("after several scans: %v", lines)
		}

		// It is withheld for another reason, then removed, then withheld for
		// the first reason again.
		content := files.Read(bad)
		for _, change := range []struct {
			how  func() error
			logs int
		}{
			{func() error {
				if err := os.WriteFile(files.Path(bad), nil, 0o644); err != nil {
					return err
				}
				// A file that has just been written might still be being
				// copied.
				return os.Chtimes(files.Path(bad), time.Time{}, time.Now().Add(-time.Hour))
			}, 1},
			{func() error { return os.Remove(files.Path(bad)) }, 0},
			{func() error { return os.WriteFile(files.Path(bad), []byte(content), 0o644) }, 1},
		} {
			point := len(registry.Log.Entries())
			if err := change.how(); err != nil {
				t.Fatal(err)
			}
			registry.Settle(t)
			registry.Rescan(t)
			if lines := about(point); len(lines) != change.logs {
				t.Errorf("it was logged %d times, want %d: %v", len(lines), change.logs, lines)
			}
		}
	})
}

// A rescan by the admin API finds a change at once, and answers when it has finished.
// Nothing else would find the change.
func TestRescanAnswersWhenDone(t *testing.T) {
	t.Parallel()
	files, other := newTree(t), newTree(t)
	registry := startRegistry(t,
		site("registry.example.com", files, "rescan off"),
		site("other.example.com", other, "rescan off"))
	for i := range 5 {
		version := fmt.Sprintf("1.%d.0", i)
		files.Provider("acme/demo", version, platforms("plan9_386"))
		scans := registry.Indexes(t)[other.Dir].Scans
		answer := registry.Admin(t, http.MethodPost, "/terraform_registry/rescan?root="+url.QueryEscape(files.Dir))
		if answer.Status != 200 || !strings.Contains(answer.Body, files.Dir) || strings.Contains(answer.Body, other.Dir) {
			t.Errorf("%d %s", answer.Status, answer.Body)
		}
		if !registry.lists(t, versionsOfDemo, version) {
			t.Errorf("%s is not listed", version)
		}
		if now := registry.Indexes(t)[other.Dir].Scans; now != scans {
			t.Error("the other tree was scanned as well")
		}
	}
}
