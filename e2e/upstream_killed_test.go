package e2e_test

import (
	"slices"
	"strings"
	"syscall"
	"testing"
)

// A mirror that is killed during a download leaves a temporary file, which is
// never served. The next start removes it, and the package is then fetched as
// usual.
func TestKilledWhileFilling(t *testing.T) {
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
	zip := zipOfDemo("1.0.0", thisPlatform)
	hasPackage := func() bool {
		return slices.ContainsFunc(files.files(), func(name string) bool { return strings.HasSuffix(name, ".zip") })
	}

	cut := newGate(t)
	front.Fails("origin.example.com", onPaths(cutOff(cut.wait), ".zip"))
	answered := make(chan error, 1)
	go func() {
		_, err := mirror.ask(mirrored("origin.example.com", zip))
		answered <- err
	}()
	eventually(t, "half of the package has been written", func() bool {
		parts := files.unfinished()
		return len(parts) == 1 && size(files.Path(parts[0])) > 1<<20
	})
	half := files.unfinished()[0]
	if err := mirror.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-mirror.ended
	cut.open()
	if err := <-answered; err == nil {
		t.Error("a client got an answer for a package that was not complete")
	}
	if parts := files.unfinished(); !slices.Equal(parts, []string{half}) || hasPackage() {
		t.Errorf("the tree has %v", files.files())
	}

	// Without the origin, the temporary file is not used.
	front.Fails("origin.example.com", hangUp)
	files.anHourPasses()
	mirror.start(t, []Site{s})
	eventually(t, "the temporary file is removed", func() bool { return len(files.unfinished()) == 0 })
	mirror.Log.Wait(t, "temporary files were removed", func(e Entry) bool {
		return e.Message == "removed temporary files of interrupted fills" && e.number("files") == 1
	})
	for _, name := range []string{zip, lastElement(half)} {
		if answer := mirror.Get(t, mirrored("origin.example.com", name)); answer.Status != 502 && answer.Status != 404 {
			t.Errorf("%s: %d", name, answer.Status)
		}
	}
	if hasPackage() {
		t.Errorf("the tree has %v", files.files())
	}

	// With the origin, the package is fetched.
	front.Fails("origin.example.com", nil)
	mirror.Restart(t, s)
	eachClient(t, func(t *testing.T, c Client) {
		ws := newWorkspace(t, mirror, greeting(demoOfOrigin, "1.0.0"))
		ws.CLIConfig(t, viaMirror)
		c.Run(t, ws, "init")
		expect(t, c.Run(t, ws, "apply", "-auto-approve"), `text = "hello world from 1.0.0"`)
	})
	isPlainTree(t, published, files, map[string][]string{"1.0.0": {thisPlatform}})
}
