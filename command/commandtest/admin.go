package commandtest

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
)

// Admin starts an admin API that answers the GET of a path with a value, and returns its
// address.
func Admin(t *testing.T, path string, value any) (address string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "admin") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	listener, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
		if err := json.NewEncoder(w).Encode(value); err != nil {
			t.Error(err)
		}
	})
	server := &http.Server{Handler: mux}
	go server.Serve(listener)
	t.Cleanup(func() { server.Close() })
	return "unix/" + filepath.Join(dir, "socket")
}
