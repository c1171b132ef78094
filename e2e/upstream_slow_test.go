package e2e_test

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
)

// pausing sends half of a body, waits, and sends the rest as edit returns it.
func pausing(wait func(), edit func([]byte) []byte) Fault {
	return func(w http.ResponseWriter, r *http.Request, origin http.Handler) {
		answer := ask(origin, r)
		body := answer.Body.Bytes()
		maps.Copy(w.Header(), answer.Result().Header)
		w.WriteHeader(answer.Code)
		w.Write(body[:len(body)/2])
		w.(http.Flusher).Flush()
		wait()
		w.Write(edit(body)[len(body)/2:])
	}
}

// Clients begin to receive a package before its slow origin has sent all of it. They install
// it if it is the one that was released, and otherwise say that it has failed. The zip is
// compressed: an executable contains the bytes at which a zip may end, where clients wait.
func TestSlowOrigin(t *testing.T) {
	t.Parallel()
	acme := publisher(t, "acme")
	wrong := func(body []byte) []byte {
		body = append([]byte(nil), body...)
		body[len(body)-1] ^= 1
		return body
	}
	for _, test := range []struct {
		rule string
		edit func([]byte) []byte
		good bool
	}{
		{"the package that was released", func(body []byte) []byte { return body }, true},
		{"another last byte", wrong, false},
	} {
		t.Run(test.rule, func(t *testing.T) {
			outside := newOutside(t, newTree(t).Provider("acme/demo", "1.0.0", signedBy(acme), compressed).Keys("acme", acme))
			front := outside.Front(t, "origin.example.com")
			files := newTree(t)
			mirror := outside.StartMirror(t, mirrorOf("origin.example.com", files, "timeout 1m"))
			rest := newGate(t)
			front.Fails("origin.example.com", onPaths(pausing(rest.wait, test.edit), ".zip"))

			var all sync.WaitGroup
			for _, c := range clients() {
				if c.missing != nil {
					continue
				}
				ws := newWorkspace(t, mirror, greeting(demoOfOrigin, "1.0.0"))
				ws.CLIConfig(t, viaMirror)
				all.Go(func() {
					switch out, err := c.exec(t, ws, []string{"init"}); {
					case test.good && err != nil:
						t.Errorf("%s init: %v\n%s", c.Name, err, out)
					case !test.good && err == nil:
						t.Errorf("%s init took a wrong package:\n%s", c.Name, out)
					}
				})
			}
			client, err := mirror.client()
			if err != nil {
				t.Fatal(err)
			}
			defer client.CloseIdleConnections()
			zip := zipOfDemo("1.0.0", thisPlatform)
			answer, err := client.Get(mirrored("origin.example.com", zip))
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			if _, err := io.ReadFull(answer.Body, make([]byte, 1<<20)); err != nil || answer.StatusCode != http.StatusOK || answer.Header.Get("Etag") != "" {
				t.Fatalf("while the origin pauses: %d, %v", answer.StatusCode, err)
			}
			rest.open()
			n, err := io.Copy(io.Discard, answer.Body)
			if n += 1 << 20; test.good && (err != nil || n != answer.ContentLength) || !test.good && (!errors.Is(err, io.ErrUnexpectedEOF) || n > answer.ContentLength-64<<10) {
				t.Errorf("got %d bytes of %d, %v", n, answer.ContentLength, err)
			}
			all.Wait()
			if n := times(front.Asked("origin.example.com", zip)); test.good && n != 1 {
				t.Errorf("the package was requested %d times", n)
			}
			if has := slices.ContainsFunc(files.files(), func(name string) bool { return strings.HasSuffix(name, ".zip") }); has != test.good {
				t.Errorf("the tree has %v", files.files())
			}
		})
	}
}
