package versionlist

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

var sampleRecord = &Record{
	Fetched: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC),
	Versions: []DatedVersion{
		{wire.ProviderVersion{Version: "1.1.0-rc.1", Protocols: []string{"5.0", "6.1"}, Platforms: []address.Platform{{OS: "linux", Arch: "amd64"}}}, time.Date(2025, 1, 2, 3, 4, 5, 0, time.UTC), time.Date(2025, 1, 2, 12, 0, 0, 0, time.UTC), time.Date(2025, 1, 3, 0, 0, 0, 0, time.UTC), true},
		{wire.ProviderVersion{Version: "1.0.0"}, time.Time{}, time.Time{}, time.Date(2025, 12, 2, 3, 4, 5, 0, time.UTC), false},
	},
	missing: []missingVersion{
		{DatedVersion{wire.ProviderVersion{Version: "0.9.0"}, time.Time{}, time.Time{}, time.Date(2025, 11, 2, 3, 4, 5, 0, time.UTC), true}, time.Date(2025, 12, 30, 0, 0, 0, 0, time.UTC)},
	},
}

func TestRecords(t *testing.T) {
	got, err := decode(sampleRecord.encode())
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
		{"an invalid version that is missing", `"0.9.0"`, `"0.9"`},
		{"a missing version without the time of its last list", `,"listed":"2025-12-30T00:00:00Z"`, ``},
	} {
		t.Run(test.rule, func(t *testing.T) {
			content := bytes.Replace(sampleRecord.encode(), []byte(test.old), []byte(test.new), 1)
			if bytes.Equal(content, sampleRecord.encode()) {
				t.Fatal("the sample does not have it")
			}
			if r, err := decode(content); err == nil {
				t.Errorf("it is accepted as %+v", r)
			}
		})
	}
}

// Versions keep their dates, even in a record of an earlier release.
func TestRecordsInAnotherOrder(t *testing.T) {
	seen := func(day int) time.Time { return time.Date(2026, 1, day, 0, 0, 0, 0, time.UTC) }
	dated := func(version string, day int) DatedVersion {
		return DatedVersion{ProviderVersion: wire.ProviderVersion{Version: version}, Seen: seen(day)}
	}
	for _, test := range []struct {
		rule     string
		versions []DatedVersion
	}{
		{"builds before the plain version", []DatedVersion{dated("1.0.0+b", 2), dated("1.0.0+a", 3), dated("1.0.0", 1)}},
		{"none", []DatedVersion{dated("1.0.0+a", 3), dated("1.0.0", 1), dated("1.0.0+b", 2)}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			r, err := decode((&Record{Fetched: seen(4), Versions: test.versions}).encode())
			if want := []DatedVersion{dated("1.0.0", 1), dated("1.0.0+b", 2), dated("1.0.0+a", 3)}; err != nil || !reflect.DeepEqual(r.Versions, want) {
				t.Errorf("got %+v, %v", r, err)
			}
		})
	}
}

// A limited number of versions that a list lacks keep their dates for some time.
func TestMissingVersions(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	listOf := func(versions ...string) (list []wire.ProviderVersion) {
		for _, v := range versions {
			list = append(list, wire.ProviderVersion{Version: v})
		}
		return list
	}
	first := New(listOf("1.1.0", "1.0.0"), nil, start)
	for _, test := range []struct {
		rule    string
		missing time.Duration
		seen    time.Time
	}{
		{"they keep when they were first seen", missingFor - time.Hour, start},
		{"after some time they are new", missingFor + time.Hour, start.Add(missingFor + time.Hour)},
	} {
		t.Run(test.rule, func(t *testing.T) {
			last := start.Add(test.missing / 2)
			r := New(listOf("1.1.0"), first, last)
			for _, again := range []func() (*Record, error){
				func() (*Record, error) { return decode(r.encode()) },
				func() (*Record, error) { return r.WithPastOf(first), nil },
				func() (*Record, error) { return New(listOf(), r, last), nil },
			} {
				kept, err := again()
				if err != nil {
					t.Fatal(err)
				}
				now := New(listOf("1.1.0", "1.0.0"), kept, start.Add(test.missing))
				if d, ok := now.Find("1.0.0"); !ok || !d.Seen.Equal(test.seen) || len(now.missing) > 0 {
					t.Errorf("got %+v, want %v, and %+v is missing", d, test.seen, now.missing)
				}
			}
		})
	}
	t.Run("their number is bounded", func(t *testing.T) {
		var many []wire.ProviderVersion
		for i := 3 * maxMissing; i > 0; i-- {
			many = append(many, wire.ProviderVersion{Version: fmt.Sprintf("1.%d.0", i)})
		}
		r := New(many, nil, start)
		r = New(nil, New(many[:10], r, start.Add(time.Hour)), start.Add(2*time.Hour))
		if len(r.missing) != maxMissing || r.missing[0].Listed != start.Add(time.Hour) {
			t.Errorf("there are %d, and %+v first", len(r.missing), r.missing[0])
		}
	})
}

// A decoded record encodes to the same bytes, and its versions are valid.
func FuzzDecodeRecord(f *testing.F) {
	f.Add(sampleRecord.encode())
	f.Add([]byte(`{"format":1,"fetched":"2026-01-02T03:04:05Z","versions":[]}`))
	f.Add([]byte(`{"format":1,"fetched":"2026-01-02T03:04:05+14:00","versions":[{"version":"1.0.0+build","platforms":[{"os":"linux"}]}]}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		r, err := decode(content)
		if err != nil {
			return
		}
		again, err := decode(r.encode())
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

// An origin's date counts as far as its own lists do not contradict it.
func TestWhenAVersionWasPublished(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC) }
	list := func(versions ...string) (all []wire.ProviderVersion) {
		for _, v := range versions {
			all = append(all, wire.ProviderVersion{Version: v})
		}
		return all
	}
	with, without := list("1.1.0", "1.0.0"), list("1.0.0")
	for _, test := range []struct {
		rule  string
		lists [][]wire.ProviderVersion // of a day each, from the 10th on
		says  time.Time
		want  time.Time
	}{
		{"the origin says nothing", [][]wire.ProviderVersion{with}, time.Time{}, time.Time{}},
		{"it was there before the origin was asked", [][]wire.ProviderVersion{with}, day(2), day(2)},
		{"it came between two lists, as the origin says", [][]wire.ProviderVersion{without, without, with}, day(11).Add(time.Hour), day(11).Add(time.Hour)},
		{"it came later than the origin says", [][]wire.ProviderVersion{without, without, with}, day(2), day(11)},
		{"it was missing for a while", [][]wire.ProviderVersion{with, without, with}, day(2), day(2)},
		{"further lists change nothing", [][]wire.ProviderVersion{without, with, with, with}, day(2), day(10)},
	} {
		t.Run(test.rule, func(t *testing.T) {
			var r *Record
			for i, l := range test.lists {
				var err error
				if r, err = decode(New(l, r, day(10+i)).encode()); err != nil {
					t.Fatal(err)
				}
			}
			d, ok := r.Find("1.1.0")
			d.Published, d.Asked = test.says, true
			if got := d.published(); !ok || !got.Equal(test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
			if matures := d.Matures(3 * 24 * time.Hour); !test.says.IsZero() && !matures.Equal(test.want.AddDate(0, 0, 3)) {
				t.Errorf("it has the minimum age at %v", matures)
			}
		})
	}
}
