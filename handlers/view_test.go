package handlers_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// visit calls see with the view of a request.
func visit(t testing.TB, g *handlers.Registry, credentials, host string, see func(*handlers.View)) {
	t.Helper()
	r := withHeaders(httptest.NewRequest(http.MethodGet, "/", nil), credentials)
	r.Host = host
	if err := g.Visit(r, func(v *handlers.View) error { see(v); return nil }); err != nil {
		t.Fatal(err)
	}
}

// seen returns the addresses in a list, with the latest version and the number of
// versions.
func seen(t testing.TB, list []handlers.Listed, err error) (all []string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		all = append(all, fmt.Sprintf("%s %s of %d", e.Address, e.Version, e.Versions))
	}
	return all
}

// Lists have each address once, under the name and with the versions of a look-up.
func TestViewLists(t *testing.T) {
	files := indextest.New(t)
	for dir, v := range map[string]string{"": "1.0.0", "a.example.com/": "2.0.0", "b.example.com/": "3.0.0"} {
		files.Provider(dir+"acme/demo", v, "linux_amd64")
		files.Write("modules/"+dir+"acme/vpc/aws/"+v+"/main.tf", "# "+v)
	}
	files.Write("modules/acme/hosted/aws/1.0.0/main.tf", "# a module")
	files.Write("modules/a.example.com/acme/named/aws/1.0.0/main.tf", "# a module")
	// Under this name, no version remains.
	files.Write("modules/acme/gone/aws/1.0.0/main.tf", "# a module")
	files.Write("modules/a.example.com/acme/gone/aws/registry.hcl", `withdrawn "1.0.0" {}`)
	snapshot := scan(t, files)

	const a, b = "a.example.com/", "b.example.com/"
	for _, test := range []struct {
		rule, host string
		configured []string
		rules      []string
		want       []string // modules
	}{
		{"asked by a name under which there is something, both are one list", "a.example.com", nil, nil,
			[]string{"acme/hosted/aws 1.0.0 of 1", "acme/named/aws 1.0.0 of 1", "acme/vpc/aws 2.0.0 of 2", b + "acme/vpc/aws 3.0.0 of 1"}},
		{"asked by another name, they are separate", "c.example.com", nil, nil,
			[]string{"acme/gone/aws 1.0.0 of 1", "acme/hosted/aws 1.0.0 of 1", "acme/vpc/aws 1.0.0 of 1", a + "acme/named/aws 1.0.0 of 1", a + "acme/vpc/aws 2.0.0 of 1", b + "acme/vpc/aws 3.0.0 of 1"}},
		{"a configured name is that of every request", "c.example.com", []string{"a.example.com"}, nil,
			[]string{"acme/hosted/aws 1.0.0 of 1", "acme/named/aws 1.0.0 of 1", "acme/vpc/aws 2.0.0 of 2", b + "acme/vpc/aws 3.0.0 of 1"}},
		{"under the other of two configured names there is what that name has", "a.example.com", []string{"a.example.com", "b.example.com"}, nil,
			[]string{"acme/hosted/aws 1.0.0 of 1", "acme/named/aws 1.0.0 of 1", "acme/vpc/aws 2.0.0 of 2", b + "acme/vpc/aws 3.0.0 of 2"}},
		{"with rules, a name that a client chooses hosts nothing", "a.example.com", nil, []string{"allow anonymous read */*"},
			[]string{"acme/gone/aws 1.0.0 of 1", "acme/hosted/aws 1.0.0 of 1", "acme/vpc/aws 1.0.0 of 1"}},
		{"nor does it show what lies under it, even to those who may read that by another name", "a.example.com", nil, []string{"allow anonymous read *"},
			[]string{"acme/gone/aws 1.0.0 of 1", "acme/hosted/aws 1.0.0 of 1", "acme/vpc/aws 1.0.0 of 1", b + "acme/vpc/aws 3.0.0 of 1"}},
		{"with rules and a configured name, those of hosted addresses are for it", "c.example.com", []string{"a.example.com"}, []string{"allow anonymous read */*"},
			[]string{"acme/hosted/aws 1.0.0 of 1", "acme/named/aws 1.0.0 of 1", "acme/vpc/aws 2.0.0 of 2"}},
		{"rules decide about mirrored addresses by their hostname", "c.example.com", nil, []string{"allow anonymous read b.example.com acme/hosted"},
			[]string{"acme/hosted/aws 1.0.0 of 1", b + "acme/vpc/aws 3.0.0 of 1"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			g := registry(snapshot)
			if test.rules != nil {
				g = privately(t, g, test.rules...)
			}
			g.Hostnames = hostnames(t, test.configured...)
			visit(t, g, anonymous, test.host, func(v *handlers.View) {
				list, err := v.Modules()
				if got := seen(t, list, err); !slices.Equal(got, test.want) {
					t.Errorf("got %q\nwant %q", got, test.want)
				}
				for _, e := range list {
					m, err := v.Module(e.Address)
					if err != nil || m.Latest().Version != e.Version || len(m.Versions) != e.Versions {
						t.Errorf("%s is listed with %s of %d, and looked up it is %+v (%v)", e.Address, e.Version, e.Versions, m, err)
					}
				}
				providers, err := v.Providers()
				for _, e := range providers {
					p, err := v.Provider(e.Address)
					if err != nil || p.Latest().Version != e.Version || len(p.Releases) != e.Versions {
						t.Errorf("%s is listed with %s of %d, and looked up it is %+v (%v)", e.Address, e.Version, e.Versions, p, err)
					}
				}
				if err != nil || len(providers) == 0 {
					t.Errorf("there are %d providers (%v)", len(providers), err)
				}
			})
		})
	}
}

