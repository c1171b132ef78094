package fill

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

var sampleRecord = &record{
	Fetched: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC),
	Versions: []datedVersion{
		{wire.ProviderVersion{Version: "1.1.0-rc.1", Protocols: []string{"5.0", "6.1"}, Platforms: []address.Platform{{OS: "linux", Arch: "amd64"}}}, time.Date(2025, 1, 2, 3, 4, 5, 0, time.UTC), time.Date(2025, 1, 3, 0, 0, 0, 0, time.UTC), true},
		{wire.ProviderVersion{Version: "1.0.0"}, time.Time{}, time.Date(2025, 12, 2, 3, 4, 5, 0, time.UTC), false},
	},
}

func TestRecords(t *testing.T) {
	got, err := decodeRecord(sampleRecord.encode())
	if err != nil || !reflect.DeepEqual(got, sampleRecord) {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, test := range []struct{ rule, old, new string }{
		{"another format", `"format":1`, `"format":2`},
		{"no time", `"fetched":"2026-01-02T03:04:05.000000006Z"`, `"fetched":"0001-01-01T00:00:00Z"`},
		{"an invalid time", `2026-01-02`, `2026-13-02`},
		{"an invalid version", `"1.0.0"`, `"1.0"`},
		{"a version twice", `"1.0.0"`, `"1.1.0-rc.1"`},
		{"an invalid protocol", `"6.1"`, `"six"`},
		{"an invalid platform", `"linux"`, `"../"`},
		{"trailing data", `}]}`, `}]}{}`},
	} {
		t.Run(test.rule, func(t *testing.T) {
			content := bytes.Replace(sampleRecord.encode(), []byte(test.old), []byte(test.new), 1)
			if bytes.Equal(content, sampleRecord.encode()) {
				t.Fatal("the sample does not have it")
			}
			if r, err := decodeRecord(content); err == nil {
				t.Errorf("it is accepted as %+v", r)
			}
		})
	}
}

// Dates stay those of their versions, also in a record of an earlier release.
func TestRecordsInAnotherOrder(t *testing.T) {
	seen := func(day int) time.Time { return time.Date(2026, 1, day, 0, 0, 0, 0, time.UTC) }
	of := func(version string, day int) datedVersion {
		return datedVersion{ProviderVersion: wire.ProviderVersion{Version: version}, Seen: seen(day)}
	}
	for _, test := range []struct {
		rule     string
		versions []datedVersion
	}{
		{"builds before the plain version", []datedVersion{of("1.0.0+b", 2), of("1.0.0+a", 3), of("1.0.0", 1)}},
		{"none", []datedVersion{of("1.0.0+a", 3), of("1.0.0", 1), of("1.0.0+b", 2)}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			r, err := decodeRecord((&record{Fetched: seen(4), Versions: test.versions}).encode())
			if want := []datedVersion{of("1.0.0", 1), of("1.0.0+b", 2), of("1.0.0+a", 3)}; err != nil || !reflect.DeepEqual(r.Versions, want) {
				t.Errorf("got %+v, %v", r, err)
			}
		})
	}
}

// A decoded record encodes to the same bytes, and its versions are valid.
func FuzzDecodeRecord(f *testing.F) {
	f.Add(sampleRecord.encode())
	f.Add([]byte(`{"format":1,"fetched":"2026-01-02T03:04:05Z","versions":[]}`))
	f.Add([]byte(`{"format":1,"fetched":"2026-01-02T03:04:05+14:00","versions":[{"version":"1.0.0+build","platforms":[{"os":"linux"}]}]}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		r, err := decodeRecord(content)
		if err != nil {
			return
		}
		again, err := decodeRecord(r.encode())
		if err != nil {
			t.Fatalf("%v in %s", err, r.encode())
		}
		if !bytes.Equal(again.encode(), r.encode()) {
			t.Fatalf("%s became %s", r.encode(), again.encode())
		}
		for _, d := range r.Versions {
			if _, err := address.ParseProviderVersion(d.ProviderVersion.Version); err != nil {
				t.Fatal(err)
			}
		}
	})
}
