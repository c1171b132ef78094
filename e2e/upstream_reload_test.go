package e2e_test

import "testing"

// A reload does not interrupt a download: waiting clients get the package, and
// clients of the new configuration wait for the same download, whether its upstream is the same
// or has other options.
func TestReloadWhileFilling(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		rule   string
		change func(*Site, *Tree)
	}{
		{"another option", func(s *Site, _ *Tree) { s.Options = append(s.Options, "rescan 1h") }},
		{"another option of the upstream", func(s *Site, files *Tree) { *s = mirrorOf("origin.example.com", files, "versions_ttl 1h") }},
	} {
		t.Run(row.rule, func(t *testing.T) {
			t.Parallel()
			acme := publisher(t, "acme")
			published := newTree(t).
				Provider("acme/demo", "1.0.0", signedBy(acme)).
				Keys("acme", acme)
			outside := newOutside(t, published)
			front := outside.Front(t, "origin.example.com")
			files := newTree(t)
			s := mirrorOf("origin.example.com", files)
			mirror := outside.StartMirror(t, s)
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
			row.change(&s, files)
			mirror.Reload(t, s)
			go asks()
			arriving.open()
			<-clients
			<-clients
			if asked := front.Asked("origin.example.com", ".zip"); times(asked) != 1 {
				t.Errorf("the origin got the requests %v", asked)
			}
			isPlainTree(t, published, files, map[string][]string{"1.0.0": {thisPlatform}})
		})
	}
}
