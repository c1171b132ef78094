package handlers_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/publish"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

const (
	managerOnly  = "Authorization: Bearer manager" // manages acme, here and at another registry, and reads nothing
	metadataPath = "/v1/providers/acme/demo/registry.hcl"
)

// A managed tree is on the disk or in a bucket, and requests can manage it.
type managed struct {
	*indextest.Tree
	root    string // on the disk
	bucket  *treetest.Bucket
	failing atomic.Bool // the store of the bucket
	options publish.Options
	index   *index.Index
}

func manage(t *testing.T, inBucket bool) *managed {
	t.Helper()
	m := new(managed)
	var indexed index.Options
	if inBucket {
		m.bucket = &treetest.Bucket{Fail: func(string, string) error {
			if m.failing.Load() {
				return os.ErrDeadlineExceeded
			}
			return nil
		}}
		m.Tree = indextest.InBucket(t, m.bucket)
		directories := source.Directories{Root: "."}
		indexed.Listed = directories.Listed(m.bucket)
		m.options.Open = func() (tree.Tree, error) { return directories.OpenIn(m.bucket) }
	} else {
		m.root = t.TempDir()
		m.Tree = indextest.OnDisk(t, m.root)
		m.options.Open = source.Directories{Root: m.root}.Open
		indexed.Open = m.options.Open
	}
	m.Provider("acme/demo", "1.0.0", "linux_amd64")
	m.index = index.New(indexed)
	m.index.Start()
	t.Cleanup(func() { m.index.Close() })
	<-m.index.Ready()
	m.options.Index = func() publish.Index { return m.index }
	lock := make(chan struct{}, 1)
	m.options.Lock = func(ctx context.Context, _ string) (func(), error) {
		select {
		case lock <- struct{}{}:
			return func() { <-lock }, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return m
}

// instance returns a registry of the tree. All instances share one lock.
func (m *managed) instance(t *testing.T) *handlers.Registry {
	t.Helper()
	p, err := publish.New(m.options)
	if err != nil {
		t.Fatal(err)
	}
	g := publishing(t, p)
	g.Snapshot, g.Next = m.index.Snapshot, m.index.Next
	return g
}

func tagOf(content string) string {
	return `"` + wire.SHA256(sha256.Sum256([]byte(content))).String() + `"`
}

// Hosted and mirrored addresses, with their places in the tree.
var managedFiles = []struct{ rule, path, file, address string }{
	{"a provider", metadataPath, "providers/acme/demo/registry.hcl", "acme/demo"},
	{"a module", "/v1/modules/acme/vpc/aws/registry.hcl", "modules/acme/vpc/aws/registry.hcl", "acme/vpc/aws"},
	{"a mirrored provider", publicPath + "/providers/acme/null/registry.hcl", "providers/" + publicHost + "/acme/null/registry.hcl", publicHost + "/acme/null"},
	{"a mirrored module", publicPath + "/modules/acme/vpc/aws/registry.hcl", "modules/" + publicHost + "/acme/vpc/aws/registry.hcl", publicHost + "/acme/vpc/aws"},
}

// The requests in their order, with the file in the tree after each.
func TestMetadataFile(t *testing.T) {
	const one, two, broken = "withdrawn \"1.0.0\" {\n}\n", "owner = \"ops\"\n", "owner = 1 +\n"
	steps := []struct {
		rule, method, body string
		header             string
		status             int
		tag, there         string // there: the content of the file; empty: there is no file
	}{
		{"there is none", "GET", "", "", 404, "", ""},
		{"nor its header", "HEAD", "", "", 404, "", ""},
		{"there is none to replace", "PUT", one, "If-Match: " + tagOf(one), 412, "", ""},
		{"whatever it is", "PUT", one, "If-Match: *", 412, "", ""},
		{"it is created", "PUT", one, "If-None-Match: *", 201, tagOf(one), one},
		{"it is read", "GET", "", "", 200, tagOf(one), one},
		{"its header is read", "HEAD", "", "", 200, tagOf(one), one},
		{"who has it gets no other", "GET", "", "If-None-Match: " + tagOf(one), 304, tagOf(one), one},
		{"it is there already", "PUT", two, "If-None-Match: *", 412, "", one},
		{"also with the same content", "PUT", one, "If-None-Match: *", 412, "", one},
		{"it is not replaced unseen", "PUT", two, "", 428, "", one},
		{"nor by the same content", "PUT", one, "", 428, "", one},
		{"nor because it is not another one", "PUT", two, "If-None-Match: " + tagOf(two), 428, "", one},
		{"it is another one than was meant", "PUT", two, "If-Match: " + tagOf(two), 412, "", one},
		{"a weak tag names nothing", "PUT", two, "If-Match: W/" + tagOf(one), 412, "", one},
		{"a tag without quotes names nothing", "PUT", two, "If-Match: " + strings.Trim(tagOf(one), `"`), 412, "", one},
		{"what is no registry.hcl is refused", "PUT", broken, "If-Match: " + tagOf(one), 422, "", one},
		{"it is replaced", "PUT", two, "If-Match: " + tagOf(one), 201, tagOf(two), two},
		{"by the same", "PUT", two, "If-Match: " + tagOf(two), 200, tagOf(two), two},
		{"by one of several tags", "PUT", one, "If-Match: \"x\", " + tagOf(two), 201, tagOf(one), one},
		{"by the tag that Caddy gives to what it has compressed", "PUT", two, "If-Match: " + strings.TrimSuffix(tagOf(one), `"`) + `-gzip"`, 201, tagOf(two), two},
		{"whatever it is", "PUT", one, "If-Match: *", 201, tagOf(one), one},
		{"one that says nothing is removed", "PUT", "\n", "If-Match: " + tagOf(one), 201, "", ""},
		{"none is created without a condition", "PUT", two, "", 201, tagOf(two), two},
	}
	for _, inBucket := range []bool{false, true} {
		m := manage(t, inBucket)
		g := m.instance(t)
		for _, of := range managedFiles {
			for _, step := range steps {
				t.Run(fmt.Sprintf("%s/%s/in a bucket %t", of.rule, step.rule, inBucket), func(t *testing.T) {
					var told handlers.Exchange
					g.Answered = func(_ *http.Request, e *handlers.Exchange) { told = *e }
					a := sent(g, step.method, of.path, step.body, managerOnly, step.header)
					if a.Code != step.status || a.Header().Get("Etag") != step.tag {
						t.Fatalf("got %d %s with the tag %q, want %d %q", a.Code, a.Body, a.Header().Get("Etag"), step.status, step.tag)
					}
					if step.method == "GET" && step.status == 200 && a.Body.String() != step.there || step.method == "HEAD" && a.Body.Len() > 0 {
						t.Errorf("the body is %q", a.Body)
					}
					if step.method != "PUT" {
						if got := a.Header().Get("Cache-Control"); got != "private, no-cache" {
							t.Errorf("Cache-Control is %q", got)
						}
						if got := a.Header().Get("Content-Type"); step.status == 200 && got != "text/plain; charset=utf-8" {
							t.Errorf("it is %q", got)
						}
						if told.Kind != handlers.KindMetadata || told.Upload != nil {
							t.Errorf("it is told as %+v", told)
						}
					} else if u := told.Upload; u == nil || u.Kind != publish.Metadata || u.Subject != "manager" || told.Kind != handlers.KindPublish {
						t.Errorf("it is told as %+v of %+v", u, told)
					}
					if told.Address() != of.address || told.Status != step.status {
						t.Errorf("it is about %q, and %d", told.Address(), told.Status)
					}
					if step.there != "" && m.Read(of.file) != step.there {
						t.Errorf("there is %q", m.Read(of.file))
					}
					if _, err := m.Fs.Stat(of.file); (err == nil) != (step.there != "") {
						t.Errorf("the file: %v", err)
					}
				})
			}
		}
	}
}

// Managing needs its own right, and answers do not tell what exists.
func TestWhoManagesWhat(t *testing.T) {
	s := serve(t, manage(t, false).instance(t))
	const none, denied = http.StatusUnauthorized, http.StatusForbidden
	users := []string{"", "garbage", "reader", "publisher", "both", "elsewhere", "manager"}
	for _, of := range managedFiles {
		absent := strings.NewReplacer("/demo/", "/none/", "/vpc/", "/none/", "/null/", "/none/").Replace(of.path)
		for _, request := range []struct {
			method, path string
			status       int // for the manager
		}{
			{http.MethodGet, of.path, 404}, {http.MethodHead, of.path, 404}, {http.MethodPut, of.path, 422},
			{http.MethodGet, absent, 404}, {http.MethodPut, absent, 422},
			{http.MethodGet, strings.Replace(of.path, "/acme/", "/other/", 1), denied},
			{http.MethodPut, strings.Replace(of.path, "/acme/", "/other/", 1), denied},
		} {
			s.rule(of.rule+" "+request.method+" "+request.path, func(t *testing.T, s *site) {
				for i, want := range []int{none, none, denied, denied, denied, denied, request.status} {
					a := s.do(request.method, home+request.path, "Authorization: Bearer "+users[i])
					if a.StatusCode != want {
						t.Errorf("%q gets %d %s, want %d", users[i], a.StatusCode, a.body, want)
					}
					if (a.StatusCode == none) != (a.Header.Get("Www-Authenticate") != "") {
						t.Errorf("%d has the challenge %q", a.StatusCode, a.Header.Get("Www-Authenticate"))
					}
				}
			})
		}
	}
	s.rule("the right to manage is that to publish", func(t *testing.T, s *site) {
		r, err := http.NewRequest(http.MethodPut, home+modulePath, bytes.NewReader([]byte(indextest.TarGz("main.tf", "# one\n"))))
		if err != nil {
			t.Fatal(err)
		}
		if a := s.send(withHeaders(r, managerOnly)); a.StatusCode != http.StatusCreated {
			t.Errorf("got %d %s", a.StatusCode, a.body)
		}
	})
	s.rule("credentials that cannot be checked are 503", func(t *testing.T, s *site) {
		mustRefuse(t, s.get(metadataPath, "Authorization: Bearer unknowable"), http.StatusServiceUnavailable)
	})
	s.rule("without rules nobody manages", func(t *testing.T, _ *site) {
		g := registry(scan(t, privateTree(t)))
		g.Publisher = new(shelf)
		for _, method := range []string{http.MethodGet, http.MethodPut} {
			a := sent(g, method, metadataPath, "content")
			if a.Code != denied || !strings.Contains(a.Body.String(), "allow ci manage acme") {
				t.Errorf("got %d %s", a.Code, a.Body)
			}
		}
	})
	s.rule("where publishing is off there is no registry.hcl", func(t *testing.T, _ *site) {
		off := serve(t, registry(scan(t, privateTree(t))))
		for _, of := range managedFiles {
			mustRefuse(t, off.get(of.path), http.StatusNotFound)
			mustRefuse(t, off.do(http.MethodPut, home+of.path), http.StatusMethodNotAllowed)
		}
	})
	s.rule("what is no address is none", func(t *testing.T, s *site) {
		for _, path := range []string{"/v1/providers/-/demo/registry.hcl", "/v1/providers/localhost/demo/registry.hcl", "/v1/registries/-/providers/acme/demo/registry.hcl"} {
			mustRefuse(t, s.get(path, managerOnly), http.StatusNotFound)
		}
	})
	s.rule("nothing else is sent to a registry that is stood in for", func(t *testing.T, s *site) {
		for path, allow := range map[string]string{
			publicPath + "/providers/acme/null/registry.hcl":     "GET, HEAD, PUT",
			publicPath + "/providers/acme/null/README.md":        "GET, HEAD",
			publicPath + "/providers/acme/null/1.0.0/docs.zip":   "GET, HEAD",
			publicPath + "/modules/acme/vpc/aws/1.0.0.zip":       "GET, HEAD",
			publicPath + "/modules/acme/vpc/registry.hcl":        "GET, HEAD",
			publicPath + "/modules/acme/vpc/aws/a/registry.hcl":  "GET, HEAD",
			publicPath + "/providers/acme/null/1.0/registry.hcl": "GET, HEAD",
		} {
			for _, method := range []string{http.MethodDelete, http.MethodPut} {
				if slices.Contains(strings.Split(allow, ", "), method) {
					continue
				}
				a := s.do(method, home+path, managerOnly)
				mustRefuse(t, a, http.StatusMethodNotAllowed)
				if got := a.Header.Get("Allow"); got != allow {
					t.Errorf("%s %s: Allow is %q", method, path, got)
				}
			}
		}
	})
}

// A version of another registry can be withdrawn before any file of it is fetched.
// Below the registry's own name, a registry.hcl is for hosted packages.
func TestMetadataCounts(t *testing.T) {
	for _, inBucket := range []bool{false, true} {
		t.Run(fmt.Sprintf("in a bucket %t", inBucket), func(t *testing.T) {
			m := manage(t, inBucket)
			g := m.instance(t)
			for _, path := range []string{publicPath + "/providers/acme/aws/registry.hcl", "/v1/registries/" + ownHost + "/providers/acme/demo/registry.hcl"} {
				if a := sent(g, http.MethodPut, path, "withdrawn \"5.71.0\" {\n}\n", managerOnly); a.Code != http.StatusCreated {
					t.Fatalf("got %d %s", a.Code, a.Body)
				}
			}
			for _, a := range []address.Address{{Hostname: publicHost, Namespace: "acme", Name: "aws"}, {Namespace: "acme", Name: "demo"}} {
				if said := m.index.Snapshot().Metadata(index.PlaceOf(a)); said == nil || len(said.Withdrawn) != 1 {
					t.Errorf("%s: the index has %+v", a, said)
				}
			}
		})
	}
}

// A registry.hcl in the folder of one of the registry's names is for hosted packages.
func TestMetadataUnderAName(t *testing.T) {
	m := manage(t, false)
	m.Write("providers/"+ownHost+"/acme/named/registry.hcl", "owner = \"a\"\n")
	m.options.Hostnames = append(m.options.Hostnames, ownHost)
	g := m.instance(t)
	const path = "/v1/providers/acme/named/registry.hcl"
	if a := sent(g, http.MethodGet, path, "", managerOnly); a.Code != http.StatusOK || a.Body.String() != "owner = \"a\"\n" {
		t.Errorf("got %d %s", a.Code, a.Body)
	}
	if a := sent(g, http.MethodPut, path, "owner = \"b\"\n", managerOnly, "If-Match: "+tagOf("owner = \"a\"\n")); a.Code != http.StatusCreated {
		t.Errorf("got %d %s", a.Code, a.Body)
	}
	if got := m.Read("providers/" + ownHost + "/acme/named/registry.hcl"); got != "owner = \"b\"\n" {
		t.Errorf("there is %q", got)
	}
	if _, err := m.Fs.Stat("providers/acme/named"); err == nil {
		t.Error("there is a second folder")
	}
}

// If several users change the same file, one of them succeeds, whichever instance they
// ask.
func TestMetadataIsReplacedOnce(t *testing.T) {
	for _, inBucket := range []bool{false, true} {
		for _, of := range managedFiles {
			t.Run(fmt.Sprintf("%s/in a bucket %t", of.rule, inBucket), func(t *testing.T) {
				m := manage(t, inBucket)
				instances := []*handlers.Registry{m.instance(t), m.instance(t)}
				for _, round := range []struct{ rule, before string }{
					{"created", "If-None-Match: *"}, {"replaced", ""},
				} {
					condition := round.before
					if condition == "" {
						condition = "If-Match: " + tagOf(m.Read(of.file))
					}
					answers := make([]*httptest.ResponseRecorder, 8)
					var group sync.WaitGroup
					for i := range answers {
						group.Go(func() {
							answers[i] = sent(instances[i%2], http.MethodPut, of.path, fmt.Sprintf("owner = \"%s %d\"\n", round.rule, i), managerOnly, condition)
						})
					}
					group.Wait()
					taken := 0
					for i, a := range answers {
						switch a.Code {
						case http.StatusCreated:
							taken++
							if got, want := m.Read(of.file), fmt.Sprintf("owner = \"%s %d\"\n", round.rule, i); got != want || a.Header().Get("Etag") != tagOf(want) {
								t.Errorf("%s: there is %q, and %q was taken", round.rule, got, want)
							}
						case http.StatusPreconditionFailed:
						default:
							t.Errorf("%s: got %d %s", round.rule, a.Code, a.Body)
						}
					}
					if taken != 1 {
						t.Errorf("%s: %d are taken", round.rule, taken)
					}
				}
			})
		}
	}
}

// An unreadable registry.hcl still exists: it is neither absent nor replaced.
func TestMetadataThatCannotBeRead(t *testing.T) {
	for _, test := range []struct {
		rule     string
		inBucket bool
		spoil    func(*testing.T, *managed)
	}{
		{"it is no file", false, func(t *testing.T, m *managed) { m.Write("providers/acme/demo/registry.hcl/x", "x") }},
		{"it is a symlink to nothing", false, func(t *testing.T, m *managed) {
			if err := os.Symlink("nothing", filepath.Join(m.root, "providers/acme/demo/registry.hcl")); err != nil {
				t.Skip(err)
			}
		}},
		{"it is a symlink out of the tree", false, func(t *testing.T, m *managed) {
			if err := os.Symlink(filepath.Join(t.TempDir(), "x"), filepath.Join(m.root, "providers/acme/demo/registry.hcl")); err != nil {
				t.Skip(err)
			}
		}},
		{"the store fails", true, func(t *testing.T, m *managed) {
			m.failing.Store(true)
		}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			m := manage(t, test.inBucket)
			g := m.instance(t)
			test.spoil(t, m)
			for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPut} {
				a := sent(g, method, metadataPath, "owner = \"ops\"\n", managerOnly)
				if a.Code != http.StatusServiceUnavailable || a.Header().Get("Retry-After") == "" || strings.Contains(a.Body.String(), "providers/") {
					t.Errorf("%s: got %d %s", method, a.Code, a.Body)
				}
			}
		})
	}
}

// The registry.hcl can be read and replaced while the registry reads its tree.
func TestMetadataBeforeTheFirstScan(t *testing.T) {
	g := manage(t, false).instance(t)
	g.Snapshot = func() *index.Snapshot { return nil }
	if a := sent(g, http.MethodPut, metadataPath, "owner = \"ops\"\n", managerOnly); a.Code != http.StatusCreated {
		t.Errorf("got %d %s", a.Code, a.Body)
	}
	if a := sent(g, http.MethodGet, metadataPath, "", managerOnly); a.Code != http.StatusOK {
		t.Errorf("got %d %s", a.Code, a.Body)
	}
}
