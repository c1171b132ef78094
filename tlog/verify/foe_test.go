package verify_test

import (
	"fmt"
	"net/http"

	"golang.org/x/mod/sumdb/dirhash"

	"github.com/caddy-terraform/caddy-terraform-registry/tlog/tlogtest"
)

// foeAt puts the log of an attacker in the place of a host.
func foeAt(m *machine, name string) *tlogtest.Scripted {
	foe := tlogtest.NewScripted(m.t, name+"/v1/tlog")
	m.servers[name] = foe
	return foe
}

// h1 is the hash of the files in a folder.
func h1(m *machine, dir string) string {
	m.t.Helper()
	h, err := dirhash.HashDir(m.path(dir), "", dirhash.Hash1)
	m.must(err)
	return h
}

// discovering is a server whose discovery document has other services.
func discovering(services string, server http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/.well-known/terraform.json" {
			fmt.Fprint(w, services)
			return
		}
		server.ServeHTTP(w, r)
	})
}