func TestViewLookups(t *testing.T) {
	g := private(t)
	vpc := func(namespace string) address.Address {
		return address.Address{Namespace: namespace, Name: "vpc", System: "aws"}
	}
	null := address.Address{Hostname: "registry.terraform.io", Namespace: "acme", Name: "null"}
	for _, test := range []struct {
		rule, caller string
		module       address.Address
		status       int
		private      bool
	}{
		{"what is public is seen by everyone", anonymous, vpc("open"), 0, false},
		{"what is private is seen by who may read it", reader, vpc("acme"), 0, true},
		{"others are asked who they are", anonymous, vpc("acme"), http.StatusUnauthorized, true},
		{"or it does not exist", stranger, vpc("acme"), http.StatusNotFound, true},
		{"what does not exist is the same", stranger, vpc("acne"), http.StatusNotFound, true},
		{"and asks the same", anonymous, vpc("acne"), http.StatusUnauthorized, true},
	} {
		t.Run(test.rule, func(t *testing.T) {
			visit(t, g, test.caller, ownHost, func(v *handlers.View) {
				_, err := v.Module(test.module)
				status := 0
				if err != nil {
					status, _ = handlers.Status(err)
				}
				if private := v.LinkQuery("", "1.0.0", "archive.zip") != ""; status != test.status || private != test.private {
					t.Errorf("got %d (%v), private %v", status, err, private)
				}
			})
		})
	}
	t.Run("mirrored ones have their hostname", func(t *testing.T) {
		visit(t, g, reader, ownHost, func(v *handlers.View) {
			if p, err := v.Provider(null); err != nil || p.Address != null {
				t.Errorf("got %+v, %v", p, err)
			}
			if _, err := v.Provider(null.WithHostname("")); err == nil {
				t.Error("it is hosted")
			}
		})
	})
}

// A user who may manage everything is an operator.
func TestViewOperator(t *testing.T) {
	snapshot := scan(t, privateTree(t))
	for _, test := range []struct {
		rule  string
		rules []string
		want  bool
	}{
		{"manage everything", []string{"allow reader manage *"}, true},
		{"publish everything", []string{"allow reader publish *"}, false},
		{"read everything", []string{"allow reader read *"}, false},
		{"manage a part", []string{"allow reader manage acme"}, false},
		{"manage everything but a part", []string{"deny reader manage acme", "allow reader manage *"}, false},
		{"manage everything but what may not be published", []string{"deny reader publish acme", "allow reader manage *"}, false},
		{"no rules", nil, false},
	} {
		t.Run(test.rule, func(t *testing.T) {
			g := registry(snapshot)
			if test.rules != nil {
				g = privately(t, g, test.rules...)
			}
			visit(t, g, reader, ownHost, func(v *handlers.View) {
				if v.Operator() != test.want {
					t.Errorf("got %v", v.Operator())
				}
			})
		})
	}
}

