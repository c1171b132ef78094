package e2e_test

import (
	"strings"
	"testing"
	"time"
)

// While an origin is down, everything known of it is served, even after a
// restart. The log says when the outage begins and when it is over, with
// nothing in between.
func TestOriginOutage(t *testing.T) {
	t.Parallel()
	acme := publisher(t, "acme")
	published := newTree(t).
		Provider("acme/demo", "1.0.0", signedBy(acme)).
		Keys("acme", acme)
	outside := newOutside(t, published)
	front := outside.Front(t, "origin.example.com")
	files := newTree(t)
	s := mirrorOf("origin.example.com", files, "versions_ttl 1ms")
	mirror := outside.StartMirror(t, s)
	client, err := mirror.client()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	list := func() Response {
		answer, err := fetch(client, mirrored("origin.example.com", "index.json"))
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	const down, up = "the origin does not answer", "the origin answers again"
	told := func(message string) int {
		return len(mirror.Log.Find(0, func(e Entry) bool { return strings.HasPrefix(e.Message, message) }))
	}
	present := mirrored("origin.example.com", zipOfDemo("1.0.0", thisPlatform))
	if answer := mirror.Get(t, present); answer.Status != 200 {
		t.Fatalf("%d %s", answer.Status, answer.Body)
	}

	front.Fails("origin.example.com", hangUp)
	mirror.Restart(t, s)
	for range 20 {
		if answer := list(); answer.Status != 200 || !strings.Contains(answer.Body, `"1.0.0"`) || answer.Header.Get("Age") == "" {
			t.Fatalf("the list: %d %v %s", answer.Status, answer.Header, answer.Body)
		}
	}
	if answer := mirror.Get(t, present); answer.Status != 200 {
		t.Errorf("the package that is present: %d %s", answer.Status, answer.Body)
	}
	eachClient(t, func(t *testing.T, c Client) {
		ws := newWorkspace(t, mirror, greeting(demoOfOrigin, ">= 1.0.0"))
		ws.CLIConfig(t, viaMirror)
		c.Run(t, ws, "init")
	})
	missing := mirror.Get(t, mirrored("origin.example.com", zipOfDemo("1.0.0", threePlatforms()[1])))
	if missing.Status != 502 || !strings.Contains(missing.Body, "origin.example.com") {
		t.Errorf("the package that is not present: %d %s", missing.Status, missing.Body)
	}
	mirror.Log.waitAnswers(t, 0, 20, mirrored("origin.example.com", "index.json"))
	if told(down) != 1 || told(up) != 0 {
		t.Errorf("the log says %d times that the origin is down, %d times that it is up", told(down), told(up))
	}

	published.Provider("acme/demo", "1.1.0", signedBy(acme))
	front.Fails("origin.example.com", nil)
	// A failure is remembered for a while.
	deadline, tick := time.NewTimer(time.Minute), time.NewTicker(100*time.Millisecond)
	defer deadline.Stop()
	defer tick.Stop()
	for !strings.Contains(list().Body, `"1.1.0"`) {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatal("the origin gets no more requests")
		}
	}
	mirror.Log.Wait(t, up, func(e Entry) bool { return e.Message == up })
	if told(down) != 1 || told(up) != 1 {
		t.Errorf("the log says %d times that the origin is down, %d times that it is up", told(down), told(up))
	}
}
