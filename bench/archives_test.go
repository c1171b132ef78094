package main

import (
	"net/http"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/bench/internal/server"
)

// A package that is listed is not yet one that has come in.
func TestArchives(t *testing.T) {
	const listed, read = `{"hashes":["zh:00"],"url":"a.zip"}`, `{"hashes":["h1:AA=","zh:00"],"url":"a.zip"}`
	for _, c := range []struct {
		name, body string
		status     int
		all, read  int // all is negative where there are none
	}{
		{"nothing", `{"archives":{}}`, http.StatusOK, 0, 0},
		{"one is listed", `{"archives":{"linux_amd64":` + listed + `}}`, http.StatusOK, 1, 0},
		{"one is read, one is listed", `{"archives":{"linux_amd64":` + listed + `,"linux_arm64":` + read + `}}`, http.StatusOK, 2, 1},
		{"all are read", `{"archives":{"linux_amd64":` + read + `,"linux_arm64":` + read + `}}`, http.StatusOK, 2, 2},
		{"an error", `{"archives":{}}`, http.StatusBadGateway, -1, 0},
		{"no JSON", `archives`, http.StatusOK, -1, 0},
	} {
		found, err := archivesIn(&server.Answer{Status: c.status, Body: []byte(c.body)})
		switch {
		case (err != nil) != (c.all < 0):
			t.Errorf("%s: the error is %v", c.name, err)
		case err == nil && (len(found) != c.all || found.read() != c.read):
			t.Errorf("%s: %d packages of which %d are read, want %d and %d", c.name, len(found), found.read(), c.all, c.read)
		}
	}
}
