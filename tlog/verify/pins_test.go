package verify_test

import (
	"os"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/tlog/tlogtest"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog/verify"
)

// The file is read as it was written, also on systems with other ends of lines. A checkpoint
// that is changed in it is refused.
func TestPins(t *testing.T) {
	r := full(t)
	m := installed(t, r)
	m.verify()
	name := m.path(verify.PinsName)
	content, err := os.ReadFile(name)
	m.must(err)
	_, other := tlogtest.NewSigner(t, tlogtest.Origin)
	for _, test := range []struct{ rule, from, to, want string }{
		{"other ends of lines", "\n", "\r\n", ""},
		{"no comment", "# Commit", "# commit", ""},
		{"another size", "\n4\n", "\n5\n", "restore it from the repository"},
		{"another key", r.storage.Public, other, "restore it from the repository"},
		{"no key", "key ", "yek ", "is not log URL, host NAME or key KEY"},
		{"no URL", "https://", "", "is no URL of a log"},
		{"no signature", "\n\n— ", "\n— ", "a checkpoint or its signature is not there"},
		{"two of one log", "", string(content[strings.Index(string(content), "\nlog ")+1:]) + "\n", "it has two checkpoints of"},
	} {
		changed := strings.ReplaceAll(string(content), test.from, test.to)
		if test.from == "" {
			changed = test.to + string(content)
		}
		m.must(os.WriteFile(name, []byte(changed), 0o644))
		pins, err := verify.ReadPins(name)
		switch {
		case test.want == "" && (err != nil || len(pins) != 1):
			t.Errorf("%s: %v", test.rule, err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: %v", test.rule, err)
		}
	}
}
