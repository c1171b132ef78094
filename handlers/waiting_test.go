package handlers_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// heldFs holds back archives that have something in their name.
type heldFs struct {
	afero.Fs
	name string
	open chan struct{}
}

func (h heldFs) Open(name string) (afero.File, error) {
	if strings.Contains(name, h.name) && strings.HasSuffix(name, ".zip") {
		<-h.open
	}
	return h.Fs.Open(name)
}

// On a cold start the first request for something has it read before all else,
// and waits for it: a list without a version has clients choose an older one, and
// OpenTofu asks a mirror once only.
func TestRequestsWaitForWhatIsNotReadYet(t *testing.T) {
	tree := indextest.New(t)
	tree.Provider("acme/large", "1.0.0", "linux_amd64")
	tree.Provider("acme/demo", "1.0.0", "linux_amd64")
	tree.Provider("acme/demo", "1.1.0", "linux_amd64")
	tree.Write("modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", "x"))
	tree.Write("modules/acme/vpc/aws/1.1.0.tar.gz", indextest.TarGz("main.tf", "x"))
	for _, test := range []struct {
		path   string
		status int
		has    []string
	}{
		{"/v1/providers/acme/demo/versions", http.StatusOK, []string{`"1.0.0"`, `"1.1.0"`}},
		{"/v1/providers/acme/demo/1.0.0/download/linux/amd64", http.StatusOK, []string{"demo_1.0.0"}},
		{"/v1/mirror/" + own + "/acme/demo/index.json", http.StatusOK, []string{`"1.0.0"`, `"1.1.0"`}},
		{"/v1/mirror/" + own + "/acme/demo/1.1.0.json", http.StatusOK, []string{"demo_1.1.0"}},
		{"/v1/mirror/" + own + "/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip", http.StatusOK, nil},
		{"/v1/modules/acme/vpc/aws/versions", http.StatusOK, []string{`"1.0.0"`, `"1.1.0"`}},
		{"/v1/modules/acme/vpc/aws/1.0.0/download", http.StatusNoContent, nil},
		{"/v1/modules/acme/vpc/aws/1.1.0/archive.tar.gz", http.StatusOK, nil},
		{"/v1/providers/acme/none/versions", http.StatusNotFound, nil},
		{"/v1/modules/acme/vpc/aws/9.9.9/download", http.StatusNotFound, nil},
		{"/v1/providers/acme/large/9.9.9/download/linux/amd64", http.StatusNotFound, nil},
		{"/v1/mirror/" + own + "/acme/large/9.9.9.json", http.StatusOK, []string{`{"archives":{}}`}},
		{"/v1/mirror/" + own + "/acme/large/terraform-provider-large_9.9.9_linux_amd64.zip", http.StatusNotFound, nil},
		{"/v1/mirror/-/acme/large/README.md", http.StatusNotFound, nil},
	} {
		t.Run(test.path, func(t *testing.T) {
			held := heldFs{tree.Fs, "large", make(chan struct{})}
			o := options(t, tree)
			o.Open, o.Workers = indextest.On(t, held).Open, 1
			x := index.New(o)
			x.Start()
			t.Cleanup(func() { x.Close() })
			defer close(held.open) // before the index is closed
			<-x.Ready()
			s := serve(t, &handlers.Registry{Snapshot: x.Snapshot, Next: x.Next})
			a := s.get(test.path)
			if a.StatusCode != test.status {
				t.Errorf("got %d %s", a.StatusCode, a.body)
			}
			for _, has := range test.has {
				if !strings.Contains(a.body, has) {
					t.Errorf("got %s, without %s", a.body, has)
				}
			}
		})
	}
}

// What takes longer is a 503, not an answer that lacks something.
func TestRequestsDoNotWaitForEver(t *testing.T) {
	tree := indextest.New(t)
	tree.Provider("acme/large", "1.0.0", "linux_amd64")
	held := heldFs{tree.Fs, "large", make(chan struct{})}
	o := options(t, tree)
	o.Open = indextest.On(t, held).Open
	x := index.New(o)
	x.Start()
	t.Cleanup(func() { x.Close() })
	defer close(held.open)
	<-x.Ready()
	var waited []index.Wanted
	s := serve(t, &handlers.Registry{Snapshot: x.Snapshot, Next: func(ctx context.Context, after *index.Snapshot, wanted ...index.Wanted) *index.Snapshot {
		if _, limited := ctx.Deadline(); !limited {
			t.Error("it would wait for ever")
		}
		waited = append(waited, wanted...)
		return nil // as when the time is over
	}})
	for _, path := range []string{"/v1/providers/acme/large/versions", "/v1/mirror/" + own + "/acme/large/1.0.0.json"} {
		waited = nil
		a := s.get(path)
		mustRefuse(t, a, http.StatusServiceUnavailable)
		if !slices.ContainsFunc(waited, func(w index.Wanted) bool { return w.Address == index.ProviderAddress{Namespace: "acme", Type: "large"} }) {
			t.Errorf("%s waits for %+v", path, waited)
		}
	}
}

// A file that is replaced under its name is served as soon as it has been
// verified: the request waits for that.
func TestARequestWaitsForAFileThatIsReplaced(t *testing.T) {
	tree := indextest.New(t)
	tree.Provider("acme/demo", "1.0.0", "linux_amd64")
	x := index.New(options(t, tree))
	x.Start()
	t.Cleanup(func() { x.Close() })
	<-x.Ready()
	s := serve(t, &handlers.Registry{Snapshot: x.Snapshot, Next: x.Next, Changed: x.Hint})
	path := "/v1/mirror/" + own + "/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip"
	s.get(path)
	other := indextest.Zip("terraform-provider-demo_v1.0.0", "another build, of another size")
	tree.Write("providers/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip", other)
	if a := s.get(path); a.StatusCode != http.StatusOK || a.body != other {
		t.Errorf("got %d and %d bytes of %d", a.StatusCode, len(a.body), len(other))
	}
}
