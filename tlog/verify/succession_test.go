package verify_test

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"
	sumdb "golang.org/x/mod/sumdb/tlog"

	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog/tlogtest"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog/verify"
)

// A log in the place of the one that was seen is never taken for it. If it was begun in its place,
// by the newest checkpoint, the user is told so, and accepts it or not.
func TestALogThatContinuesTheOneThatWasSeen(t *testing.T) {
	sign := func(t *testing.T, signer note.Signer, size int64, root sumdb.Hash) []byte {
		t.Helper()
		signed, err := tlog.Checkpoint{Origin: tlogtest.Origin, Size: size, Root: root}.Sign(signer)
		if err != nil {
			t.Fatal(err)
		}
		return signed
	}
	for _, test := range []struct {
		rule      string
		continues func(t *testing.T, r *registry) []byte
		accepted  bool
	}{
		{"the checkpoint that was seen", func(t *testing.T, r *registry) []byte { return r.log.Head().Signed }, true},
		{"a later one", func(t *testing.T, r *registry) []byte {
			return sign(t, r.storage.Options().Signers[0], 900, sumdb.Hash{1})
		}, true},
		{"an older one", func(t *testing.T, r *registry) []byte {
			return sign(t, r.storage.Options().Signers[0], 1, sumdb.Hash{1})
		}, false},
		{"another root", func(t *testing.T, r *registry) []byte {
			return sign(t, r.storage.Options().Signers[0], r.log.Head().Size, sumdb.Hash{1})
		}, false},
		{"one by another key", func(t *testing.T, r *registry) []byte {
			signer, _ := tlogtest.NewSigner(t, tlogtest.Origin)
			return sign(t, signer, 900, sumdb.Hash{1})
		}, false},
		{"none", func(*testing.T, *registry) []byte { return nil }, false},
	} {
		t.Run(test.rule, func(t *testing.T) {
			r := full(t)
			m := installed(t, r)
			says(t, m.verify(), demo+" 1.2.0 ok", vpc+" 1.0.0 ok")
			next := tlogtest.NewScripted(t, "registry.example.com/v1/tlog-2")
			if signed := test.continues(t, r); signed != nil {
				s, err := tlog.NewSuccession(signed)
				m.must(err)
				next.Entries = []string{s.String()}
			}
			next.Add("offered 2026-01-01T00:00:00Z module acme/other/any 1.0.0 h1:%s= zh:%064x", strings.Repeat("A", 43), 1)
			m.servers[host] = next
			for _, update := range []bool{false, true} {
				report := m.verify(func(o *verify.Options) { o.Update = update })
				alarms := report.Alarms()
				kept, err := os.ReadFile(m.path(verify.PinsName))
				m.must(err)
				old, new := strings.Contains(string(kept), "\nkey registry.example.com/v1/tlog+"), strings.Contains(string(kept), "\nkey registry.example.com/v1/tlog-2+")
				if update && test.accepted {
					if len(alarms) > 0 || old || !new || len(report.Logs) != 1 || strings.Join(report.Logs[0].Before, " ") != tlogtest.Origin {
						t.Errorf("with --update, the logs are %+v, and the file is %s", report.Logs, kept)
					}
					if again := m.verify(); len(again.Alarms()) > 0 {
						t.Errorf("afterwards the alarms are %+v", again.Alarms())
					}
					continue
				}
				if len(alarms) != 1 || alarms[0].Kind != verify.Renamed || !old || new {
					t.Fatalf("the logs are %+v, and the file is %s", report.Logs, kept)
				}
				if told := strings.Contains(alarms[0].Detail, ", which was begun in its place after "); told != test.accepted {
					t.Errorf("it says %s", alarms[0].Detail)
				}
			}
		})
	}
}
