package e2e_test

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// failures returns the reasons of the failures that have been counted for a
// hostname.
func (r *Registry) failures(t *testing.T, hostname string) (reasons []string) {
	t.Helper()
	for series := range r.Metrics(t) {
		labels, ours := strings.CutPrefix(series, "caddy_terraform_registry_upstream_total{")
		_, reason, _ := strings.Cut(labels, `reason="`)
		reason, _, _ = strings.Cut(reason, `"`)
		if ours && reason != "" && strings.Contains(labels, `hostname="`+hostname+`"`) {
			reasons = append(reasons, reason)
		}
	}
	return reasons
}

// misquoted changes the first digest.
func misquoted(sums []byte) []byte {
	sums = bytes.Clone(sums)
	digit := byte('0')
	if sums[0] == digit {
		digit = '1'
	}
	sums[0] = digit
	return sums
}

// However an origin fails, clients get its name and the reason, operators find
// one line in the log and a metric, the origin is not asked again at once, and
// no unverified file gets into the tree.
func TestOriginFails(t *testing.T) {
	t.Parallel()
	acme, stranger := publisher(t, "acme"), publisher(t, "stranger")
	other := threePlatforms()[1]
	const (
		index    = "index.json"
		archives = "1.0.0.json"
	)
	zip := zipOfDemo("1.0.0", other)
	faults := map[string]struct {
		fault   Fault
		asked   string // the file requested from the mirror
		status  int
		says    string // part of the answer
		reason  string // in the metrics
		clients string // printed by clients; "": no client runs
	}{
		"down":      {hangUp, index, 502, "down.example.com: it is not available: the connection broke off", "unavailable", "502"},
		"slow":      {keepWaiting, index, 504, "slow.example.com: it takes too long", "timeout", "504"},
		"missing":   {onPaths(answers(404, ""), "/versions"), index, 404, "nor has its registry", "not_found", "was not found in any of the search locations"},
		"busy":      {answers(429, "60"), index, 502, "busy.example.com answered 429: it is not available: it has had too many requests", "unavailable", ""},
		"broken":    {answers(500, ""), index, 502, "broken.example.com answered 500", "unavailable", ""},
		"away":      {answers(503, "3600"), index, 502, "away.example.com answered 503", "unavailable", ""},
		"closed":    {answers(401, ""), index, 502, "closed.example.com answered 401: it refuses access: configure a token", "refused", ""},
		"babbling":  {onPaths(edited(func([]byte) []byte { return []byte("<html>") }), "/versions"), index, 502, "babbling.example.com: its answer is not usable", "malformed", ""},
		"sums":      {onPaths(edited(misquoted), "SHA256SUMS"), archives, 502, "sums.example.com: the signature does not verify", "bad_signature", ""},
		"signature": {onPaths(edited(flipped), ".sig"), archives, 502, "signature.example.com: the signature does not verify", "bad_signature", "502"},
		"unknown":   {nil, archives, 502, "unknown.example.com: the signature does not verify", "bad_signature", ""},
		"bytes":     {onPaths(edited(flipped), ".zip"), zip, 502, "bytes.example.com: the checksum does not match", "bad_checksum", "Error while installing bytes.example.com/acme/demo v1.0.0"},
		"cut":       {onPaths(cutOff(func() {}), ".zip"), zip, 502, "cut.example.com: it is not available: the package broke off", "unavailable", ""},
		"stalled":   {onPaths(keepWaiting, ".zip"), zip, 504, "stalled.example.com: it takes too long", "timeout", ""},
		"dangling":  {onPaths(answers(404, ""), ".zip"), zip, 502, "dangling.example.com answered 404: its answer is not usable: the origin links to a package that is not there", "malformed", ""},
	}
	patient, impatient := []string{}, []string{}
	for name, of := range faults {
		if of.status == http.StatusGatewayTimeout {
			impatient = append(impatient, name+".example.com")
		} else {
			patient = append(patient, name+".example.com")
		}
	}
	outside := newOutside(t, newTree(t).Provider("acme/demo", "1.0.0", signedBy(acme)).Keys("acme", acme))
	front := outside.Front(t, append(patient, impatient...)...)
	files := newTree(t).Keys("unknown.example.com/acme", stranger)
	s := mirrorOf(strings.Join(patient, " "), files)
	s.Options = append(s.Options, mirrorOf(strings.Join(impatient, " "), files, "timeout 1s").Options...)
	mirror := outside.StartMirror(t, s)
	before := files.files()

	for name, of := range faults {
		t.Run(name, func(t *testing.T) {
			hostname := name + ".example.com"
			front.Fails(hostname, of.fault)
			point := len(mirror.Log.Entries())
			for range 2 {
				got := mirror.Get(t, mirrored(hostname, of.asked))
				if got.Status != of.status || !strings.Contains(got.Body, of.says) {
					t.Errorf("%s: %d %s", of.asked, got.Status, got.Body)
				}
				if strings.Contains(got.Body, "internal") || strings.Contains(got.Body, "/v1/") || strings.Contains(got.Body, outside.Proxy.URL) {
					t.Errorf("it reveals internal details: %s", got.Body)
				}
			}
			asked := times(front.Asked(hostname, ""))
			if got := mirror.Get(t, mirrored(hostname, of.asked)); got.Status != of.status || times(front.Asked(hostname, "")) != asked {
				t.Errorf("the failure is not remembered: %d, the origin got the requests %v", got.Status, front.Asked(hostname, ""))
			}
			if counted := mirror.failures(t, hostname); !slices.Equal(counted, []string{of.reason}) {
				t.Errorf("the metrics have the reasons %v, want %s", counted, of.reason)
			}
			mirror.Log.waitAnswers(t, point, 3, mirrored(hostname, of.asked))
			lines := mirror.Log.Find(point, func(e Entry) bool {
				return (e.Level == "warn" || e.Level == "error") && !e.access() && strings.Contains(e.Line, hostname)
			})
			want := 1
			if of.status == http.StatusNotFound { // not a failure
				want = 0
			}
			if len(lines) != want {
				t.Errorf("the log has %d lines: %v", len(lines), lines)
			}
			if of.clients != "" {
				eachClient(t, func(t *testing.T, c Client) {
					ws := newWorkspace(t, mirror, greeting(hostname+"/acme/demo", "1.0.0"))
					ws.CLIConfig(t, viaMirror)
					expect(t, c.Refused(t, ws, "init"), of.clients)
				})
			}
			if unfinished := files.unfinished(); len(unfinished) > 0 {
				t.Errorf("left behind: %v", unfinished)
			}
		})
	}
	after := slices.DeleteFunc(files.files(), isRecord)
	if !slices.Equal(before, after) {
		t.Errorf("the tree has %v, before it had %v", after, before)
	}
}
