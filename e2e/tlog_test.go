package e2e_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/mod/sumdb/note"
	sumdb "golang.org/x/mod/sumdb/tlog"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// A checkpoint as kept by a verifier of the log of registry.example.com.
type checkpoint struct {
	size int64
	root sumdb.Hash
}

// openCheckpoint checks the signature of a checkpoint.
func openCheckpoint(t *testing.T, text, public string) (c checkpoint) {
	t.Helper()
	v, err := note.NewVerifier(strings.TrimSpace(public))
	if err != nil {
		t.Fatal(err)
	}
	n, err := note.Open([]byte(text), note.VerifierList(v))
	if err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	lines := strings.Split(n.Text, "\n")
	if c.size, err = strconv.ParseInt(lines[1], 10, 64); err != nil {
		t.Fatal(err)
	}
	if c.root, err = sumdb.ParseHash(lines[2]); err != nil {
		t.Fatal(err)
	}
	return c
}

func parseHashes(t *testing.T, lines []string) (hashes []sumdb.Hash) {
	t.Helper()
	for _, line := range lines {
		h, err := sumdb.ParseHash(line)
		if err != nil {
			t.Fatal(err)
		}
		hashes = append(hashes, h)
	}
	return hashes
}

const tlogURL = "https://registry.example.com/v1/tlog/"

// lookUp waits until a module with this archive is on record, checks the proof, and returns
// the checkpoint.
func (r *Registry) lookUp(t *testing.T, version, archive, public string) checkpoint {
	t.Helper()
	var answer Response
	eventually(t, version+" is on record", func() bool {
		answer = r.Get(t, tlogURL+"lookup/modules/acme/vpc/aws/"+version)
		return answer.Status == http.StatusOK
	})
	parts := strings.SplitN(answer.Body, "\n\n", 3)
	c := openCheckpoint(t, parts[2], public)
	lines := strings.Split(parts[1], "\n")
	index, err := strconv.ParseInt(strings.TrimPrefix(lines[1], "index "), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	if err := sumdb.CheckRecord(parseHashes(t, lines[2:]), c.size, c.root, index, sumdb.RecordHash([]byte(parts[0]))); err != nil {
		t.Error(err)
	}
	sum := sha256.Sum256([]byte(archive))
	if !strings.Contains(parts[0], " module acme/vpc/aws "+version+" h1:") || !strings.Contains(parts[0], " zh:"+hex.EncodeToString(sum[:])+" ") {
		t.Errorf("%s has the entry %s", version, parts[0])
	}
	return c
}

// follows checks that the log of an instance begins with a checkpoint, and returns its own.
func (r *Registry) follows(t *testing.T, c checkpoint, public string) checkpoint {
	t.Helper()
	answer := r.Get(t, fmt.Sprint(tlogURL, "consistency?from=", c.size))
	proof, signed, _ := strings.Cut("\n"+answer.Body, "\n\n")
	now := openCheckpoint(t, signed, public)
	if now.size == c.size {
		if now.root != c.root {
			t.Errorf("%d entries have two roots", c.size)
		}
		return now
	}
	if err := sumdb.CheckTree(parseHashes(t, strings.Fields(proof)), now.size, now.root, c.size, c.root); err != nil {
		t.Errorf("%d entries after %d: %v", now.size, c.size, err)
	}
	return now
}

// A version published at any of two instances is on record at both, in one log, also when one
// of them is killed.
func TestTransparencyLog(t *testing.T) {
	t.Parallel()
	tokens := newTokens(t)
	ci, log := tokens.New("ci"), t.TempDir()
	s := site("registry.example.com", newTree(t),
		"publish", "auth terraform_tokens "+tokens.File, "access {\n\tallow anonymous read *\n\tallow ci publish acme\n}", "tlog "+log)
	one := startRegistry(t, s)
	two := startBeside(t, one, s)
	instances := []*Registry{one, two}
	put := func(r *Registry, version string) (archive string) {
		t.Helper()
		archive = indextest.TarGz("main.tf", "# "+version)
		client, err := r.client()
		if err != nil {
			t.Fatal(err)
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "https://registry.example.com/v1/modules/acme/vpc/aws/"+version+".tar.gz", strings.NewReader(archive))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+ci)
		answer, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusCreated {
			t.Fatalf("%s is answered with %d", version, answer.StatusCode)
		}
		return archive
	}
	binary, err := caddyBinary()
	if err != nil {
		t.Fatal(err)
	}
	command := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(binary, append([]string{"terraform-registry", "tlog"}, append(args, "--config", one.path("Caddyfile"))...)...)
		cmd.Dir, cmd.Env = one.dir, one.cmd.Env
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Errorf("tlog %v: %v\n%s%s", args, err, out, stderr.String())
		}
		return string(out)
	}

	archives := map[string]string{"1.0.0": put(one, "1.0.0")}
	eventually(t, "the log can be read", func() bool { return one.Get(t, tlogURL+"key").Status == http.StatusOK })
	public := command("key")
	if served := one.Get(t, tlogURL+"key").Body; served != public {
		t.Errorf("the key is %q, and %q is served", public, served)
	}
	first := one.lookUp(t, "1.0.0", archives["1.0.0"], public)
	for n := range 6 {
		version := fmt.Sprintf("1.%d.0", n+1)
		archives[version] = put(instances[n%2], version)
	}
	for version, archive := range archives {
		for _, r := range instances {
			r.lookUp(t, version, archive, public)
		}
	}
	last := two.follows(t, first, public)

	archives["2.0.0"] = put(one, "2.0.0")
	if err := one.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-one.ended
	archives["2.1.0"] = put(two, "2.1.0")
	one.start(t, []Site{s})
	for version, archive := range archives {
		for _, r := range instances {
			r.lookUp(t, version, archive, public)
		}
	}
	for _, r := range instances {
		if now := r.follows(t, last, public); now.size != int64(len(archives)) {
			t.Errorf("the log has %d entries of %d versions", now.size, len(archives))
		}
	}
	if says := command("fsck"); !strings.Contains(says, fmt.Sprintf("has %d entries, and all files agree", len(archives))) {
		t.Errorf("fsck says %s", says)
	}
}
