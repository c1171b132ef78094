package index

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
)

// Kinds of secret that a file's content gives away, whatever it is called.
const (
	savedPlan  = "a saved plan"
	privateKey = "a private key"
)

// inspectSize is how much of a file's beginning is looked at. Keys are smaller by
// far, and so is most of what has one in it.
const inspectSize = 64 << 10

// readStart reads the beginning of a file into a buffer of inspectSize bytes.
func readStart(r io.Reader, buffer []byte) ([]byte, error) {
	n, err := io.ReadFull(r, buffer)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	return buffer[:n], nil
}

// secretByContent returns what kind of secret a file of that size begins with,
// or has in its beginning, or nothing.
func secretByContent(start []byte, size int64) string {
	switch {
	case isPlan(start):
		return savedPlan
	case bytes.HasPrefix(start, []byte("PuTTY-User-Key-File-")), isBinaryKey(start, size), hasArmoredKey(start), hasAgeKey(start):
		return privateKey
	}
	return ""
}

// isPlan reports whether a file is what `plan -out` writes: a zip whose first
// entry is tfplan. Before Terraform 0.12 it was that word and a version.
func isPlan(start []byte) bool {
	const header = 30 // of a zip's entry, before its name
	if len(start) > header && string(start[:4]) == "PK\x03\x04" {
		name := start[header:]
		return binary.LittleEndian.Uint16(start[26:]) == 6 && bytes.HasPrefix(name, []byte("tfplan"))
	}
	rest, ok := bytes.CutPrefix(start, []byte("tfplan"))
	return ok && len(rest) > 0 && rest[0] < ' ' && rest[0] != '\n' && rest[0] != '\r' && rest[0] != '\t'
}

// hasArmoredKey looks for -----BEGIN … PRIVATE KEY-----, also in a string of a
// JSON document, where line breaks are escaped. What follows must be a key's
// bytes: documentation shows the line too.
func hasArmoredKey(b []byte) bool {
	for {
		at := bytes.Index(b, []byte("PRIVATE KEY"))
		if at < 0 {
			return false
		}
		before, after := b[:at], b[at+len("PRIVATE KEY"):]
		b = after
		begin := bytes.LastIndex(before[max(0, at-50):], []byte("-----BEGIN "))
		if begin < 0 {
			continue
		}
		after = bytes.TrimPrefix(after, []byte(" BLOCK")) // OpenPGP's
		if after, ok := bytes.CutPrefix(after, []byte("-----")); ok && beginsWithBase64(after) {
			return true
		}
	}
}

// beginsWithBase64 reports whether a run of base64 follows, after line breaks and
// the fields that may come before it, like "Proc-Type: 4,ENCRYPTED".
func beginsWithBase64(b []byte) bool {
	const run, maxFields = 40, 8
	for range maxFields {
		b = skipSpace(b)
		n := 0
		for n < len(b) && n < run && isBase64(b[n]) {
			n++
		}
		if n == run {
			return true
		}
		end := bytes.IndexAny(b[:min(len(b), 200)], "\n\\")
		if end < 0 || !bytes.Contains(b[:end], []byte(": ")) {
			return false
		}
		b = b[end:]
	}
	return false
}

// skipSpace skips white space, also where it is escaped.
func skipSpace(b []byte) []byte {
	for len(b) > 0 {
		switch {
		case b[0] == ' ' || b[0] == '\t' || b[0] == '\r' || b[0] == '\n':
			b = b[1:]
		case len(b) > 1 && b[0] == '\\' && (b[1] == 'n' || b[1] == 'r' || b[1] == 't'):
			b = b[2:]
		default:
			return b
		}
	}
	return b
}

func isBase64(c byte) bool {
	return 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '+' || c == '/' || c == '='
}

// hasAgeKey looks for an identity of age, with which SOPS encrypts.
func hasAgeKey(b []byte) bool {
	for {
		_, after, found := bytes.Cut(b, []byte("AGE-SECRET-KEY-1"))
		if !found {
			return false
		}
		n := 0
		for n < len(after) && n < 58 && ('A' <= after[n] && after[n] <= 'Z' || '0' <= after[n] && after[n] <= '9') {
			n++
		}
		if n == 58 {
			return true
		}
		b = after
	}
}

// isBinaryKey reports whether a file is a PKCS#12 store, or a key as PKCS#8,
// PKCS#1 or SEC 1 encode it: each begins with a sequence that is the whole file,
// and in it a version.
func isBinaryKey(start []byte, size int64) bool {
	const sequence, integer, octets = "\x30", "\x02", "\x04"
	content, whole, ok := openDER(start, sequence)
	if !ok || whole != 0 && whole != size {
		return false
	}
	if rest, ok := bytes.CutPrefix(content, []byte("\x02\x01\x03")); ok {
		inner, _, ok := openDER(rest, sequence)
		return ok && bytes.HasPrefix(inner, []byte("\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07")) // of PKCS#7
	}
	if inner, _, ok := openDER(content, sequence); ok { // a PKCS#8 key that is encrypted has no version
		return bytes.HasPrefix(inner, []byte("\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x05")) // by PKCS#5
	}
	for _, version := range []string{"\x02\x01\x00", "\x02\x01\x01"} {
		rest, ok := bytes.CutPrefix(content, []byte(version))
		if !ok {
			continue
		}
		if inner, _, ok := openDER(rest, sequence); ok { // PKCS#8 names the algorithm
			return bytes.HasPrefix(inner, []byte("\x06"))
		}
		_, length, ok := openDER(rest, integer)
		if ok && length > 64 { // PKCS#1 has the modulus
			return true
		}
		_, length, ok = openDER(rest, octets)
		return ok && length > 16 // SEC 1 has the key
	}
	return false
}

// openDER returns what follows the tag and the length of a value in DER, and the
// size of all of it; zero where the length is not given.
func openDER(b []byte, tag string) (content []byte, size int64, ok bool) {
	b, ok = bytes.CutPrefix(b, []byte(tag))
	if !ok || len(b) == 0 {
		return nil, 0, false
	}
	first, b := b[0], b[1:]
	if first < 0x80 {
		return b, int64(first) + 2, true
	}
	n := int(first - 0x80)
	if n > 4 || n > len(b) {
		return nil, 0, false
	}
	if n == 0 {
		return b, 0, true
	}
	for _, c := range b[:n] {
		size = size<<8 | int64(c)
	}
	return b[n:], size + int64(n) + 2, true
}
