package e2e_test

import (
	"encoding/json"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// Downloads are counted as the access log has them: by two instances with one storage, through
// reloads and a restart. An instance that is killed loses at most what it has counted in the last
// minute.
func TestUsageAgainstTheAccessLog(t *testing.T) {
	t.Parallel()
	const downloads = 4000
	files := newTree(t).Provider("acme/demo", "1.0.0").Module("acme/vpc/aws", "1.0.0", asTarGz).Module("acme/vpc/aws", "1.1.0", asTarGz)
	const host = "registry.example.com"
	s := site(host, files, "usage")
	one := startRegistry(t, s)
	one.Settle(t)
	two := startBeside(t, one, s)

	const base = "https://" + host + "/v1/"
	urls := []string{
		base + "modules/acme/vpc/aws/1.0.0/archive.tar.gz", base + "modules/acme/vpc/aws/1.1.0/archive.tar.gz",
		base + "modules/acme/vpc/aws/versions", base + "modules/acme/vpc/aws/1.0.0/download", // which are no downloads
	}
	var asked atomic.Int64
	load := func(r *Registry, n int) {
		var clients sync.WaitGroup
		for k := range 4 {
			clients.Go(func() {
				client, err := r.client()
				if err != nil {
					t.Error(err)
					return
				}
				defer client.CloseIdleConnections()
				for i := range n / 4 {
					// A connection to a server that is replaced or killed may be closed unanswered.
					if answer, err := fetch(client, urls[(k+i)%len(urls)]); err == nil && answer.Status >= 300 {
						t.Errorf("got %d", answer.Status)
					}
					asked.Add(1)
				}
			})
		}
		clients.Wait()
	}
	counted := func(r *Registry) (n int) {
		var u struct{ Downloads int }
		answer := r.Get(t, base+"modules/acme/vpc/aws/usage")
		if err := json.Unmarshal([]byte(answer.Body), &u); err != nil || answer.Status != http.StatusOK {
			t.Fatalf("%d %s: %v", answer.Status, answer.Body, err)
		}
		return u.Downloads
	}
	logged := func(r *Registry) (n int) {
		for _, e := range r.Log.Accesses(host) {
			if e.Status == http.StatusOK && e.Request.Method == http.MethodGet && strings.Contains(e.Request.URI, "/archive.") {
				n++
			}
		}
		return n
	}

	var both sync.WaitGroup
	both.Go(func() { load(two, downloads) })
	for range 4 {
		load(one, downloads/4)
		one.Reload(t, s)
	}
	both.Wait()
	eachClient(t, func(t *testing.T, c Client) {
		c.Run(t, newWorkspace(t, one, calling(host+"/acme/vpc/aws", "1.1.0")), "init")
	})
	one.Stop(t)
	two.Stop(t)
	want := logged(one) + logged(two)
	three := startBeside(t, one, s)
	got := 0
	eventually(t, "an instance that has just begun has all counts", func() bool { got = counted(three); return got >= want })
	if got != want {
		t.Errorf("counted %d, the log has %d", got, want)
	}

	const lost = 200 // at most: half of the requests are downloads
	load(three, 2*lost)
	before := counted(three)
	if err := three.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-three.ended
	four := startBeside(t, one, s)
	eventually(t, "the instance after the one that was killed has the counts", func() bool { got = counted(four); return got >= want })
	if got > before || got < before-lost {
		t.Errorf("counted %d of %d, of which %d were new", got, before, lost)
	}
	t.Logf("%d requests, %d downloads, %d of %d lost by a kill", asked.Load(), want, before-got, lost)

	cmd := exec.Command(four.cmd.Path, "terraform-registry", "usage", "--address", "unix/"+four.path("admin.sock"))
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "acme/vpc/aws  1.1.0") || !strings.Contains(string(out), ", in "+files.Dir) {
		t.Errorf("%v: %s", err, out)
	}
}
