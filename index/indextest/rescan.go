package indextest

import (
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

// Rescan scans the whole tree of an index, and waits until the titles of all documentation
// have been read, too: they are read in the background.
func Rescan(t testing.TB, x *index.Index) *index.Snapshot {
	t.Helper()
	s, err := x.Rescan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for !titled(s) {
		if s = x.Next(t.Context(), s); s == nil {
			t.Fatal("titles of documentation are not read")
		}
	}
	return s
}

func titled(s *index.Snapshot) bool {
	for p := range s.Providers() {
		if p.Latest().Docs() != "" && len(p.DocTitles()) == 0 {
			return false
		}
	}
	return true
}
