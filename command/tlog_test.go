package command

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"

	"github.com/caddy-terraform/caddy-terraform-registry/command/commandtest"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

const loggedRegistry = `{"handler":"terraform_registry","root":"/srv/open","public_url":"https://registry.example.com","tlog":{"folder":"/srv/free"}}`

// A loggedServer is a server with a log, whose commands a test runs.
type loggedServer struct {
	t     *testing.T
	file  string // its configuration
	roots string // the folder of the tree and of the log, open and free
}

// newLoggedServer returns a server that is not started yet, with a module in its tree.
func newLoggedServer(t *testing.T, hostname string) loggedServer {
	t.Helper()
	file := configFile(t, `{"handle":[`+strings.ReplaceAll(loggedRegistry, "registry.example.com", hostname)+`]}`)
	s := loggedServer{t, file, rootsOf(t, file)}
	indextest.OnDisk(t, s.roots+"/open").Write("modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", ""))
	return s
}

func (s loggedServer) run(args ...string) (string, error) {
	out, _, err := commandtest.Run(s.t.Context(), tlogCommand(), append(args, "--config", s.file)...)
	return out, err
}

// start starts the server, and waits until fsck says that all is well, and the log has begun.
func (s loggedServer) start(until string) {
	s.t.Helper()
	serve(s.t, s.file)
	eventually(s.t, func() (bool, string) {
		out, err := s.run("fsck")
		_, begun := os.Stat(s.roots + "/free/begun")
		return err == nil && begun == nil && out == until, fmt.Sprintf("fsck says %q, %v", out, err)
	})
}

// says runs a command, and returns what it prints and its error. But for keys, it fits a terminal.
func (s loggedServer) says(args ...string) string {
	s.t.Helper()
	out, err := s.run(args...)
	for line := range strings.Lines(out) {
		if !strings.Contains(line, "+") {
			commandtest.Fits(s.t, line)
		}
	}
	if err != nil {
		return out + err.Error()
	}
	return out
}

