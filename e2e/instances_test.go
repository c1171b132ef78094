package e2e_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// Three instances with one folder and one storage make up one registry. Behind Caddy's
// reverse_proxy, as in docs/scale.md, clients notice neither a publication nor the end
// and the restart of an instance, but for an answer that it was sending when it was killed.
func TestInstancesBehindAProxy(t *testing.T) {
	t.Parallel()
	tokens := newTokens(t)
	ci := tokens.New("ci")
	files := newTree(t).Provider("acme/demo", "1.0.0").Module("acme/vpc/aws", "1.0.0", asTarGz)
	const host = "registry.example.com"
	s := site(host, files, publishing(tokens)...)
	one := startRegistry(t, s)
	one.Settle(t)
	instances := []*Registry{one, startBeside(t, one, s), startBeside(t, one, s)}
	for i, r := range instances[1:] {
		if read := r.firstScan(t).number("read"); read != 0 {
			t.Errorf("instance %d reads %d archives that the first has read", i+2, read)
		}
	}

	var upstreams []string
	for _, r := range instances {
		upstreams = append(upstreams, "unix/"+r.https.address)
	}
	proxy := startRegistry(t, Site{Address: host, Directives: []string{
		"reverse_proxy " + strings.Join(upstreams, " ") + " {",
		"lb_try_duration 10s",
		"lb_try_interval 50ms",
		"fail_duration 2s",
		"header_up Host " + host,
		"health_uri /v1/ready",
		"health_interval 200ms",
		"health_headers {", "Host " + host, "}",
		"transport http {", "network_proxy none", "tls", "tls_server_name " + host, "tls_trust_pool file " + one.CA, "}",
		"}",
	}})

	vpc := "https://" + host + "/v1/modules/acme/vpc/aws/"
	urls := []string{versionsOfDemo, vpc + "versions", vpc + "1.0.0/archive.tar.gz"}
	var stop, dying atomic.Bool
	var answered atomic.Int64
	var clients sync.WaitGroup
	for n := range 4 {
		clients.Go(func() {
			client, err := proxy.client()
			if err != nil {
				t.Error(err)
				return
			}
			defer client.CloseIdleConnections()
			broken := false
			for i := n; !stop.Load(); i++ {
				answer, err := fetch(client, urls[i%len(urls)])
				if dying.Load() && !broken && errors.Is(err, io.ErrUnexpectedEOF) {
					broken = true // the instance had begun to answer, and no other instance can go on with its answer
					continue
				}
				if err != nil || answer.Status != http.StatusOK {
					t.Errorf("%s: %d %v", urls[i%len(urls)], answer.Status, err)
					return
				}
				answered.Add(1)
			}
		})
	}
	defer clients.Wait()
	defer stop.Store(true)
	goOn := func(what string) {
		t.Helper()
		from := answered.Load()
		eventually(t, "clients are answered "+what, func() bool { return answered.Load() >= from+50 || t.Failed() })
	}
	goOn("by three instances")

	publish := func(version string) {
		t.Helper()
		file := filepath.Join(t.TempDir(), version)
		asTarGz(t, file, moduleFiles("acme/vpc/aws", version))
		content, err := os.ReadFile(file + ".tar.gz")
		if err != nil {
			t.Fatal(err)
		}
		answer := one.sender(t, ci).put(t, "modules/acme/vpc/aws/"+version+".tar.gz", string(content))
		answer.is(t, http.StatusCreated, "published")
	}
	everywhere := func(version string) {
		t.Helper()
		published := time.Now()
		for i, r := range instances {
			eventually(t, fmt.Sprintf("instance %d lists %s", i+1, version), func() bool { return r.lists(t, vpc+"versions", version) })
		}
		t.Logf("%s is listed by all instances after %s", version, time.Since(published).Round(time.Millisecond))
	}
	publish("1.1.0")
	everywhere("1.1.0")

	third := instances[2]
	dying.Store(true)
	if err := third.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-third.ended
	goOn("while one instance is dead")
	dying.Store(false)
	publish("1.2.0")
	third.start(t, []Site{s})
	everywhere("1.2.0")
	goOn("once it is back")
	t.Logf("%d requests were answered", answered.Load())
}
