package e2e_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// A package can be requested by its name alone: clients with a document from
// another instance request nothing else.
func TestPackageByName(t *testing.T) {
	t.Parallel()
	acme := publisher(t, "acme")
	published := newTree(t).
		Provider("acme/demo", "1.0.0", signedBy(acme)).
		Keys("acme", acme)
	outside := newOutside(t, published)
	front := outside.Front(t, "origin.example.com", "allowing.example.com")
	files := newTree(t)
	s := mirrorOf("origin.example.com", files, "platforms "+strings.Join(threePlatforms()[:2], " "))
	s.Options = append(s.Options, "upstream allowing.example.com {", "allow other/*", "}")
	mirror := outside.StartMirror(t, s)

	here, there, nowhere := threePlatforms()[0], threePlatforms()[1], threePlatforms()[2]
	for _, name := range []string{zipOfDemo("1.0.0", here), zipOfDemo("1.0.0", there)} {
		for range 2 {
			answer := mirror.Get(t, mirrored("origin.example.com", name))
			if answer.Status != 200 || answer.Body != published.Read("providers/acme/demo/"+name) {
				t.Errorf("%s: %d with %d bytes", name, answer.Status, len(answer.Body))
			}
			if etag := answer.Header.Get("ETag"); etag != `"`+sha256Of(t, published.Path("providers/acme/demo/"+name))+`"` {
				t.Errorf("%s has the ETag %s", name, etag)
			}
		}
	}
	for name, url := range map[string]string{
		"a platform that is not mirrored": mirrored("origin.example.com", zipOfDemo("1.0.0", nowhere)),
		"a platform that does not exist":  mirrored("origin.example.com", zipOfDemo("1.0.0", "plan9_386")),
		"a version that does not exist":   mirrored("origin.example.com", zipOfDemo("9.0.0", here)),
		"a file that does not exist":      mirrored("origin.example.com", "terraform-provider-demo.zip"),
		"a temporary file":                mirrored("origin.example.com", "."+zipOfDemo("1.0.0", here)+".part"),
		"the list of versions":            mirrored("origin.example.com", ".versions.json"),
		"a provider that is not allowed":  mirrored("allowing.example.com", zipOfDemo("1.0.0", here)),
		"a hostname that is not mirrored": mirrored("other.example.com", zipOfDemo("1.0.0", here)),
		"a hosted provider":               mirrored("mirror.example.com", zipOfDemo("1.0.0", here)),
	} {
		if answer := mirror.Get(t, url); answer.Status != http.StatusNotFound {
			t.Errorf("%s: %d %s", name, answer.Status, answer.Body)
		}
	}
	if asked := front.Asked("allowing.example.com", ""); len(asked) > 0 {
		t.Errorf("requested although it is not allowed: %v", asked)
	}
	if asked := front.Asked("origin.example.com", ".zip"); len(asked) != 2 || times(asked) != 2 {
		t.Errorf("the origin got the requests %v", asked)
	}
	isPlainTree(t, published, files, map[string][]string{"1.0.0": {here, there}})
}

// A download that is cut off once is resumed, and continues if its client has
// left.
func TestPackageInPieces(t *testing.T) {
	t.Parallel()
	acme := publisher(t, "acme")
	published := newTree(t).
		Provider("acme/demo", "1.0.0", signedBy(acme)).
		Keys("acme", acme)
	outside := newOutside(t, published)
	front := outside.Front(t, "origin.example.com")
	files := newTree(t)
	mirror := outside.StartMirror(t, mirrorOf("origin.example.com", files))
	zip := zipOfDemo("1.0.0", thisPlatform)

	arrived, left := make(chan struct{}), newGate(t)
	var tries, resumed atomic.Int32
	front.Fails("origin.example.com", onPaths(func(w http.ResponseWriter, r *http.Request, origin http.Handler) {
		if r.Header.Get("Range") != "" {
			resumed.Add(1)
		}
		if tries.Add(1) > 1 {
			origin.ServeHTTP(w, r)
			return
		}
		cutOff(func() { close(arrived); left.wait() })(w, r, origin)
	}, ".zip"))
	client, err := mirror.client()
	if err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, mirrored("origin.example.com", zip), nil)
	if err != nil {
		t.Fatal(err)
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if answer, err := client.Do(request); err == nil {
			answer.Body.Close()
			t.Errorf("a client got the status %d before the package was present", answer.StatusCode)
		}
	}()
	<-arrived
	leave()
	<-gone
	left.open()

	eventually(t, "the package is in the tree", func() bool { return size(files.Path("providers/"+demoOfOrigin+"/"+zip)) > 0 })
	if tries.Load() != 2 || resumed.Load() != 1 {
		t.Errorf("it was requested %d times, and its remainder %d times", tries.Load(), resumed.Load())
	}
	if answer := mirror.Get(t, mirrored("origin.example.com", zip)); answer.Body != published.Read("providers/acme/demo/"+zip) {
		t.Errorf("%d with %d bytes", answer.Status, len(answer.Body))
	}
	if tries.Load() != 2 {
		t.Error("it was fetched again")
	}
	isPlainTree(t, published, files, map[string][]string{"1.0.0": {thisPlatform}})
}
