package wire

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/url"
)

// A Document is a JSON answer, encoded once for all requests. It contains bare file
// names. A site that uses longer URLs inserts a prefix before each name, so a Document
// records the positions of the names.
type Document struct {
	// Head and Tail together are the document. Documents with the same end share the
	// tail, which has no links.
	Head, Tail []byte

	// Links are the positions of file names in Head, in order.
	Links []Link

	// Tag is a strong validator of the document without the prefixes that a site
	// inserts, quoted as in an ETag.
	Tag string
}

// A Link is a file name in a document: Head[Start:End]. A query may come after it.
type Link struct{ Start, End int }

// A writer collects the head of a document.
type writer struct {
	bytes.Buffer
	links []Link
}

// value writes v as JSON.
func (w *writer) value(v any) { w.Write(encode(v)) }

// encode returns v as JSON. v consists of strings, numbers and structures of them, which always
// encode.
func encode(v any) []byte {
	encoded, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return encoded
}

// link writes the URL of a file as a JSON string and records its position. A file name
// that is escaped for a URL has no character that JSON would escape. The same is true of the
// query, which begins with ? or is empty.
func (w *writer) link(file, query string) {
	w.WriteByte('"')
	start := w.Len()
	w.WriteString(url.PathEscape(file))
	w.links = append(w.links, Link{start, w.Len()})
	w.WriteString(query)
	w.WriteByte('"')
}

// document returns what has been written, followed by tail, which may be nil.
func (w *writer) document(tail *tail) *Document {
	return newDocument(bytes.Clone(w.Bytes()), w.links, tail)
}

// documentOf returns v as a document without links.
func documentOf(v any) *Document { return newDocument(encode(v), nil, nil) }

// newDocument returns the document of a head, which it keeps, and a tail, which may be nil.
func newDocument(head []byte, links []Link, tail *tail) *Document {
	d := &Document{Head: head, Links: links}
	h := sha256.New()
	h.Write(d.Head)
	if tail != nil {
		d.Tail = tail.content
		h.Write(tail.sum[:])
	}
	d.Tag = `"` + base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:16]) + `"`
	return d
}

// A tail is the common end of several documents.
type tail struct {
	content []byte
	sum     SHA256
}

func newTail(content []byte) *tail {
	return &tail{bytes.Clone(content), sha256.Sum256(content)}
}
