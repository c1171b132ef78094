package prometheus_test

import (
	"io"
	"log/slog"
	"regexp"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
)

// alerts returns the alerts in docs/prometheus-rules.yaml, by name.
func alerts(t *testing.T) map[string]rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.Parse([]byte(document(t, "prometheus-rules.yaml")), false, model.UTF8Validation, promQL, slog.New(slog.NewTextHandler(io.Discard, nil)))
	for _, err := range errs {
		t.Error(err)
	}
	if groups == nil {
		t.FailNow()
	}
	found := make(map[string]rulefmt.Rule)
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			if rule.Alert == "" {
				t.Errorf("%s: a rule is not an alert", group.Name)
			}
			found[rule.Alert] = rule
		}
	}
	return found
}

func TestAlertsAreOnMetricsThatExist(t *testing.T) {
	m := readManual(t)
	for name, rule := range alerts(t) {
		t.Run(name, func(t *testing.T) { m.checkQuery(t, rule.Expr) })
		if rule.Annotations["summary"] == "" || rule.Labels["severity"] == "" {
			t.Errorf("%s has no summary or severity", name)
		}
	}
}

// The manual says for each alert what to do, and names no other alerts.
func TestAlertsAreExplained(t *testing.T) {
	rules := alerts(t)
	explained := make(map[string]bool)
	for _, row := range regexp.MustCompile("(?m)^\\| `(TerraformRegistry\\w+)` \\|").FindAllStringSubmatch(document(t, "operate.md"), -1) {
		explained[row[1]] = true
		if _, exists := rules[row[1]]; !exists {
			t.Errorf("there is no alert %s", row[1])
		}
	}
	for name := range rules {
		if !explained[name] {
			t.Errorf("%s is not explained", name)
		}
	}
}

