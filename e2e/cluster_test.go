package e2e_test

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
)

// startBeside runs another Caddy that shares the storage of a running one.
func startBeside(t *testing.T, one *Registry, sites ...Site) *Registry {
	t.Helper()
	r := newRegistry(t, newProxy(t))
	r.onSocket()
	r.options = append(r.options, `storage file_system "`+one.path("data", "caddy")+`"`)
	r.CA = one.CA // from the shared storage
	r.start(t, sites)
	return r
}

// balance is a load balancer in front of several instances: each connection
// goes to the next one. TLS stays end to end between client and instance.
func balance(t *testing.T, instances ...*Registry) endpoint {
	t.Helper()
	socket := endpoint{"unix", instances[0].path("balancer.sock")}
	listener, err := net.Listen(socket.network, socket.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for next := 0; ; next++ {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go join(t, client, instances[next%len(instances)].https)
		}
	}()
	return socket
}

func join(t *testing.T, client net.Conn, to endpoint) {
	defer client.Close()
	instance, err := to.dial(t.Context())
	if err != nil {
		return
	}
	defer instance.Close()
	var copies sync.WaitGroup
	copies.Go(func() { io.Copy(instance, client); closeWrite(instance) })
	copies.Go(func() { io.Copy(client, instance); closeWrite(client) })
	copies.Wait()
}

// download has the links in the document for the download of a provider package.
type download struct {
	Package   string `json:"download_url"`
	Sums      string `json:"shasums_url"`
	Signature string `json:"shasums_signature_url"`
}

// Download requests this document for acme/demo, and returns its links as
// absolute URLs.
func (r *Registry) Download(t *testing.T, host, token string) download {
	t.Helper()
	os, arch, _ := strings.Cut(thisPlatform, "_")
	document := "https://" + host + "/v1/providers/acme/demo/1.0.0/download/" + os + "/" + arch
	answer := r.GetAs(t, token, document)
	var d download
	if err := json.Unmarshal([]byte(answer.Body), &d); err != nil {
		t.Fatalf("%s: %d %s", document, answer.Status, answer.Body)
	}
	base, err := url.Parse(document)
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range []*string{&d.Package, &d.Sums, &d.Signature} {
		if !strings.Contains(*link, "sig=") {
			t.Fatalf("%s is not signed", *link)
		}
		absolute, err := base.Parse(*link)
		if err != nil {
			t.Fatal(err)
		}
		*link = absolute.String()
	}
	return d
}

// Instances that share Caddy's storage make up one registry: the file may come from
// another instance than the document that links to it.
func TestCluster(t *testing.T) {
	t.Parallel()
	tokens := newTokens(t)
	ci := tokens.New("ci")
	const host, hasty = "registry.example.com", "hasty.example.com"
	sites := []Site{
		site(host, privateTree(t), privately(tokens)...),
		site(hasty, newTree(t).Provider("acme/demo", "1.0.0"), append(privately(tokens), "links 1s")...),
	}
	one := startRegistry(t, sites...)
	other := startBeside(t, one, sites...)

	for name, way := range map[string]struct{ signs, serves *Registry }{
		"from the first to the second": {one, other},
		"from the second to the first": {other, one},
	} {
		t.Run(name, func(t *testing.T) {
			links := way.signs.Download(t, host, ci)
			for _, link := range []string{links.Package, links.Sums, links.Signature} {
				if got := way.serves.Get(t, link); got.Status != http.StatusOK {
					t.Errorf("%s: got %d %s", link, got.Status, got.Body)
				}
			}

			path, _, _ := strings.Cut(links.Package, "?")
			_, query, _ := strings.Cut(links.Sums, "?")
			got := way.serves.Get(t, path+"?"+query)
			if got.Status != http.StatusForbidden || !strings.Contains(got.Body, "not one of this registry's for this file") {
				t.Errorf("a link with the signature of another file: got %d %s", got.Status, got.Body)
			}
			elsewhere := strings.ReplaceAll(links.Package, host, hasty)
			if got := way.serves.Get(t, elsewhere); got.Status != http.StatusForbidden {
				t.Errorf("the link at another registry of the same cluster: got %d %s", got.Status, got.Body)
			}

			short := way.signs.Download(t, hasty, ci).Package
			eventually(t, "the link is refused as expired", func() bool {
				got := way.serves.Get(t, short)
				return got.Status == http.StatusForbidden && strings.Contains(got.Body, "this link has expired")
			})
		})
	}

	t.Run("behind a load balancer", func(t *testing.T) {
		one.Proxy.Route(host+":443", balance(t, one, other))
		eachClient(t, func(t *testing.T, c Client) {
			ws := newWorkspace(t, one, greeting(host+"/acme/demo", "1.0.0"))
			ws.Write(t, "module.tf", everyPrivateThing)
			ws.Setenv("TF_TOKEN_registry_example_com", ci)
			c.Run(t, ws, "init")
			c.Run(t, ws, "apply", "-auto-approve")
		})
		for name, r := range map[string]*Registry{"first": one, "second": other} {
			if !usedByClient(r) {
				t.Errorf("the %s instance has answered no client", name)
			}
		}
	})

	t.Run("after one instance has generated a new key", func(t *testing.T) {
		if err := os.Remove(one.path("data", "caddy", "terraform_registry", "link_keys.json")); err != nil {
			t.Fatal(err)
		}
		one.Restart(t, sites...)
		if got := other.Get(t, one.Download(t, host, ci).Package); got.Status != http.StatusOK {
			t.Errorf("got %d %s", got.Status, got.Body)
		}
		if got := one.Get(t, other.Download(t, host, ci).Package); got.Status != http.StatusOK {
			t.Errorf("the other way round: got %d %s", got.Status, got.Body)
		}
	})
}

// usedByClient reports whether the Caddy has answered Terraform or OpenTofu.
func usedByClient(r *Registry) bool {
	for _, e := range r.Log.Accesses("") {
		for _, agent := range e.Request.Headers["User-Agent"] {
			if strings.Contains(agent, "Terraform/") || strings.Contains(agent, "OpenTofu/") {
				return true
			}
		}
	}
	return false
}
