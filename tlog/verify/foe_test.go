package verify_test

import (
	"fmt"
	"net/http"
	"strings"

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
	return except(server, "/.well-known/terraform.json", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, services) })
}

// except is a server in whose place another one answers for paths with a part.
func except(server http.Handler, part string, other http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, part) {
			other(w, r)
			return
		}
		server.ServeHTTP(w, r)
	})
}