func TestAlertsFire(t *testing.T) {
	const (
		scans    = `caddy_terraform_registry_scans_total{instance="a",root="/srv",result="failure"}`
		age      = `caddy_terraform_registry_index_age_seconds{instance="a",root="/srv"}`
		pending  = `caddy_terraform_registry_pending{instance="a",root="/srv"}`
		offered  = `caddy_terraform_registry_offered{instance="a",root="/srv",kind="provider"}`
		expiry   = `caddy_terraform_registry_key_expiry_days{instance="a",root="/srv"}`
		token    = `caddy_terraform_registry_token_expiry_days{instance="a",file="/etc/caddy/tokens",name="ci"}`
		withheld = `caddy_terraform_registry_withheld{instance="a",root="/srv",reason=`
		logFails = `caddy_terraform_registry_tlog_failing{instance="a",folder="/srv/log",reason=`
		changed  = `caddy_terraform_registry_bytes_changed{instance="a",root="/srv"}`
		requests = `caddy_terraform_registry_requests_total{instance="a",kind=`
		publish  = `caddy_terraform_registry_publish_total{instance="a",kind="package",outcome=`
		upstream = `caddy_terraform_registry_upstream_total{instance="a",hostname="registry.terraform.io",event=`
	)
	// Nothing was scraped for ten minutes, an hour ago.
	gap := func(ago time.Duration) (float64, bool) { return 1, ago < 56*time.Minute || ago > 66*time.Minute }
	// An event after a restart, and one of the process before.
	restarted := func(ago time.Duration) (float64, bool) { return 1, ago < 40*time.Minute || ago > 80*time.Minute }
	// The alert, and whether it fires.
	for _, test := range []struct {
		name  string
		alert string
		given series
		fires bool
	}{
		{"nothing is scraped", "TerraformRegistryAbsent", series{}, true},
		{"an instance is scraped", "TerraformRegistryAbsent", series{scans: always(0)}, false},
		{"a scan failed", "TerraformRegistryScansFail", series{scans: from(10*time.Minute, 0, 1)}, true},
		{"a scan failed long ago", "TerraformRegistryScansFail", series{scans: from(90*time.Minute, 0, 1)}, false},
		{"no scan for two hours", "TerraformRegistryScansStopped", series{age: always(7200)}, true},
		{"a scan five minutes ago", "TerraformRegistryScansStopped", series{age: always(300)}, false},
		{"unread for an hour", "TerraformRegistryReadingTakesLong", series{pending: always(3)}, true},
		{"unread for a while", "TerraformRegistryReadingTakesLong", series{pending: from(20*time.Minute, 0, 3)}, false},
		{"half of it is gone", "TerraformRegistryOffersLess", series{offered: from(10*time.Minute, 100, 50)}, true},
		{"one of a hundred is gone", "TerraformRegistryOffersLess", series{offered: from(10*time.Minute, 100, 99)}, false},
		{"a bad signature", "TerraformRegistryTampered", series{withheld + `"bad_signature"}`: always(1)}, true},
		{"an empty file", "TerraformRegistryTampered", series{withheld + `"empty"}`: always(1)}, false},
		{"other bytes than on record", "TerraformRegistryReplaced", series{withheld + `"replaced"}`: always(1)}, true},
		{"other bytes than on record", "TerraformRegistryWithheld", series{withheld + `"replaced"}`: always(1)}, false},
		{"a log that was restored from a backup", "TerraformRegistryLogStopped", series{logFails + `"behind"}`: always(1)}, true},
		{"a log that can be added to", "TerraformRegistryLogStopped", series{logFails + `"behind"}`: always(0)}, false},
		{"a disk that is full", "TerraformRegistryLogStopped", series{logFails + `"failed"}`: always(1)}, false},
		{"a disk that is full", "TerraformRegistryLogFails", series{logFails + `"failed"}`: always(1)}, true},
		{"other bytes than at first", "TerraformRegistryBytesChanged", series{changed: always(1)}, true},
		{"the same bytes as at first", "TerraformRegistryBytesChanged", series{changed: always(0)}, false},
		{"an empty file", "TerraformRegistryWithheld", series{withheld + `"empty"}`: always(1)}, true},
		{"a file that is being copied", "TerraformRegistryWithheld", series{withheld + `"being_written"}`: always(1)}, false},
		{"a bad signature, for which there is another alert", "TerraformRegistryWithheld", series{withheld + `"bad_signature"}`: always(1)}, false},
		{"a key for a week", "TerraformRegistryKeyExpires", series{expiry: always(7)}, true},
		{"a key for a year", "TerraformRegistryKeyExpires", series{expiry: always(365)}, false},
		{"a token for a week", "TerraformRegistryTokenExpires", series{token: always(7)}, true},
		{"a token for a month", "TerraformRegistryTokenExpires", series{token: always(30)}, false},
		{"a token that has just expired", "TerraformRegistryTokenExpires", series{token: always(-1)}, true},
		{"a token that expired long ago", "TerraformRegistryTokenExpires", series{token: always(-30)}, false},
		{"every tenth request fails", "TerraformRegistryFails", series{requests + `"page",code="200"}`: rising(9), requests + `"page",code="500"}`: rising(1)}, true},
		{"every hundredth request fails", "TerraformRegistryFails", series{requests + `"page",code="200"}`: rising(99), requests + `"page",code="500"}`: rising(1)}, false},
		{"what is not there is requested", "TerraformRegistryFails", series{requests + `"page",code="404"}`: rising(1)}, false},
		{"probes before the start", "TerraformRegistryFails", series{requests + `"ready",code="503"}`: rising(9), requests + `"page",code="200"}`: rising(1)}, false},
		{"the first failure of the process", "TerraformRegistryCannotPublish", series{publish + `"failed"}`: since(10*time.Minute, 1)}, true},
		{"a further failure", "TerraformRegistryCannotPublish", series{publish + `"disk_full"}`: from(10*time.Minute, 1, 2)}, true},
		{"a failure long ago", "TerraformRegistryCannotPublish", series{publish + `"failed"}`: always(1)}, false},
		{"a failure long ago, and an hour ago no scrapes", "TerraformRegistryCannotPublish", series{publish + `"failed"}`: gap}, false},
		{"a failure after a restart, and one before", "TerraformRegistryCannotPublish", series{publish + `"failed"}`: restarted}, true},
		{"a file that cannot be published", "TerraformRegistryCannotPublish", series{publish + `"refused"}`: rising(1)}, false},
		{"lists cannot be had", "TerraformRegistryUpstreamDown", series{upstream + `"versions_fetched",reason="unavailable"}`: rising(1)}, true},
		{"some lists cannot be had", "TerraformRegistryUpstreamDown", series{upstream + `"versions_fetched",reason="timeout"}`: rising(1), upstream + `"versions_fetched",reason=""}`: rising(1)}, false},
		{"the first bad package", "TerraformRegistryUpstreamRefused", series{upstream + `"package_filled",reason="bad_checksum"}`: since(10*time.Minute, 1)}, true},
		{"a bad package long ago, and an hour ago no scrapes", "TerraformRegistryUpstreamRefused", series{upstream + `"package_filled",reason="bad_checksum"}`: gap}, false},
		{"what there is not", "TerraformRegistryUpstreamRefused", series{upstream + `"package_filled",reason="not_found"}`: since(10*time.Minute, 1)}, false},
		{"a new key", "TerraformRegistryUpstreamKeys", series{upstream + `"key_added",reason=""}`: since(10*time.Minute, 1)}, true},
		{"a new key long ago", "TerraformRegistryUpstreamKeys", series{upstream + `"key_added",reason=""}`: always(1)}, false},
		{"a new key long ago, and an hour ago no scrapes", "TerraformRegistryUpstreamKeys", series{upstream + `"key_added",reason=""}`: gap}, false},
		{"no room for a package", "TerraformRegistryMirrorFull", series{upstream + `"package_filled",reason="max_held"}`: from(10*time.Minute, 1, 2)}, true},
		{"no room long ago, and an hour ago no scrapes", "TerraformRegistryMirrorFull", series{upstream + `"package_filled",reason="max_held"}`: gap}, false},
		{"room for a package", "TerraformRegistryMirrorFull", series{upstream + `"package_filled",reason=""}`: rising(1)}, false},
	} {
		t.Run(test.alert+"/"+test.name, func(t *testing.T) {
			rule, exists := alerts(t)[test.alert]
			if !exists {
				t.Fatal("there is no such alert")
			}
			if fires := len(test.given.evaluate(t, rule.Expr)) > 0; fires != test.fires {
				t.Errorf("it fires: %v", fires)
			}
		})
	}
}
