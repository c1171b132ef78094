package command

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
)

// A server that runs signs with the new key within seconds.
func TestTlogRotate(t *testing.T) {
	server := newLoggedServer(t, "rotated.example.com")
	run := server.says
	if says := run("rotate"); !strings.Contains(says, "there is no log yet: the server begins it") {
		t.Errorf("before the first start it says %q", says)
	}
	server.start("rotated.example.com/v1/tlog has 1 entry, and all files agree.\n")
	first := run("key")
	says := run("rotate")
	keys := run("key")
	next, rest, _ := strings.Cut(keys, "\n")
	until := time.Now().UTC().AddDate(0, 0, 400).Format(time.DateOnly)
	want := "The log is signed by a new key. Tell it to those who verify the log:\n    " + next + "\nUntil " + until + ", it is signed by this key as well:\n    " + first
	if says != want || rest != first {
		t.Errorf("it says %q, want %q; then the keys are %q", says, want, keys)
	}
	eventually(t, func() (bool, string) {
		signed, err := os.ReadFile(server.roots + "/free/checkpoint")
		return err == nil && strings.Count(string(signed), "\n— rotated.example.com/v1/tlog ") == 2, fmt.Sprintf("the server signs %q, %v", signed, err)
	})
	if says := run("fsck"); says != "rotated.example.com/v1/tlog has 1 entry, and all files agree.\n" {
		t.Errorf("fsck says %q", says)
	}
	if private := strings.TrimSpace(run("key", "--new")); !strings.HasPrefix(private, "PRIVATE+KEY+rotated.example.com/v1/tlog+") {
		t.Errorf("a new key is %q", private)
	} else if _, err := tlog.ReadKey(private); err != nil {
		t.Error(err)
	}
}
