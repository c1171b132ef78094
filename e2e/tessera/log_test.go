// Package tessera_test reads a log of the registry, over HTTP as it is served, with Tessera's
// client and fsck. They know such logs by C2SP's tlog-tiles, and nothing of the registry.
package tessera_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
	"github.com/transparency-dev/tessera/api"
	"github.com/transparency-dev/tessera/client"
	"github.com/transparency-dev/tessera/fsck"
	"golang.org/x/mod/sumdb/note"

	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog/tlogtest"
)

// A served is a log as a registry serves it.
type served struct {
	*tlog.Log
	*client.HTTPFetcher
	verifier note.Verifier

	change func(path string, body []byte) // changes an answer; nil: none is changed
}

// serve serves a log with so many entries.
func serve(t *testing.T, entries int) *served {
	t.Helper()
	storage := tlogtest.New(t)
	s := &served{Log: storage.MustOpen(t), verifier: storage.Verifier}
	s.add(t, 0, entries)
	registry := &handlers.Registry{Snapshot: func() *index.Snapshot { return nil }, Log: func() *tlog.Log { return s.Log }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		recorded := httptest.NewRecorder()
		if !registry.ServeHTTP(recorded, r) {
			http.NotFound(w, r)
			return
		}
		body := recorded.Body.Bytes()
		if s.change != nil {
			s.change(r.URL.Path, body)
		}
		w.WriteHeader(recorded.Code)
		w.Write(body)
	}))
	t.Cleanup(server.Close)
	root, err := url.Parse(server.URL + "/v1/tlog/")
	if err != nil {
		t.Fatal(err)
	}
	if s.HTTPFetcher, err = client.NewHTTPFetcher(root, server.Client()); err != nil {
		t.Fatal(err)
	}
	return s
}

// add adds entries from a number on.
func (s *served) add(t *testing.T, from, to int) {
	t.Helper()
	var leaves []tlog.Leaf
	for n := from; n < to; n++ {
		leaf, err := tlog.ParseLeaf(fmt.Sprintf("offered 2026-01-01T00:00:00Z module acme/m%d/aws 1.0.0 h1:%s= zh:%064x %032x", n, strings.Repeat("A", 43), n, n))
		if err != nil {
			t.Fatal(err)
		}
		leaves = append(leaves, leaf)
	}
	if err := s.Append(t.Context(), leaves...); err != nil {
		t.Fatal(err)
	}
}

// check reads the whole log with Tessera's fsck.
func (s *served) check(ctx context.Context) error {
	return fsck.New(tlogtest.Origin, s.verifier, s, leafHashes, fsck.Opts{N: 4}).Check(ctx)
}

func leafHashes(bundle []byte) (hashes [][]byte, err error) {
	var b api.EntryBundle
	if err := b.UnmarshalText(bundle); err != nil {
		return nil, err
	}
	for _, e := range b.Entries {
		hashes = append(hashes, rfc6962.DefaultHasher.HashLeaf(e))
	}
	return hashes, nil
}

// Of the entries, fsck makes the same checkpoint, tiles and bundles.
func TestFsckReadsALog(t *testing.T) {
	for _, test := range []struct {
		rule    string
		entries int
	}{
		{"one entry", 1},
		{"a bundle that is not full", 255},
		{"a full bundle", 256},
		{"a full bundle and an entry", 257},
		{"several bundles", 1000},
		{"tiles of three levels", 1<<16 + 300},
	} {
		t.Run(test.rule, func(t *testing.T) {
			if err := serve(t, test.entries).check(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// Fsck does notice what is not as it was signed.
func TestFsckNoticesWhatIsNotSigned(t *testing.T) {
	for _, test := range []struct{ rule, path string }{
		{"another entry", "/v1/tlog/tile/entries/001"},
		{"another hash of an entry", "/v1/tlog/tile/0/002"},
		{"another hash of a tile that is not full", "/v1/tlog/tile/1/000.p/3"},
		{"another checkpoint", "/v1/tlog/checkpoint"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			s := serve(t, 1000)
			changed := false
			s.change = func(path string, body []byte) {
				if path == test.path {
					body[len(body)/2]++
					changed = true
				}
			}
			if err := s.check(t.Context()); err == nil || !changed {
				t.Errorf("fsck says %v; that something was changed is %v", err, changed)
			}
		})
	}
}

// Tessera makes the proofs that the registry tells.
func TestProofsAreThoseOfTessera(t *testing.T) {
	const before, size = 300, 1000
	s := serve(t, before)
	old, _, _, err := client.FetchCheckpoint(t.Context(), s.ReadCheckpoint, s.verifier, tlogtest.Origin)
	if err != nil {
		t.Fatal(err)
	}
	s.add(t, before, size)
	now, _, _, err := client.FetchCheckpoint(t.Context(), s.ReadCheckpoint, s.verifier, tlogtest.Origin)
	if err != nil {
		t.Fatal(err)
	}
	builder, err := client.NewProofBuilder(t.Context(), now.Size, s.ReadTile)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []uint64{0, 255, 256, 299, 999} {
		made, err := builder.InclusionProof(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		told, err := s.Prove(t.Context(), s.Head(), int64(n))
		if err != nil {
			t.Fatal(err)
		}
		var hashes [][]byte
		for _, h := range told.Hashes {
			hashes = append(hashes, h[:])
		}
		if fmt.Sprintf("%x", hashes) != fmt.Sprintf("%x", made) {
			t.Errorf("the proof of entry %d is %x, and Tessera's %x", n, hashes, made)
		}
		bundle, err := client.GetEntryBundle(t.Context(), s.ReadEntryBundle, n/256, now.Size)
		if err != nil {
			t.Fatal(err)
		}
		leaf := rfc6962.DefaultHasher.HashLeaf(bundle.Entries[n%256])
		if err := proof.VerifyInclusion(rfc6962.DefaultHasher, n, now.Size, leaf, hashes, now.Hash); err != nil {
			t.Errorf("entry %d: %v", n, err)
		}
	}
	told, err := s.Consistency(t.Context(), s.Head(), before)
	if err != nil {
		t.Fatal(err)
	}
	var hashes [][]byte
	for _, h := range told.Hashes {
		hashes = append(hashes, h[:])
	}
	if err := proof.VerifyConsistency(rfc6962.DefaultHasher, old.Size, now.Size, hashes, old.Hash, now.Hash); err != nil {
		t.Errorf("%d entries after %d: %v", now.Size, old.Size, err)
	}
}
