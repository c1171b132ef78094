package load_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/bench/internal/load"
	"github.com/caddy-terraform/caddy-terraform-registry/bench/internal/server"
)

func TestFleet(t *testing.T) {
	body := []byte(strings.Repeat("0123456789", 30_000))
	secure, ca := startTLS(t, answering(body))
	for _, protocol := range []load.Protocol{load.HTTPS, load.H2} {
		for _, c := range []struct {
			name, fails string
			change      func(*load.Request)
		}{
			{"right", "", func(*load.Request) {}},
			{"another status", "404", func(r *load.Request) { r.Path = "/wrong" }},
			{"another length", "want 300001", func(r *load.Request) { r.Length++ }},
			{"another body", "sha256", func(r *load.Request) { r.SHA256 = load.Digest(nil) }},
			{"a body that changes", "sha256", func(r *load.Request) { r.Path = "/changing" }},
		} {
			right := load.Request{Path: "/right", Length: int64(len(body)), SHA256: load.Digest(body)}
			j := load.Job{
				Protocol: protocol, Address: secure.Listener.Addr().String(), Host: server.Host, CA: ca,
				Connections: 3, Requests: []load.Request{right, right},
			}
			c.change(&j.Requests[1])
			r := work(t, j)
			switch {
			case c.fails == "" && (r.Error != "" || r.Answers != 6 || r.Bytes != 6*int64(len(body))):
				t.Errorf("%s, %s: %+v", protocol, c.name, r)
			case !strings.Contains(r.Error, c.fails):
				t.Errorf("%s, %s: the error is %q, want %q in it", protocol, c.name, r.Error, c.fails)
			}
		}
	}
}

// No client of a fleet is answered before all of them have asked.
func TestFleetIsThereAtOnce(t *testing.T) {
	const clients = 5
	waiting, all := make(chan struct{}, clients), make(chan struct{})
	site := http.NewServeMux()
	site.HandleFunc("/together", func(http.ResponseWriter, *http.Request) {
		waiting <- struct{}{}
		<-all
	})
	secure, ca := startTLS(t, site)
	go func() {
		<-waiting
		all <- struct{}{} // the first, who compares what it gets
		for range clients {
			<-waiting
		}
		close(all)
	}()
	r := work(t, load.Job{
		Protocol: load.HTTPS, Address: secure.Listener.Addr().String(), Host: server.Host, CA: ca,
		Connections: clients, Requests: []load.Request{{Path: "/together", SHA256: load.Digest(nil)}}, Duration: time.Minute,
	})
	if r.Error != "" || r.Answers != clients {
		t.Errorf("%+v", r)
	}
}
