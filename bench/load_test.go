package main

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// answering serves an answer of each kind over HTTP/1.1 and HTTP/2.
func answering(t *testing.T, body []byte) (plain, secure target) {
	var answers atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("/right", func(w http.ResponseWriter, _ *http.Request) { w.Write(body) })
	mux.HandleFunc("/empty", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("/changing", func(w http.ResponseWriter, _ *http.Request) {
		changed := bytes.Clone(body)
		changed[1] = byte(answers.Add(1)) // the first one could make a document of it
		w.Write(changed)
	})
	mux.HandleFunc("/private", func(w http.ResponseWriter, r *http.Request) {
		if r.Host != host || r.Header.Get("Authorization") != "Bearer token" {
			w.WriteHeader(http.StatusUnauthorized)
		}
		w.Write(body)
	})
	open := httptest.NewServer(mux)
	t.Cleanup(open.Close)
	files, err := newCertificate(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := tls.LoadX509KeyPair(files.file, files.key)
	if err != nil {
		t.Fatal(err)
	}
	closed := httptest.NewUnstartedServer(mux)
	closed.EnableHTTP2 = true
	closed.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	closed.StartTLS()
	t.Cleanup(closed.Close)
	plain = newTarget(open.Listener.Addr().String(), os.Getpid(), "/right", &answer{status: http.StatusOK, body: body})
	secure = plain
	secure.address = closed.Listener.Addr().String()
	if secure.tls, err = trust(files.file); err != nil {
		t.Fatal(err)
	}
	return plain, secure
}

// A client that takes a wrong answer for the right one measures nothing.
func TestWrongAnswersFail(t *testing.T) {
	if cpuTime(os.Getpid()) == 0 {
		t.Skip("the system does not tell the CPU time of a process as Linux does")
	}
	body := []byte(strings.Repeat("0123456789", 30_000)) // more than one read returns
	plain, secure := answering(t, body)
	l := &lab{options: &options{slice: 50 * time.Millisecond}}
	load := func(right target) func(context.Context, target) (usage, error) {
		return func(ctx context.Context, t target) (usage, error) {
			t.address, t.tls = right.address, right.tls
			return l.load(ctx, t, 2)
		}
	}
	waves := func(http2 bool) func(context.Context, target) (usage, error) {
		return func(ctx context.Context, t target) (usage, error) {
			request := step{path: t.path, authorization: t.authorization}
			u, err := wave(ctx, server{
				address: secure.address, pids: []int{os.Getpid()}, tls: secure.tls,
				inits: []initialization{{steps: []step{request, request}, answers: []target{t, t}}},
			}, 3, http2)
			return usage{answers: int64(len(u.times))}, err
		}
	}
	for client, ask := range map[string]func(context.Context, target) (usage, error){
		"HTTP": load(plain), "TLS": load(secure), "a wave over HTTP/1.1": waves(false), "a wave over HTTP/2": waves(true),
	} {
		for _, c := range []struct {
			name, fails string
			change      func(*target)
		}{
			{"right", "", func(*target) {}},
			{"another status", "404", func(t *target) { t.path = "/missing" }},
			{"another length", "want 300001", func(t *target) { t.length++ }},
			{"another body", "SHA-256", func(t *target) { t.digest = digestOf(nil) }},
			{"a body that changes", "SHA-256", func(t *target) { t.path = "/changing" }},
			{"a body that may change", "", func(t *target) { t.path, t.digest = "/changing", "" }},
			{"no content", "", func(t *target) {
				t.path, t.status, t.length, t.digest = "/empty", http.StatusNoContent, 0, digestOf(nil)
			}},
			{"no credentials", "401", func(t *target) { t.path = "/private" }},
		} {
			asked := plain
			c.change(&asked)
			u, err := ask(t.Context(), asked)
			switch {
			case c.fails == "" && (err != nil || u.answers == 0):
				t.Errorf("%s, %s: %+v, %v", client, c.name, u, err)
			case c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)):
				t.Errorf("%s, %s: the error is %v, want %q in it", client, c.name, err, c.fails)
			}
		}
	}
	plain.path, plain.authorization = "/private", "Bearer token"
	if _, err := l.load(t.Context(), plain, 1); err != nil {
		t.Errorf("with credentials: %v", err)
	}
}

// A package whose checksum or size is wrong would be withheld.
func TestLargePackage(t *testing.T) {
	const size = 3 << 20
	p := bigProvider("big", size, 1)
	root := t.TempDir()
	if err := p.write(root, key{}); err != nil {
		t.Fatal(err)
	}
	file := p.packageFile(root, p.versions[0])
	if info, err := os.Stat(file); err != nil || info.Size() < size || info.Size() > size*3/2 {
		t.Errorf("%v, %v: want about %d bytes", info, err, size)
	}
	z, err := zip.OpenReader(file)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	entry, err := z.Open("terraform-provider-big_v1.0.0")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(sha256.New(), entry); err != nil { // checks the CRC-32
		t.Error(err)
	}
}
