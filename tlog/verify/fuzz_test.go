package verify_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog/tlogtest"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog/verify"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/lockfile"
)

type answering func(path string) string

// RoundTrip implements http.RoundTripper.
func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	body := a(r.URL.Path)
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(body)), Header: http.Header{}, Request: r}, nil
}

// Whatever a registry answers, nothing is as on record that no proof says.
func FuzzAnswers(f *testing.F) {
	l := tlogtest.New(f)
	log, err := l.Open(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	signed := string(log.Head().Signed)
	log.Close()
	folder := f.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "main.tf"), nil, 0o644); err != nil {
		f.Fatal(err)
	}
	const entry = "offered 2026-11-24T22:00:00Z module acme/vpc/aws 1.0.0 h1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA= zh:0000000000000000000000000000000000000000000000000000000000000000 00000000000000000000000000000000"
	f.Add(`{"tlog.v1":"/v1/tlog/"}`, signed, l.Public, entry+"\n\nc2sp.org/tlog-proof@v1\nindex 0\n\n"+signed, "\n"+signed, `{"modules":[{"versions":[{"version":"1.0.0","deprecation":{"reason":"x"}}]}]}`)
	f.Add(`{"tlog.v1":"//a/"}`, "a\n1\nb\n\n— a b\n", "a+1+b", "shasums "+strings.Repeat("0", 64), "", `{}`)
	f.Add("<html>", "", "\x00", "", "", "")
	a, err := address.ParseModule(host, "acme", "vpc", "aws")
	if err != nil {
		f.Fatal(err)
	}
	project := verify.Project{Folder: folder, Modules: []verify.Module{{InstalledCall: lockfile.InstalledCall{Key: "vpc", InstalledModule: lockfile.InstalledModule{Address: a, Version: "1.0.0"}}, Folder: folder}}}
	f.Fuzz(func(t *testing.T, discovery, checkpoint, key, lookup, consistency, versions string) {
		o := &verify.Options{Now: time.Now()}
		o.Client = &verify.Client{
			Cache: verify.OpenCache(""), Pause: time.Nanosecond, Token: func(context.Context, svchost.Hostname) (string, error) { return "", nil },
			Transport: answering(func(path string) string {
				switch {
				case strings.HasPrefix(path, "/.well-known/"):
					return discovery
				case strings.HasSuffix(path, "/checkpoint"):
					return checkpoint
				case strings.HasSuffix(path, "/key"):
					return key
				case strings.Contains(path, "/lookup/"):
					return lookup
				case strings.HasSuffix(path, "/consistency"):
					return consistency
				}
				return versions
			}),
		}
		report, _, _, err := verify.Run(context.Background(), o, []verify.Project{project})
		if err == nil && report.Count(verify.OK) > 0 {
			t.Error("it is as on record")
		}
	})
}

// A registry cannot make its readers wait for long.
func TestRetryAfterIsBounded(t *testing.T) {
	r := full(t)
	m := installed(t, r)
	m.servers[host] = except(m.servers[host], "/lookup/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "86400")
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	says(t, m.verify(), demo+" 1.2.0 unanswered", vpc+" 1.0.0 unanswered")
}
