package e2e_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// Downloads are counted as the access log has them: by two instances with one storage, while one
// of them is reloaded, and after a restart. An instance that is killed loses at most what it has
// counted in the last minute.
func TestUsageAgainstTheAccessLog(t *testing.T) {
	t.Parallel()
	_, err := exec.LookPath("curl")
	require(t, err)
	const requests = 800 // of each instance
	const host = "registry.example.com"
	files := newTree(t).Provider("acme/demo", "1.0.0").Module("acme/vpc/aws", "1.0.0", asTarGz).Module("acme/vpc/aws", "1.1.0", asTarGz)
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
				proxy, err := url.Parse(r.Proxy.URL) // which knows the socket after a reload
				if err != nil {
					t.Error(err)
					return
				}
				transport := client.Transport.(*http.Transport)
				transport.DialContext, transport.Proxy = nil, http.ProxyURL(proxy)
				for i := range n / 4 {
					// A connection to a server that is replaced may be closed unanswered.
					if answer, err := fetch(client, urls[(k+i)%len(urls)]); err == nil && answer.Status >= 300 {
						t.Errorf("got %d", answer.Status)
					}
					asked.Add(1)
				}
			})
		}
		clients.Wait()
	}
	countedOf := func(r *Registry, what string) (n int) {
		var u struct{ Downloads int }
		answer := r.Get(t, base+what+"/usage")
		if err := json.Unmarshal([]byte(answer.Body), &u); err != nil && answer.Status == http.StatusOK {
			t.Fatalf("%s: %v", answer.Body, err)
		}
		return u.Downloads
	}
	counted := func(r *Registry) int {
		return countedOf(r, "modules/acme/vpc/aws") + countedOf(r, "providers/acme/demo")
	}
	logged := func(r *Registry) (n int) {
		for _, e := range r.Log.Accesses(host) {
			isPackage := strings.Contains(e.Request.URI, "/archive.") || strings.HasSuffix(e.Request.URI, ".zip")
			whole := e.Status == http.StatusOK || e.Status == http.StatusPartialContent && slices.Equal(e.Request.Headers["Range"], []string{"bytes=0-"}) // #119
			if whole && e.Request.Method == http.MethodGet && isPackage {
				n++
			}
		}
		return n
	}

	var both, reloaded sync.WaitGroup
	both.Go(func() { load(two, requests) })
	reloaded.Go(func() { load(one, requests) })
	for range 3 {
		one.Reload(t, s)
	}
	reloaded.Wait()
	both.Wait()
	eachClient(t, func(t *testing.T, c Client) {
		c.Run(t, newWorkspace(t, one, calling(host+"/acme/vpc/aws", "1.1.0")), "init")
		c.Run(t, newWorkspace(t, two, greeting(host+"/acme/demo", "1.0.0")), "init")
	})
	ws := newWorkspace(t, one, "")
	for _, args := range [][]string{{}, {"--head"}, {"--range", "0-9"}, {"--compressed"}} { // two downloads
		cmd := exec.CommandContext(beforeDeadline(t), "curl", append(args, "-sSf", "-o", "/dev/null", urls[0])...)
		cmd.Env = ws.env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %v %s", cmd.Args, err, out)
		}
		asked.Add(1)
	}
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
