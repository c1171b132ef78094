package mirror

import (
	"context"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/command/commandtest"
	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

// An origin is a real registry that the mirror command fetches from. It is
// called registry.example.com and reached at a URL.
type origin struct {
	*httptest.Server
	tree *indextest.Tree

	mutex  sync.Mutex
	faults map[string]http.HandlerFunc // by path
	asked  []*http.Request
}

const originHost = "registry.example.com"

// newOrigin serves a tree, in which acme is the namespace of one publisher.
func newOrigin(t *testing.T, write func(files *indextest.Tree, acme *indextest.Publisher)) *origin {
	t.Helper()
	o := &origin{tree: indextest.New(t), faults: make(map[string]http.HandlerFunc)}
	publisher := indextest.NewPublisher(t)
	o.tree.Keys("acme", publisher)
	write(o.tree, publisher)
	snapshot, err := index.Scan(context.Background(), index.Options{
		Open:   o.tree.Open,
		Signer: commandtest.ShortKey(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	g := &handlers.Registry{Snapshot: func() *index.Snapshot { return snapshot }}
	o.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.mutex.Lock()
		o.asked = append(o.asked, r)
		fault := o.faults[r.URL.Path]
		o.mutex.Unlock()
		if fault != nil {
			fault(w, r)
		} else if !g.ServeHTTP(w, r) {
			http.NotFound(w, r)
		}
	}))
	// As a mirror, it gets requests for the hostname of the registry.
	g.Hostnames = []svchost.Hostname{originHost, svchost.Hostname(o.Listener.Addr().String())}
	o.StartTLS()
	t.Cleanup(o.Close)
	return o
}

func newAcme(t *testing.T) *origin {
	return newOrigin(t, func(files *indextest.Tree, acme *indextest.Publisher) {
		files.Provider("acme/demo", "1.0.0", "linux_amd64", "darwin_arm64").Signed(acme)
		files.Provider("acme/demo", "1.1.0", "linux_amd64").Signed(acme)
		files.Provider("acme/demo", "2.0.0-beta1", "linux_amd64").Signed(acme)
		files.Provider("acme/other", "0.1.0", "linux_amd64").Signed(acme)
	})
}

func (o *origin) fault(path string, f http.HandlerFunc) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.faults[path] = f
}

// downloads returns the packages that were fetched since the last call.
func (o *origin) downloads() (names []string) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	for _, r := range o.asked {
		if strings.HasSuffix(r.URL.Path, ".zip") {
			names = append(names, filepath.Base(r.URL.Path))
		}
	}
	o.asked = nil
	slices.Sort(names)
	return names
}

// mirror runs the command, with the registry's hostname at the origin's URL.
func (o *origin) mirror(t *testing.T, root string, args ...string) (out, errs string, err error) {
	t.Helper()
	return o.mirrorAs(t, root, append([]string{"--upstream", originHost + "=" + o.URL}, args...)...)
}

// mirrorAs runs the command for linux_amd64. The origin is trusted.
func (o *origin) mirrorAs(t *testing.T, root string, args ...string) (out, errs string, err error) {
	t.Helper()
	return o.mirrorWithin(t.Context(), root, args...)
}

func (o *origin) mirrorWithin(ctx context.Context, root string, args ...string) (out, errs string, err error) {
	pool := x509.NewCertPool()
	pool.AddCert(o.Certificate())
	cmd := Command(upstream.Network{Roots: pool})
	if !slices.Contains(args, "--platform") {
		args = append(args, "--platform", "linux_amd64")
	}
	return commandtest.Run(ctx, cmd, append([]string{"--root", root}, args...)...)
}

func wantFiles(t *testing.T, root string, want ...string) {
	t.Helper()
	slices.Sort(want)
	if got := commandtest.Files(t, root); !slices.Equal(got, want) {
		t.Errorf("there are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// lock is a block of a lock file.
func lock(source, version string, hashes ...string) string {
	return fmt.Sprintf("provider %q {\n  version = %q\n  hashes  = [%s]\n}\n", source, version, quoted(hashes))
}

func quoted(words []string) string {
	list := make([]string, len(words))
	for i, word := range words {
		list[i] = fmt.Sprintf("%q", word)
	}
	return strings.Join(list, ", ")
}
