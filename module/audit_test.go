package module

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// The log and an event report who publishes, withdraws or is refused.
func TestAudit(t *testing.T) {
	options, token := publishingHandler(t)
	c := newConfiguration(t)
	published, changed, refused := c.hear(eventPublished), c.hear(eventNoticesChanged), c.hear(eventRefused)
	h := c.mustHandle(options)
	log := new(lockedBuffer)
	h.logger = slog.New(slog.NewTextHandler(log, nil))
	c.mustStart()
	snapshot(t, h)
	release := publishedRelease(t, "1.2.0")
	const (
		module   = "/v1/modules/acme/vpc/aws/1.0.0.tar.gz"
		metadata = "/v1/modules/acme/vpc/aws/registry.hcl"
		demo     = "/v1/providers/acme/demo/1.2.0/"
		zip      = "terraform-provider-demo_1.2.0_linux_amd64.zip"
		from     = " client=192.0.2.1" // of httptest's requests
	)
	one := indextest.TarGz("main.tf", "# one\n")
	for _, step := range []struct {
		rule, path, token, body string
		status                  int
		log                     string   // the line
		event                   string   // its name
		data                    []string // some of its data
	}{
		{"nobody", module, "", one, 401,
			`level=WARN msg="publication refused" address=acme/vpc/aws version=1.0.0 kind=module file=1.0.0.tar.gz outcome=denied status=401 reason="it requires credentials to publish acme/vpc/aws: send a token as ` + "`Authorization: Bearer TOKEN`" + `" subject=""` + from,
			eventRefused, []string{"subject:", "client:192.0.2.1", "status:401", "outcome:denied"}},
		{"an unknown token", module, "tfr_unknown", one, 401, `outcome=denied status=401 reason="the credentials for acme/vpc/aws are unknown`, eventRefused, []string{"subject:", "status:401"}},
		{"somebody without the right", "/v1/modules/other/vpc/aws/1.0.0.tar.gz", token, one, 403,
			`outcome=denied status=403 reason="your credentials do not allow you to publish other/vpc/aws: ask the registry's operator for a rule with the right ` + "`publish`" + `" subject=ci` + from,
			eventRefused, []string{"address:other/vpc/aws", "subject:ci", "status:403"}},
		{"a package that clients could not use", module, token, indextest.TarGz("main.tf", "a ="), 422,
			`kind=module file=1.0.0.tar.gz outcome=refused status=422 reason="correct main.tf:1, which clients cannot parse`, eventRefused, []string{"subject:ci", "outcome:refused"}},
		{"a publication", module, token, one, 201,
			`level=INFO msg=published address=acme/vpc/aws version=1.0.0 kind=module files=[1.0.0.tar.gz] subject=ci` + from,
			eventPublished, []string{"address:acme/vpc/aws", "version:1.0.0", "subject:ci", "client:192.0.2.1"}},
		{"the same bytes", module, token, one, 200, "", "", nil},
		{"other bytes", module, token, indextest.TarGz("main.tf", "# two\n"), 409, `outcome=conflict status=409 reason="version 1.0.0 of acme/vpc/aws is published with another`, eventRefused, []string{"outcome:conflict", "subject:ci"}},
		{"a file of a release", demo + zip, token, release[zip], 202, `level=INFO msg=staged address=acme/demo version=1.2.0 kind=package file=` + zip + ` subject=ci` + from, "", nil},
		{"a withdrawal", metadata, token, `withdrawn "1.0.0" {}`, 201,
			`level=INFO msg=published address=acme/vpc/aws version="" kind=metadata files=[registry.hcl] withdrawn=[1.0.0] subject=ci` + from,
			eventNoticesChanged, []string{"withdrawn:[1.0.0]", "deprecated:[]", "restored:[]", "subject:ci", "client:192.0.2.1"}},
		{"a registry.hcl that its sender has not seen", metadata, token, `deprecated "1.0.0" {}`, 428,
			`kind=metadata file=registry.hcl outcome=refused status=428`, eventRefused, []string{"kind:metadata"}},
	} {
		t.Run(step.rule, func(t *testing.T) {
			before := len(log.String())
			if w, _ := put(t, h, step.path, step.token, step.body); w.Code != step.status {
				t.Fatalf("got %d %s, want %d", w.Code, w.Body, step.status)
			}
			if line := log.String()[before:]; !strings.Contains(line, step.log) || step.log == "" && line != "" {
				t.Errorf("the log has\n%s\nwant\n%s", line, step.log)
			}
			var events []caddy.Event
			for _, h := range []*heard{published, changed, refused} {
				events = append(events, h.take()...)
			}
			found := step.event == "" && len(events) == 0
			for _, e := range events {
				if e.Name() != step.event {
					continue
				}
				found = true
				for _, want := range step.data {
					if data := fmt.Sprint(e.Data); !strings.Contains(data, want) {
						t.Errorf("there is no %q in %s", want, data)
					}
				}
			}
			if !found {
				t.Errorf("the events are %v", events)
			}
		})
	}
}

// Anyone can be refused any number of times, and cannot fill the log. Refusals of
// others, and publications, are still logged.
func TestRefusalsAreToldAtARate(t *testing.T) {
	s, now := newRefusedSubjects(), time.Now()
	told := func(subject string, n int) (told, untold int) {
		for range n {
			is, before := s.note(subject, now)
			if is {
				told++
			}
			untold += before
		}
		return told, untold
	}
	for _, step := range []struct {
		rule         string
		after        time.Duration
		subject      string
		n            int
		told, untold int
	}{
		{"some in a row", 0, "", 30, refusalsInARow, 0},
		{"those of another subject", 0, "ci", 3, 3, 0},
		{"a moment later", time.Second, "", 30, 0, 0},
		{"one, some time later, with how many were not told", refusalInterval, "", 30, 1, 50},
		{"all, after a pause", refusalInterval * refusalsInARow, "", 3, 3, 29},
	} {
		now = now.Add(step.after)
		if n, untold := told(step.subject, step.n); n != step.told || untold != step.untold {
			t.Errorf("%s: %d are told, and %d were not before; want %d and %d", step.rule, n, untold, step.told, step.untold)
		}
	}
	for i := range 2 * maxRefused {
		s.note(fmt.Sprint(i), now)
	}
	if _, ok := s.rates.Get(fmt.Sprint(maxRefused - 1)); ok {
		t.Errorf("more than %d subjects are remembered", maxRefused)
	}
}
