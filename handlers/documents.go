package handlers

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/cache"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// writeDocument answers with a document and links in it.
func (g *Registry) writeDocument(w http.ResponseWriter, r *request, d *wire.Document, l links) error {
	added, expiry := g.tag+l.tag, int64(0)
	if r.target.private && len(d.Links) > 0 {
		expiry = g.Links.Expiry(time.Now())
		added += "-" + strconv.FormatInt(expiry, 36)
	}
	c := Content{Type: jsonType, Body: d.Head, Caching: r.revalidate(), ETag: d.Tag}
	if added != "" {
		c.ETag = strings.TrimSuffix(d.Tag, `"`) + added + `"`
	}
	if c.NotModified(w, r.Request) {
		r.answered(r.Request, http.StatusNotModified, 0)
		return nil
	}
	switch {
	case expiry != 0:
		var err error
		if c.Body, err = g.sign(d, l, expiry); err != nil {
			return linksUnsigned(err)
		}
	case l.prefix != "" || len(d.Tail) > 0:
		b, _ := g.buffers.Get().(*[]byte)
		if b == nil {
			b = new([]byte)
		}
		defer g.buffers.Put(b)
		*b, _ = appendDocument((*b)[:0], d, l.prefix, nil) // cannot fail without signing
		c.Body = *b
	}
	return r.write(w, http.StatusOK, c)
}

// setAge tells the age of a list that could not be renewed in time.
func setAge(w http.ResponseWriter, age time.Duration) {
	if age > 0 {
		set(w, "Age", strconv.FormatInt(int64(age/time.Second), 10))
	}
}

// jsonType is the Content-Type of documents, exactly (checklist 2, 63, 108).
const jsonType = "application/json"

// write answers with content, and records that.
func (r *request) write(w http.ResponseWriter, status int, c Content) error {
	r.answered(r.Request, status, int64(len(c.Body)))
	c.Write(w, r.Request, status)
	return nil
}

// appendDocument writes a document with prefix before each link, and after it what
// sign appends for the file of that name; nil appends nothing.
func appendDocument(b []byte, d *wire.Document, prefix string, sign func(b []byte, name string) ([]byte, error)) ([]byte, error) {
	done := 0
	for _, link := range d.Links {
		b = append(b, d.Head[done:link.Start]...)
		b = append(b, prefix...)
		done = link.Start
		if sign == nil {
			continue
		}
		name := d.Head[link.Start:link.End]
		var err error
		if b, err = sign(append(b, name...), string(name)); err != nil {
			return b, err
		}
		if done = link.End; d.Head[done] == '?' { // sign has begun a query
			b = append(b, '&')
			done++
		}
	}
	b = append(b, d.Head[done:]...)
	return append(b, d.Tail...), nil
}

// revalidate is the Cache-Control of what may change.
func (r *request) revalidate() string {
	if r.target.private {
		return "private, no-cache"
	}
	return "no-cache"
}

// keptFor is the Cache-Control of what may be kept.
func (r *request) keptFor(life string) string {
	if r.target.private {
		return "private, " + life
	}
	return "public, " + life
}

// shortHash makes validators of different configurations differ.
func shortHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return base64.RawURLEncoding.EncodeToString(sum[:6])
}

// Documents with signed links are kept too. All that are made within a minute or
// so have the same links (access.Links.Expiry), so they are made once in that time.

// maxSigned bounds the signed documents, in bytes. There can be as many as there
// are names by which clients ask.
const maxSigned = 8 << 20

// A signedID is everything that the bytes of a signed document depend on.
type signedID struct {
	*wire.Document
	links
	key    *access.LinkKey
	expiry int64
}

// sign returns the document with links that are valid until expiry.
func (g *Registry) sign(d *wire.Document, l links, expiry int64) ([]byte, error) {
	id := signedID{d, l, g.Links.Key(), expiry}
	if body, ok := g.signed.Get(id); ok {
		return body, nil
	}
	body, err := appendDocument(nil, d, l.prefix, func(b []byte, name string) ([]byte, error) {
		return g.Links.AppendQuery(b, g.Tree, l.folder+name, expiry)
	})
	if err != nil {
		return nil, err
	}
	g.signed.Put(id, body, cache.UntilEvicted)
	return body, nil
}
