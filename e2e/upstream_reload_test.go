package e2e_test

import "testing"

// A reload does not cut off what is coming in: who waits gets it, and who comes
// with the new configuration waits for the same.
func TestReloadWhileFilling(t *testing.T) {
	t.Parallel()
	acme := publisher(t, "acme")
	published := newTree(t).
		Provider("acme/demo", "1.0.0", signedBy(acme)).
		Keys("acme", acme)
	outside := newOutside(t, published)
	front := outside.Front(t, "origin.example.com")
	tree := newTree(t)
	mirror := outside.StartMirror(t, mirrorOf("origin.example.com", tree))
	name := zipOfDemo("1.0.0", thisPlatform)
	want := published.Read("providers/acme/demo/" + name)

	arriving := newGate(t)
	front.Fails("origin.example.com", at(arriving.before, ".zip"))
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
	s := mirrorOf("origin.example.com", tree)
	s.Options = append(s.Options, "rescan 1h")
	mirror.Reload(t, s)
	go asks()
	arriving.open()
	<-clients
	<-clients
	if asked := front.Asked("origin.example.com", ".zip"); times(asked) != 1 {
		t.Errorf("the origin was asked for %v", asked)
	}
	isPlainTree(t, published, tree, map[string][]string{"1.0.0": {thisPlatform}})
}
