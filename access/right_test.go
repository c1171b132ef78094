package access_test

import (
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
)

func TestParseRight(t *testing.T) {
	for _, right := range []access.Right{access.Read, access.Publish} {
		if got, err := access.ParseRight(right.String()); err != nil || got != right {
			t.Errorf("%v read again is %v, %v", right, got, err)
		}
	}
	for _, word := range []string{"", "READ", "Publish", "write", "pull", "read,publish", " read", "*", access.Right(2).String()} {
		_, err := access.ParseRight(word)
		if err == nil {
			t.Errorf("%q is a right", word)
		} else if !strings.HasSuffix(err.Error(), "use read or publish") {
			t.Errorf("%q: %v", word, err)
		}
	}
	if got := access.Right(-1).String(); got != "Right(-1)" {
		t.Errorf("what is no right is printed as %q", got)
	}
}