// Concurrent requests by many names and of several users get the same answers as alone,
// also while the snapshot is replaced.
func TestListsAtTheSameTime(t *testing.T) {
	files := privateTree(t)
	snapshots := []*index.Snapshot{scan(t, files), scan(t, files)}
	var mutex sync.Mutex
	turn := 0
	g := privately(t, &handlers.Registry{Snapshot: func() *index.Snapshot {
		mutex.Lock()
		defer mutex.Unlock()
		turn++
		return snapshots[turn/5%2]
	}}, "allow anonymous read open", "allow reader read acme")
	for _, caller := range []string{anonymous, reader, stranger} {
		want := askAs(privately(t, registry(snapshots[0]), "allow anonymous read open", "allow reader read acme"), caller, ownHost, "/v1/modules").Body.String()
		var clients sync.WaitGroup
		for client := range 8 {
			clients.Go(func() {
				for i := range 20 {
					if got := askAs(g, caller, fmt.Sprintf("n%d.example.com", client*i), "/v1/modules").Body.String(); got != want {
						t.Errorf("as %q: got %s, want %s", caller, got, want)
					}
				}
			})
		}
		clients.Wait()
	}
}

// Users whom the rules treat alike share lists, and no others do.
func TestAudiences(t *testing.T) {
	var asked []access.Subject
	g := privately(t, registry(scan(t, privateTree(t))), "allow group:a read acme", "allow group:b read open")
	g.Authenticate = func(r *http.Request) (access.Subject, error) {
		s := access.Subject{ID: "x", Groups: strings.Split(r.Header.Get("Authorization"), " ")}
		asked = append(asked, s)
		return s, nil
	}
	for groups, want := range map[string]string{"a": "acme", "b": "open", "a b": "acme open", "c": "", "b a": "acme open"} {
		w := askAs(g, "Authorization: "+groups, ownHost, "/v1/modules")
		var got []string
		for _, namespace := range []string{"acme", "open"} {
			if strings.Contains(w.Body.String(), namespace+"/vpc") {
				got = append(got, namespace)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("groups %s see %q, want %q", groups, got, want)
		}
	}
	if len(asked) != 5 {
		t.Errorf("there were %d look-ups of subjects", len(asked))
	}
}

// A look-up that finds nothing answers about what it was asked for, whatever was looked up
// before it.
func TestViewAnswersAboutItsLastLookUp(t *testing.T) {
	files := indextest.New(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64")
	files.Write("modules/acme/vpc/aws/1.0.0/main.tf", "# a module")
	module := address.Address{Namespace: "acme", Name: "absent", System: "aws"}
	provider := address.Address{Namespace: "acme", Name: "absent"}
	errors := func(before bool) (all []string) {
		visit(t, registry(scan(t, files)), "", "registry.example.com", func(v *handlers.View) {
			for _, lookup := range []func() error{
				func() error { _, _, err := v.ModuleVersion(module, "1.0.0"); return err },
				func() error { _, _, err := v.ProviderRelease(provider, "1.0.0"); return err },
			} {
				if before {
					_, failed := v.Module(address.Address{Namespace: "acme", Name: "vpc", System: "aws"})
					_, failedToo := v.Provider(address.Address{Namespace: "acme", Name: "demo"})
					if failed != nil || failedToo != nil {
						t.Fatal(failed, failedToo)
					}
				}
				all = append(all, fmt.Sprint(lookup()))
			}
		})
		return all
	}
	if got, want := errors(true), errors(false); !slices.Equal(got, want) {
		t.Errorf("after other look-ups: got %q, want %q", got, want)
	}
}
