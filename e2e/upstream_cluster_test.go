package e2e_test

import (
	"sync"
	"testing"
)

// Instances that share a tree and Caddy's storage fetch a package once,
// whichever of them gets the requests.
func TestFilledByTwoInstances(t *testing.T) {
	t.Parallel()
	acme := publisher(t, "acme")
	published := newTree(t).
		Provider("acme/demo", "1.0.0", signedBy(acme)).
		Keys("acme", acme)
	outside := newOutside(t, published)
	front := outside.Front(t, "origin.example.com")
	files := newTree(t)
	s := mirrorOf("origin.example.com", files)
	one := outside.StartMirror(t, s)
	other := outside.newMirror(t)
	other.options = append(other.options, `storage file_system "`+one.path("data", "caddy")+`"`)
	other.CA = one.CA // it is in the storage
	other.start(t, []Site{s})

	both := newGate(t)
	front.Fails("origin.example.com", onPaths(both.before, ".zip"))
	var all sync.WaitGroup
	for _, instance := range []*Registry{one, other} {
		for _, platform := range threePlatforms() {
			name := zipOfDemo("1.0.0", platform)
			want := published.Read("providers/acme/demo/" + name)
			all.Go(func() {
				answer, err := instance.ask(mirrored("origin.example.com", name))
				if err != nil || answer.Body != want {
					t.Errorf("%s: %v, %d with %d bytes", name, err, answer.Status, len(answer.Body))
				}
			})
		}
	}
	eventually(t, "both instances have the documents of the release", func() bool {
		return times(front.Asked("origin.example.com", "_SHA256SUMS.sig")) == 2
	})
	both.open()
	all.Wait()
	eachClient(t, func(t *testing.T, c Client) {
		for _, instance := range []*Registry{one, other} {
			ws := newWorkspace(t, instance, greeting(demoOfOrigin, "1.0.0"))
			ws.CLIConfig(t, viaMirror)
			c.Run(t, ws, "init")
		}
	})
	if asked := front.Asked("origin.example.com", ".zip"); len(asked) != 3 || times(asked) != 3 {
		t.Errorf("the origin got the requests %v", asked)
	}
	isPlainTree(t, published, files, map[string][]string{"1.0.0": threePlatforms()})
}
