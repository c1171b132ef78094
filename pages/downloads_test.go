package pages

import (
	"context"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	counts "github.com/caddy-terraform/caddy-terraform-registry/usage"
)

// An emptyStorage takes everything and has nothing.
type emptyStorage struct{}

func (emptyStorage) List(context.Context) ([]string, error)          { return nil, nil }
func (emptyStorage) Load(context.Context, string) ([]byte, error)    { return nil, fs.ErrNotExist }
func (emptyStorage) Store(context.Context, string, []byte) error     { return nil }
func (emptyStorage) Delete(context.Context, string) error            { return nil }
func (emptyStorage) Lock(context.Context) (unlock func(), err error) { return func() {}, nil }

// A page says how often its version was downloaded, and the list of versions says it of each.
// A page that is kept has the counts of the last minute.
func TestPagesSayHowOftenVersionsAreDownloaded(t *testing.T) {
	files := indextest.New(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64")
	for _, version := range []string{"1.0.0", "1.1.0"} {
		files.Write("modules/acme/vpc/aws/"+version+".tar.gz", indextest.TarGz("main.tf", ""))
	}
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	c := counts.NewCounter(counts.Options{Storage: emptyStorage{}, Keep: 400 * 24 * time.Hour, Now: func() time.Time { return now }})
	site := siteOf(t, snapshotOf(t, files))
	says := func(path string) string {
		t.Helper()
		return strings.Join(strings.Fields(textIn(parse(t, site.get(path, "")))), " ")
	}
	if text := says("/modules/acme/vpc/aws/1.1.0"); strings.Contains(text, "ownloads") {
		t.Errorf("without counts, it says %s", text)
	}
	site.Registry.Usage = c
	vpc, _ := address.Parse("acme/vpc/aws")
	demo, _ := address.Parse("acme/demo")
	count := func(a address.Address, version string, n int) {
		for range n {
			c.Add(counts.Use{Address: a, Version: version})
		}
	}
	count(vpc, "1.0.0", 1)
	now = now.Add(40 * 24 * time.Hour)
	count(vpc, "1.0.0", 1234)
	count(demo, "1.0.0", 2)
	if err := c.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/modules/acme/vpc/aws/1.0.0":              "Downloads1,234 in 30 days, last on 5 Jan 2027 All versions1,234 in 30 days",
		"/modules/acme/vpc/aws/1.1.0":              "Downloadsno downloads All versions1,234 in 30 days",
		"/modules/acme/vpc/aws/1.1.0?tab=versions": "1.0.01,234 in 30 days, last on 5 Jan 2027",
		"/providers/acme/demo/1.0.0?tab=versions":  "2 in 30 days, last on 5 Jan 2027",
		"/providers/acme/demo/1.0.0":               "Downloads2 in 30 days, last on 5 Jan 2027",
	} {
		if text := says(path); !strings.Contains(text, want) {
			t.Errorf("%s says\n%s\nand not %q", path, text, want)
		}
	}
	count(vpc, "1.1.0", 1)
	if err := c.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if text := says("/modules/acme/vpc/aws/1.1.0"); !strings.Contains(text, "Downloads1 in 30 days") {
		t.Errorf("a minute later it says %s", text)
	}
}
