package archive

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
)

// Secrets must not be in a module's package, since everyone who downloads the module would
// get them. Files whose names mark them as secrets are left out when a folder is packed, and
// a folder with a secret in the content of a file is withheld. In an archive, both kinds are
// noted.

// credentials are names of files and folders in which tools keep their user's
// secrets.
var credentials = []string{
	".netrc", "_netrc", ".envrc", ".git-credentials",
	".terraformrc", "terraform.rc", ".tofurc", "tofu.rc", "credentials.tfrc.json", ".vault-token",
	".ssh", ".gnupg", ".aws", ".azure", ".kube", "application_default_credentials.json",
}

// credentialsKind is the kind of secret that tools keep for their user.
const credentialsKind = "credentials"

// secretByName returns the kind of secret that the name of a file or folder stands for, or
// "" if it is not a secret.
func secretByName(name string) string {
	switch {
	case isState(name):
		return "state"
	case slices.Contains(credentials, name), isEnvironment(name):
		return credentialsKind
	}
	return ""
}

// isState reports whether a file of that name is Terraform's state, or a backup or
// lock of it.
func isState(name string) bool {
	return strings.HasSuffix(name, ".tfstate") || strings.Contains(name, ".tfstate.") && !moduledoc.IsConfiguration(name)
}

// isEnvironment reports whether a file of that name holds environment variables,
// and not an example of them.
func isEnvironment(name string) bool {
	return name == ".env" || strings.HasPrefix(name, ".env.") && !isExample(name)
}

func isExample(name string) bool {
	return slices.Contains([]string{".example", ".sample", ".template"}, path.Ext(name))
}

// Kinds of secret that are recognised by their content, whatever the name.
const (
	savedPlan  = "a saved plan"
	privateKey = "a private key"
)

// inspectSize is how many bytes of a file's beginning are searched. Keys are much
// smaller, and so are most files with a key in them.
const inspectSize = 64 << 10

// readStart reads the beginning of a file into a buffer of inspectSize bytes.
func readStart(r io.Reader, buffer []byte) ([]byte, error) {
	n, err := io.ReadFull(r, buffer)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	return buffer[:n], nil
}

// secretByContent returns the kind of secret that begins like start and has that size, or ""
// if it is not a secret.
func secretByContent(start []byte, size int64) string {
	switch {
	case isPlan(start):
		return savedPlan
	case bytes.HasPrefix(start, []byte("PuTTY-User-Key-File-")), isBinaryKey(start, size), hasArmoredKey(start), hasAgeKey(start):
		return privateKey
	}
	return ""
}

// isPlan reports whether a file was written by `plan -out`: a zip whose first entry
// is tfplan or, before Terraform 0.12, that word and a version.
func isPlan(start []byte) bool {
	const header = 30 // of a zip's entry, before its name
	if len(start) > header && string(start[:4]) == "PK\x03\x04" {
		name := start[header:]
		return binary.LittleEndian.Uint16(start[26:]) == 6 && bytes.HasPrefix(name, []byte("tfplan"))
	}
	rest, ok := bytes.CutPrefix(start, []byte("tfplan"))
	return ok && len(rest) > 0 && rest[0] < ' ' && rest[0] != '\n' && rest[0] != '\r' && rest[0] != '\t'
}

// hasArmoredKey looks for -----BEGIN … PRIVATE KEY-----, even in a JSON string,
// where line breaks are escaped. The bytes of a key must follow: documentation
// shows the line alone.
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

// beginsWithBase64 reports whether a run of base64 follows line breaks and header
// fields, like "Proc-Type: 4,ENCRYPTED".
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

// skipSpace skips white space, escaped or not.
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

// hasAgeKey looks for an age identity, with which SOPS decrypts.
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

// isBinaryKey reports whether a file is a PKCS#12 store, or a key encoded as PKCS#8, PKCS#1
// or SEC 1: each is a sequence that begins with a version. Only the beginning of the file is
// known, and a store may be encoded in BER, so no parser of the standard library can be
// used.
func isBinaryKey(start []byte, size int64) bool {
	const sequence, integer, octets = "\x30", "\x02", "\x04"
	content, whole, ok := openDER(start, sequence)
	if !ok || whole != 0 && whole != size {
		return false
	}
	if rest, ok := bytes.CutPrefix(content, []byte("\x02\x01\x03")); ok {
		inner, _, ok := openDER(rest, sequence)
		return ok && bytes.HasPrefix(inner, []byte("\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07")) // PKCS#7
	}
	if inner, _, ok := openDER(content, sequence); ok { // an encrypted PKCS#8 key has no version
		return bytes.HasPrefix(inner, []byte("\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x05")) // PKCS#5
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

// openDER returns the bytes after the tag and length of a value, and the size of the whole
// value; the size is zero if the length is indefinite, as BER allows.
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
