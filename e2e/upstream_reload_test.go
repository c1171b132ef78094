package e2e_test

import "testing"

// A reload does not interrupt a download: waiting clients get the package, and
// clients of the new configuration wait for the same download.
func TestReloadWhileFilling(t *testing.T) {
	t.Parallel()
	acme := publisher(t, "acme")
	published := newTree(t).
		Provider("acme/demo", "1.0.0", signedBy(acme)).
		Keys("acme", acme)
	outside := newOutside(t, published)
	front := outside.Front(t, "origin.example.com")
	files := newTree(t)
	mirror := outside.StartMirror(t, mirrorOf("origin.example.com", files))
	name := zipOfDemo("1.0.0", thisPlatform)
	want := published.Read("providers/acme/demo/" + name)

	arriving := newGate(t)
	front.Fails("origin.example.com", onPaths(arriving.before, ".zip"))
	clients := make(chan bool, 2)
	asks := func() {
		answer, err := mirror.ask(mirrored("origin.example.com", name))
		if err != nil || answer.Status != 200 || answer.Body != want {
			t.Errorf("%v, %d with %d bytes", err, answer.Status, len(answer.Body))
		}
		clients <- true
	}
	go asks()
	eventually(t, "the package is being fetched", func() bool { return times(front.Asked("origin.example.com", ".zip")) == 1 })
	s := mirrorOf("origin.example.com", files)
	s.Options = append(s.Options, "rescan 1h")
	mirror.Reload(t, s)
	go asks()
	arriving.open()
	<-clients
	<-clients
	if asked := front.Asked("origin.example.com", ".zip"); times(asked) != 1 {
		t.Errorf("the origin got the requests %v", asked)
	}
	isPlainTree(t, published, files, map[string][]string{"1.0.0": {thisPlatform}})
}
