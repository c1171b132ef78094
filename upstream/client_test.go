package upstream_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

func TestConcurrentUse(t *testing.T) {
	s := newAcme(t)
	c := s.Client(t, upstream.Origin{})
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			r, err := c.Release(background(), demo, v1, nil)
			if err == nil {
				_, err = c.Download(background(), r, linux, io.Discard)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

// An origin gets no requests for invalid addresses, nor for addresses of other origins.
func TestAddressesAreChecked(t *testing.T) {
	s := newAcme(t)
	c := s.Client(t, upstream.Origin{})
	_, err := c.Versions(background(), address.Address{Hostname: "other.example.com", Namespace: "acme", Name: "demo"})
	if err == nil {
		t.Error("no error for the provider of another origin")
	}
	_, err = c.Versions(background(), address.Address{Namespace: "..", Name: "demo"})
	mustFail(t, err, upstream.ErrNotFound, "not the address of a provider")
	_, err = c.Release(background(), demo, wire.ProviderVersion{Version: "../1.0.0"}, nil)
	mustFail(t, err, upstream.ErrNotFound, "not a version")
	if len(s.Asked()) != 0 {
		t.Errorf("%d requests were made", len(s.Asked()))
	}
}

func TestCallerCancels(t *testing.T) {
	s := newAcme(t)
	ctx, cancel := context.WithCancel(context.Background())
	s.Fault(versions, func(_ http.ResponseWriter, r *http.Request) { cancel(); <-r.Context().Done() })
	_, err := s.Client(t, upstream.Origin{}).Versions(ctx, demo)
	mustFail(t, err, context.Canceled, "")
}

func TestLargeDocuments(t *testing.T) {
	endless := func(w http.ResponseWriter, r *http.Request) {
		block := bytes.Repeat([]byte{' '}, 64<<10)
		for {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	}
	announced := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000000000000")
		w.WriteHeader(200)
	}
	for _, path := range []string{discovery, versions, metadata, sumsFile, sigFile} {
		for rule, answer := range map[string]http.HandlerFunc{"endless": endless, "announced": announced} {
			t.Run(rule+" "+path, func(t *testing.T) {
				s := newAcme(t)
				s.Fault(path, answer)
				c := s.Client(t, upstream.Origin{})
				_, err := c.Release(background(), demo, v1, nil)
				if path == versions {
					_, err = c.Versions(background(), demo)
				}
				mustFail(t, err, upstream.ErrTooLarge, "the limit is")
			})
		}
	}
}

// The documents of a release are limited even if they are signed.
func TestLargeChecksumsAreRefused(t *testing.T) {
	folders, publisher := indextest.New(t), indextest.NewPublisher(t)
	release := folders.Provider("acme/demo", "1.0.0", "linux_amd64").Checksums()
	folders.Keys("acme", publisher)
	list := folders.Read(release.ChecksumsName())
	for i := 0; len(list) <= upstream.MaxChecksums; i++ {
		list += fmt.Sprintf("%064x  terraform-provider-demo_1.0.0_linux_cpu%d.zip\n", i, i)
	}
	folders.Write(release.ChecksumsName(), list)
	release.Signed(publisher)
	_, err := newSite(t, folders).Client(t, upstream.Origin{}).Release(background(), demo, v1, nil)
	mustFail(t, err, upstream.ErrTooLarge, "the limit is")
}

// A full queue says nothing about the origin, and does not open its breaker.
func TestDocumentsAreQueued(t *testing.T) {
	const capacity = upstream.MaxDocuments + upstream.MaxWaiting
	s := newAcme(t)
	g := s.Gated(func(path string) bool { return strings.HasSuffix(path, "/versions") })
	s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
		g.Opened = make(chan struct{})
		if _, err := c.Release(background(), demo, v1, nil); err != nil { // discovers the service
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for i := range capacity {
			a := demo
			a.Name = fmt.Sprintf("x%d", i)
			all.Go(func() {
				if _, err := c.Versions(background(), a); !errors.Is(err, upstream.ErrNotFound) {
					t.Errorf("%s: %v", a, err)
				}
			})
		}
		synctest.Wait()
		if n := g.Now.Load(); n != upstream.MaxDocuments {
			t.Errorf("%d documents are requested at once", n)
		}
		for range upstream.FailuresInARow {
			_, err := c.Versions(background(), demo)
			mustFail(t, err, upstream.ErrUnavailable, "waited for already")
		}
		close(g.Opened)
		all.Wait()
		if _, err := c.Versions(background(), demo); err != nil {
			t.Error(err)
		}
	})
}
