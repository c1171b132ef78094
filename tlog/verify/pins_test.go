package verify_test

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"

	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
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
		{"cut off", string(content), "\n", "it is empty"},
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

// Whoever writes the file leaves what others have written to it since it was read. Folders may
// share the file by links.
func TestUpdatePins(t *testing.T) {
	signers, keys := make(map[string]note.Signer), make(map[string]string)
	pin := func(origin string, size int64, hosts ...string) verify.Pin {
		if signers[origin] == nil {
			signers[origin], keys[origin] = tlogtest.NewSigner(t, origin)
		}
		c := tlog.Checkpoint{Origin: origin, Size: size}
		signed, err := c.Sign(signers[origin])
		if err != nil {
			t.Fatal(err)
		}
		return verify.Pin{URL: "https://" + origin + "/", Hosts: hosts, Keys: []string{keys[origin]}, Signed: signed, Checkpoint: c}
	}
	old, newer, elsewhere := pin("one", 1, "a"), pin("one", 2, "a"), pin("other", 1, "b")
	for _, test := range []struct {
		rule                     string
		before, now, after, want []verify.Pin
	}{
		{"there was no file", nil, nil, []verify.Pin{old}, []verify.Pin{old}},
		{"another log was kept meanwhile", nil, []verify.Pin{elsewhere}, []verify.Pin{old}, []verify.Pin{elsewhere, old}},
		{"another log was updated meanwhile", []verify.Pin{elsewhere, old}, []verify.Pin{elsewhere, newer}, []verify.Pin{old}, []verify.Pin{newer}},
		{"an update", []verify.Pin{old, elsewhere}, []verify.Pin{old, elsewhere}, []verify.Pin{newer, elsewhere}, []verify.Pin{elsewhere, newer}},
		{"the log was kept meanwhile", nil, []verify.Pin{newer}, []verify.Pin{old}, []verify.Pin{newer}},
		{"another host", []verify.Pin{pin("one", 1, "a")}, []verify.Pin{pin("one", 1, "a", "b")}, []verify.Pin{pin("one", 1, "a", "c")}, []verify.Pin{pin("one", 1, "a", "b", "c")}},
	} {
		// The file may be shared by symbolic links, also before it is there.
		dir := t.TempDir()
		file, name := filepath.Join(dir, "file"), filepath.Join(dir, "link")
		if err := os.Symlink("file", name); err != nil {
			t.Fatal(err)
		}
		if test.now != nil {
			if err := verify.WritePins(file, slices.Clone(test.now)); err != nil {
				t.Fatal(err)
			}
		}
		if err := verify.UpdatePins(name, test.before, test.after); err != nil {
			t.Errorf("%s: %v", test.rule, err)
			continue
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want := file + ".want"
		if err := verify.WritePins(want, test.want); err != nil {
			t.Fatal(err)
		}
		if wanted, err := os.ReadFile(want); err != nil || string(got) != string(wanted) {
			t.Errorf("%s: the file has\n%s\nwant\n%s", test.rule, got, wanted)
		}
		if info, err := os.Stat(file); err != nil || runtime.GOOS != "windows" && info.Mode() != 0o644 { // it is for all who use the repository
			t.Errorf("%s: its mode is %v, %v", test.rule, info, err)
		}
	}
}
