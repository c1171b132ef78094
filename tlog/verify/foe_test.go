package verify_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/sumdb/note"
	sumdb "golang.org/x/mod/sumdb/tlog"

	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
)

// A foeLog is a log of an attacker, who holds its key and tells what he likes.
type foeLog struct {
	t       *testing.T
	signer  note.Signer
	public  string
	entries []string
	show    func(entry string) bool // nil: all entries are told
}

// foeAt puts a log of an attacker in the place of a host.
func foeAt(m *machine, name string) *foeLog {
	signer, public := newSigner(m.t, name+"/v1/tlog")
	s := &foeLog{t: m.t, signer: signer, public: public}
	m.servers[name] = s
	return s
}

// add adds an entry without its last field.
func (s *foeLog) add(format string, args ...any) {
	s.entries = append(s.entries, fmt.Sprintf("%s %032x", fmt.Sprintf(format, args...), len(s.entries)))
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

func (s *foeLog) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var hashes []sumdb.Hash
	reader := sumdb.HashReaderFunc(func(indexes []int64) (list []sumdb.Hash, err error) {
		for _, i := range indexes {
			list = append(list, hashes[i])
		}
		return list, nil
	})
	for n, e := range s.entries {
		more, err := sumdb.StoredHashes(int64(n), []byte(e), reader)
		if err != nil {
			s.t.Error(err)
		}
		hashes = append(hashes, more...)
	}
	size := int64(len(s.entries))
	root, err := sumdb.TreeHash(size, reader)
	if err != nil {
		s.t.Error(err)
	}
	signed, err := tlog.Checkpoint{Origin: s.signer.Name(), Size: size, Root: root}.Sign(s.signer)
	if err != nil {
		s.t.Error(err)
	}
	path := strings.TrimPrefix(r.URL.Path, "/v1/tlog/")
	parts := strings.Split(path, "/")
	switch {
	case r.URL.Path == "/.well-known/terraform.json":
		fmt.Fprint(w, `{"tlog.v1":"/v1/tlog/"}`)
	case path == "checkpoint":
		w.Write(signed)
	case path == "key":
		fmt.Fprintln(w, s.public)
	case path == "consistency":
		var from int64
		fmt.Sscan(r.URL.Query().Get("from"), &from)
		var proof sumdb.TreeProof
		if from < size {
			proof, _ = sumdb.ProveTree(size, from, reader)
		}
		fmt.Fprint(w, tlog.Consistency{Hashes: proof}.String()+"\n"+string(signed))
	case strings.HasPrefix(path, "lookup/"):
		l := tlog.Lookup{Signed: signed}
		for n, e := range s.entries {
			if strings.Contains(e, " "+strings.Join(parts[2:len(parts)-1], "/")+" ") && (s.show == nil || s.show(e)) {
				proof, _ := sumdb.ProveRecord(size, int64(n), reader)
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
