package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-terraform/caddy-terraform-registry/command/commandtest"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// The folder of a log is lost, and another log is begun. The server goes on with it.
func TestTlogNew(t *testing.T) {
	file := configFile(t, `{"handle":[`+strings.ReplaceAll(loggedRegistry, "registry.example.com", "renewed.example.com")+`]}`)
	roots := rootsOf(t, file)
	run := func(args ...string) string {
		out, _, err := commandtest.Run(t.Context(), tlogCommand(), append(args, "--config", file)...)
		for _, line := range strings.Split(out, "\n") {
			if len(line) > 80 && !strings.HasPrefix(line, "    ") {
				t.Errorf("the line %q is long", line)
			}
		}
		if err != nil {
			return out + err.Error()
		}
		return out
	}
	if says := run("new"); !strings.Contains(says, "there is no log to continue, and the server begins one") {
		t.Errorf("before the first start it says %q", says)
	}
	indextest.OnDisk(t, roots+"/open").Write("modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", ""))
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	serve := func(until string) {
		t.Helper()
		if err := caddy.Load(content, true); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
			says := run("fsck")
			if says == until {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("fsck says %q", says)
			}
		}
		if err := caddy.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	serve("renewed.example.com/v1/tlog has 1 entries, and all files agree.\n")
	if says := run("new"); !strings.Contains(says, "the folder has a log: move its files to another place, and keep them") {
		t.Errorf("while the folder has the log, it says %q", says)
	}
	names, err := filepath.Glob(roots + "/free/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := os.RemoveAll(name); err != nil {
			t.Fatal(err)
		}
	}
	says := run("new")
	if !strings.Contains(strings.Join(strings.Fields(says), " "), "Begun: renewed.example.com/v1/tlog-2, which continues renewed.example.com/v1/tlog after 1 entries. Its key, for those who verify it: renewed.example.com/v1/tlog-2+") || !strings.HasSuffix(says, "\nRestart the server.\n") {
		t.Errorf("it says %q", says)
	}
	serve("renewed.example.com/v1/tlog-2 has 2 entries, and all files agree.\n")
}
