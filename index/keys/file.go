package keys

import (
	"bytes"
	"encoding/json"
	"errors"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/index/memo"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// unsignedLine is the only line in the keys file of a namespace that is not signed.
const unsignedLine = "unsigned"

// SaysUnsigned reports whether a keys file says that its namespace is not signed, so that
// its releases count as if the namespace had no keys. Some editors write a byte order mark
// first, and PowerShell writes UTF-16.
func SaysUnsigned(content []byte) bool {
	text, _, err := transform.Bytes(unicode.BOMOverride(transform.Nop), content)
	return err == nil && string(bytes.TrimSpace(text)) == unsignedLine
}

// A File has the keys that count for a namespace: the keys of its keys file, or of the
// copy of a file that is gone or cannot be read.
type File struct {
	*signing.Keyring         // nil: no key counts, and no other may take its place
	bad              []error // about blocks that are left out
	stamp            tree.Stamp
	settled          bool        // a change after it was read would have changed its stamp
	sum              wire.SHA256 // of the file, or of the copy

	unsigned bool     // the file says that the namespace is not signed
	copied   *keyCopy // replaces the file; nil: these are the file's keys
	unread   bool     // neither the file nor a copy could be read
	gone     bool     // there is no file
}

// IsCopy reports whether the keys come from the copy of a file. The file may be nil.
func (k *File) IsCopy() bool { return k != nil && k.copied != nil }

// Sum identifies the keys in the file.
func (k *File) Sum() wire.SHA256 { return k.sum }

// IsFile reports whether the keys come from the file itself, as it was read now or last. The
// file may be nil.
func (k *File) IsFile() bool { return k != nil && k.copied == nil && !k.unread }

// Verifies reports whether there is a key that signatures can be verified with. The file may
// be nil.
func (k *File) Verifies() bool {
	return k != nil && !k.unsigned && k.Keyring != nil && len(k.Keys()) > 0
}

// isCutOff reports whether the file may be a part of its next content: it lacks what the last
// one had, as while a shell, a copy or an editor writes it.
func (k *File) isCutOff(last *File) bool {
	return last.Verifies() && !k.unsigned && k != last && (!k.Verifies() || len(k.bad) > len(last.bad))
}

// recordForm changes when other keys of a file are used.
const recordForm = 2

// A record is the form of a keys file in the memo.
type record struct {
	Form     int // recordForm, or the file is read again
	Keys     []signing.PublicKey
	Problems []string `json:",omitempty"` // with blocks that are left out
	Unsigned bool     `json:",omitempty"`
}

// digest returns the record for the memo.
func (k *File) digest() memo.Record {
	known := record{Form: recordForm, Keys: k.Keys(), Unsigned: k.unsigned}
	for _, err := range k.bad {
		known.Problems = append(known.Problems, err.Error())
	}
	content, _ := json.Marshal(known) // texts and times always encode
	return memo.Record{Stamp: k.stamp, Digest: archive.Digest{SHA256: k.sum, Size: k.stamp.Size, Content: content}}
}

// recallFile returns the file with that record, or nil.
func recallFile(d memo.Record) *File {
	var known record
	if json.Unmarshal(d.Content, &known) != nil || known.Form != recordForm {
		return nil
	}
	file := &File{Keyring: signing.KnownKeyring(known.Keys), stamp: d.Stamp, settled: true, sum: d.SHA256, unsigned: known.Unsigned}
	for _, problem := range known.Problems {
		file.bad = append(file.bad, errors.New(problem))
	}
	return file
}

// newFile reads the content of a keys file.
func newFile(content []byte, now tree.Stamp) *File {
	file := &File{stamp: now, sum: wire.SHA256Of(content)}
	if file.unsigned = SaysUnsigned(content); file.unsigned {
		file.Keyring = signing.KnownKeyring(nil)
	} else {
		file.Keyring, file.bad = signing.ReadKeyring(content)
	}
	return file
}

// Same reports whether two keys files decide alike about each release. Either may be nil. An empty
// file and an unreadable file both have no content, but releases wait for the second one only.
func (k *File) Same(other *File) bool {
	if k == nil || other == nil {
		return k == other
	}
	return k.sum == other.sum && (k.Keyring == nil) == (other.Keyring == nil) &&
		k.unread == other.unread && k.gone == other.gone && k.IsCopy() == other.IsCopy()
}
