package pages

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// BenchmarkModulePage compares a page of a module with 300 inputs with the list of its
// versions. The goal is half as many requests (DESIGN §11). bench/ measures it in the
// whole server.
func BenchmarkModulePage(b *testing.B) {
	var code bytes.Buffer
	for n := range 300 {
		fmt.Fprintf(&code, "variable \"setting_%03d\" {\n  type = object({\n    enabled = bool\n    names   = optional(list(string), [])\n  })\n  description = \"Whether part %d of the network is created, and the names of its members.\"\n  default     = { enabled = true }\n}\n\n", n, n)
	}
	files := indextest.New(b).Write("modules/acme/vpc/aws/1.0.0/variables.tf", code.String())
	s := siteOf(b, snapshotOf(b, files))
	for name, path := range map[string]string{
		"inputs": "/modules/acme/vpc/aws?tab=inputs", "versions document": "/v1/modules/acme/vpc/aws/versions",
	} {
		b.Run(name, func(b *testing.B) {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			w := httptest.NewRecorder()
			for b.Loop() {
				w.Body.Reset()
				if !s.ServeHTTP(w, r) && !s.Registry.ServeHTTP(w, r) {
					b.Fatal("nobody answers")
				}
			}
			b.ReportMetric(float64(w.Body.Len()), "bytes")
		})
	}
	b.Run("rendering", func(b *testing.B) {
		for b.Loop() {
			s.cache.latest.Store(nil)
			s.get("/modules/acme/vpc/aws?tab=inputs", "")
		}
	})
}

// A private feed is made for each request.
func BenchmarkPrivateFeed(b *testing.B) {
	files := indextest.New(b)
	for n := range 2000 {
		for v := range 5 {
			files.Write(fmt.Sprintf("modules/acme/m%04d/aws/1.%d.0/main.tf", n, v), "# a module")
		}
	}
	s := siteOf(b, snapshotOf(b, files), "allow alice read *")
	for b.Loop() {
		if w := s.get("/feed.atom", "alice"); w.Code != http.StatusOK {
			b.Fatal(w.Code)
		}
	}
}
