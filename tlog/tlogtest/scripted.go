package tlogtest

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"
	sumdb "golang.org/x/mod/sumdb/tlog"

	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
)

// NewSigner returns a new key of a log, and the line of its verifier.
func NewSigner(t testing.TB, origin string) (signer note.Signer, public string) {
	t.Helper()
	private, public, err := note.GenerateKey(rand.Reader, origin)
	if err == nil {
		signer, err = note.NewSigner(private)
	}
	if err != nil {
		t.Fatal(err)
	}
	return signer, public
}

// A Scripted is the log of a registry that enters whatever a test says, as an attacker may who
// holds the key. It answers as a registry, with one bundle at most.
type Scripted struct {
	Public  string // the verifier's line
	Entries []string

	// Tells reports whether look-ups have an entry. Nil: they have all entries.
	Tells func(entry string) bool

	t      testing.TB
	signer note.Signer
}

// NewScripted returns a log without entries.
func NewScripted(t testing.TB, origin string) *Scripted {
	t.Helper()
	s := &Scripted{t: t}
	s.signer, s.Public = NewSigner(t, origin)
	return s
}

// Add adds an entry, and its last field.
func (s *Scripted) Add(format string, args ...any) {
	s.Entries = append(s.Entries, fmt.Sprintf("%s %032x", fmt.Sprintf(format, args...), len(s.Entries)))
}

// ServeHTTP implements http.Handler.
func (s *Scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var hashes []sumdb.Hash
	reader := sumdb.HashReaderFunc(func(indexes []int64) (list []sumdb.Hash, err error) {
		for _, i := range indexes {
			list = append(list, hashes[i])
		}
		return list, nil
	})
	for n, e := range s.Entries {
		more, err := sumdb.StoredHashes(int64(n), []byte(e), reader)
		s.must(err)
		hashes = append(hashes, more...)
	}
	size := int64(len(s.Entries))
	root, err := sumdb.TreeHash(size, reader)
	s.must(err)
	signed, err := tlog.Checkpoint{Origin: s.signer.Name(), Size: size, Root: root}.Sign(s.signer)
	s.must(err)
	path := strings.TrimPrefix(r.URL.Path, "/v1/tlog/")
	switch {
	case r.URL.Path == "/.well-known/terraform.json":
		fmt.Fprint(w, `{"tlog.v1":"/v1/tlog/"}`)
	case path == "checkpoint":
		w.Write(signed)
	case path == "key":
		fmt.Fprintln(w, s.Public)
	case path == "continues" && size > 0:
		if _, err := tlog.ParseSuccession(s.Entries[0]); err != nil {
			http.NotFound(w, r)
			return
		}
		proof, err := sumdb.ProveRecord(size, 0, reader)
		s.must(err)
		fmt.Fprint(w, tlog.Lookup{Signed: signed, Entries: []tlog.ProvenEntry{{Text: s.Entries[0], Proof: tlog.Proof{Hashes: proof}}}})
	case path == "consistency":
		var from int64
		fmt.Sscan(r.URL.Query().Get("from"), &from)
		var proof sumdb.TreeProof
		if from < size {
			proof, err = sumdb.ProveTree(size, from, reader)
			s.must(err)
		}
		fmt.Fprint(w, tlog.Consistency{Hashes: proof}.String()+"\n"+string(signed))
	case strings.HasPrefix(path, "tile/entries/"):
		w.Write(tlog.EncodeBundle(s.Entries))
	case strings.HasPrefix(path, "lookup/"):
		parts := strings.Split(path, "/")
		address := strings.Join(parts[2:len(parts)-1], "/") + " " // under any hostname, as what is merged
		l := tlog.Lookup{Signed: signed}
		for n, e := range s.Entries {
			if strings.Contains(e, address) && (s.Tells == nil || s.Tells(e)) {
				proof, err := sumdb.ProveRecord(size, int64(n), reader)
				s.must(err)
				l.Entries = append(l.Entries, tlog.ProvenEntry{Text: e, Proof: tlog.Proof{Index: int64(n), Hashes: proof}})
			}
		}
		if len(l.Entries) == 0 {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, l)
	default:
		http.NotFound(w, r)
	}
}

func (s *Scripted) must(err error) {
	if err != nil {
		s.t.Error(err)
	}
}
