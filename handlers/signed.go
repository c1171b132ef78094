package handlers

import (
	"sync"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// signedDocuments are documents with the links in them signed. All that are
// made within a minute or so have the same links (access.Links.Expiry), so they
// are made once in that time.
type signedDocuments struct {
	mutex  sync.RWMutex
	expiry int64 // of all links
	made   map[signedID][]byte
	size   int
}

// A signedID is everything but the expiry that the bytes depend on.
type signedID struct {
	*wire.Document
	links
	key *access.LinkKey
}

// sign is the document with links that are good until expiry.
func (g *Registry) sign(d *wire.Document, l links, expiry int64) ([]byte, error) {
	id := signedID{d, l, g.Links.Key()}
	if body := g.signed.get(id, expiry); body != nil {
		return body, nil
	}
	body, err := appendDocument(nil, d, l.prefix, func(b []byte, name string) ([]byte, error) {
		return g.Links.AppendQuery(b, g.Tree, l.folder+name, expiry)
	})
	if err != nil {
		return nil, err
	}
	g.signed.put(id, expiry, body)
	return body, nil
}

// maxSigned bounds them, in bytes; there can be as many as clients find names to
// ask by. signedOverhead is about what one costs beside its bytes.
const (
	maxSigned      = 8 << 20
	signedOverhead = 256
)

// get returns the document, or nil if it has to be made.
func (s *signedDocuments) get(id signedID, expiry int64) []byte {
	s.mutex.RLock()
	defer s.mutex.RUnlock()
	if s.expiry != expiry {
		return nil
	}
	return s.made[id]
}

func (s *signedDocuments) put(id signedID, expiry int64, body []byte) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.expiry != expiry || s.size > maxSigned {
		s.expiry, s.made, s.size = expiry, make(map[signedID][]byte), 0
	}
	s.made[id] = body
	s.size += len(body) + len(id.folder) + len(id.prefix) + len(id.tag) + signedOverhead
}
