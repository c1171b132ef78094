package e2e_test

import (
	"errors"
	"net/http"
	"os"
	"slices"
	"sync"
	"testing"
)

// A gate makes requests wait until it is opened.
type gate struct {
	open   func()
	opened chan struct{}
}

// newGate returns a closed gate, which is opened at the end of the test at the
// latest.
func newGate(t *testing.T) gate {
	opened := make(chan struct{})
	g := gate{sync.OnceFunc(func() { close(opened) }), opened}
	t.Cleanup(g.open)
	return g
}

func (g gate) wait() { <-g.opened }

// before makes requests wait before the origin answers them.
func (g gate) before(w http.ResponseWriter, r *http.Request, origin http.Handler) {
	g.wait()
	origin.ServeHTTP(w, r)
}

// Fifty machines that request the same provider at the same time, which is new
// to the mirror, cause one download of each file.
func TestFiftyAtOnce(t *testing.T) {
	t.Parallel()
	const machines = 50
	var kinds []Client
	var missing error
	for _, c := range clients() {
		if missing = errors.Join(missing, c.missing); c.missing == nil {
			kinds = append(kinds, c)
		}
	}
	if len(kinds) == 0 || os.Getenv("CI") != "" {
		require(t, missing)
	}
	acme := publisher(t, "acme")
	outside := newOutside(t, newTree(t).
		Provider("acme/demo", "1.0.0", signedBy(acme)).
		Keys("acme", acme))
	front := outside.Front(t, "origin.example.com")
	mirror := outside.StartMirror(t, mirrorOf("origin.example.com", newTree(t), "timeout 1m"))

	everyone := newGate(t)
	front.Fails("origin.example.com", onPaths(everyone.before, "/versions"))
	var all sync.WaitGroup
	for i := range machines {
		ws := newWorkspace(t, mirror, greeting(demoOfOrigin, "1.0.0"))
		ws.CLIConfig(t, viaMirror)
		c := kinds[i%len(kinds)]
		all.Go(func() {
			if out, err := c.exec(t, ws, []string{"init"}); err != nil {
				t.Errorf("%s init: %v\n%s", c.Name, err, out)
			}
		})
	}
	eventually(t, "all of them have asked the mirror", func() bool { return len(mirror.Proxy.Asked()) >= machines })
	everyone.open()
	all.Wait()

	asked := front.Asked("origin.example.com", "")
	for path, n := range asked {
		if n != 1 {
			t.Errorf("%s was requested %d times", path, n)
		}
	}
	if n := times(front.Asked("origin.example.com", zipOfDemo("1.0.0", thisPlatform))); n != 1 || len(asked) < 6 {
		t.Errorf("the origin got the requests: %v", asked)
	}
	if hosts := slices.Compact(mirror.Proxy.Asked()); len(hosts) != 1 {
		t.Errorf("clients connected to: %v", hosts)
	}
}