func TestTlogCommands(t *testing.T) {
	server := newLoggedServer(t, "registry.example.com")
	run, file, roots := server.run, server.file, server.roots
	for _, command := range []string{"key", "fsck"} {
		if out, err := run(command); commandtest.Status(err) != 1 || !strings.Contains(err.Error(), "the server begins it") {
			t.Errorf("%s before the first start: %q, %v", command, out, err)
		}
	}
	server.start("registry.example.com/v1/tlog has 1 entry, and all files agree.\n")
	out, err := run("key", "--root", roots+"/open/")
	if v, bad := note.NewVerifier(strings.TrimSpace(out)); err != nil || bad != nil || v.Name() != "registry.example.com/v1/tlog" {
		t.Errorf("the key is %q, %v, %v", out, err, bad)
	}

	check := func(more ...string) (string, error) {
		out, _, err := commandtest.Run(t.Context(), checkCommand(), append([]string{"--root", roots + "/open"}, more...)...)
		return out, err
	}
	indextest.OnDisk(t, roots+"/open").Write("modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", "# other"))
	if out, err := check(); err != nil {
		t.Errorf("without the configuration, check says %q, %v", out, err)
	}
	if out, err := check("--config", file); commandtest.Status(err) != 1 || !strings.Contains(out, "is on record with other bytes since") {
		t.Errorf("with the configuration, check says %q, %v", out, err)
	}
	indextest.OnDisk(t, roots+"/open").Write("modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", ""))
	if out, err := check("--config", file); err != nil {
		t.Errorf("with the first files, check says %q, %v", out, err)
	}

	batch := filepath.Join(roots, "free", "batch", "0")
	entry, err := os.ReadFile(batch)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(batch, []byte(strings.Replace(string(entry), " 1.0.0 ", " 1.0.1 ", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := run("fsck"); commandtest.Status(err) != 1 || !strings.Contains(out, "fault: the checkpoint has another root for 1 entries than the files\n") {
		t.Errorf("with another entry it says %q, %v", out, err)
	}
	if err := os.Remove(filepath.Join(roots, "free", "key")); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"key", "fsck"} {
		if out, err := run(command); commandtest.Status(err) != 1 || !strings.Contains(err.Error(), "no file key any more") {
			t.Errorf("%s of a folder without its key: %q, %v", command, out, err)
		}
	}
}

// The server makes the default folder of the log in its data directory. A command that is run with
// another data directory finds no folder, and must not make one.
func TestTlogInAnotherDataDirectory(t *testing.T) {
	server := newLoggedServer(t, "mislaid.example.com")
	content, err := os.ReadFile(server.file)
	if err != nil {
		t.Fatal(err)
	}
	content = []byte(strings.Replace(string(content), `"tlog":{"folder":"`+server.roots+`/free"}`, `"tlog":{}`, 1))
	if err := os.WriteFile(server.file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	one, other := t.TempDir(), t.TempDir()
	t.Setenv("XDG_DATA_HOME", other)
	if out, err := server.run("fsck"); commandtest.Status(err) != 1 || !strings.Contains(err.Error(), "the server begins it") {
		t.Errorf("fsck before the first start: %q, %v", out, err)
	}
	if out, err := server.run("rotate"); commandtest.Status(err) != 1 || !strings.Contains(err.Error(), "the server begins it") {
		t.Errorf("rotate before the first start: %q, %v", out, err)
	}
	t.Setenv("XDG_DATA_HOME", one)
	serve(t, server.file)
	eventually(t, func() (bool, string) {
		out, err := server.run("fsck")
		return err == nil && strings.Contains(out, " has 1 entry, and all files agree."), fmt.Sprintf("fsck says %q, %v", out, err)
	})
	folders, err := filepath.Glob(one + "/caddy/terraform_registry/tlog/*")
	if err != nil || len(folders) != 1 {
		t.Fatalf("the log lies in %v, %v", folders, err)
	}
	copied := filepath.Join(t.TempDir(), "log")
	if err := os.CopyFS(copied, os.DirFS(folders[0])); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_DATA_HOME", other)
	const missing = "does not exist: run the command as the user of the server, and with its HOME and XDG_DATA_HOME; if the folder is lost, make it"
	for _, args := range [][]string{{"key"}, {"key", "--new"}, {"fsck"}, {"restore", copied}, {"new"}, {"rotate"}} {
		if out, err := server.run(args...); commandtest.Status(err) != 1 || !strings.Contains(err.Error(), missing) {
			t.Errorf("%v with another data directory: %q, %v", args, out, err)
		}
	}
	out, _, err := commandtest.Run(t.Context(), checkCommand(), "--root", server.roots+"/open", "--config", server.file)
	if commandtest.Status(err) != 1 || !strings.Contains(err.Error(), missing) {
		t.Errorf("check with another data directory: %q, %v", out, err)
	}
	// The storage, too, may lie in the data directory, so that it has no checkpoint. A running
	// server would store one again.
	stop(t)
	if err := os.RemoveAll(server.roots + "/terraform_registry/tlog"); err != nil {
		t.Fatal(err)
	}
	if out, err := server.run("restore", copied); commandtest.Status(err) != 1 || !strings.Contains(err.Error(), missing) {
		t.Errorf("restore with another data directory and storage: %q, %v", out, err)
	}
	if made, err := filepath.Glob(other + "/caddy/terraform_registry/tlog"); err != nil || made != nil {
		t.Errorf("a command has made %v, %v", made, err)
	}
}

func TestTlogMistakes(t *testing.T) {
	several := strings.NewReplacer("/srv/free", "/srv/named", "/srv/open", "/srv/ruled", "registry.example.com", "other.example.com").Replace(loggedRegistry)
	for _, test := range []struct {
		rule, routes string
		args         []string
		says         string
	}{
		{"an unknown command", loggedRegistry, []string{"begin"}, "there are key, rotate, fsck, restore and new"},
		{"no copy", loggedRegistry, []string{"restore"}, "name the copy of the log's folder"},
		{"an argument", loggedRegistry, []string{"fsck", "/srv/log"}, "the configuration says where the log lies"},
		{"no log", openRegistry, []string{"key"}, "has no transparency log"},
		{"several logs", loggedRegistry + "," + several, []string{"key"}, "name the root of the registry with --root"},
		{"no such root", loggedRegistry, []string{"key", "--root", "/elsewhere"}, "no registry with the root /elsewhere"},
	} {
		file := configFile(t, `{"handle":[`+test.routes+`]}`)
		args := test.args
		if args[0] != "begin" {
			args = append(args, "--config", file)
		}
		out, _, err := commandtest.Run(t.Context(), tlogCommand(), args...)
		if out != "" || err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %q, %v", test.rule, out, err)
		}
	}
}
