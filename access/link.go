package access

import (
	"crypto/hmac"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
	"time"
)

// Errors of Links.Verify, and of Links.AppendQuery.
var (
	// ErrNoLink means that the URL is not a signed link.
	ErrNoLink = errors.New("the URL is not signed")

	// ErrLinkExpired means that the link was valid until it expired.
	ErrLinkExpired = errors.New("the link has expired: ask the registry for a new one")

	// ErrLinkInvalid means that the registry has not signed this link: it is for
	// another file or another tree, or is signed with a key that the registry does not
	// have.
	ErrLinkInvalid = errors.New("the link is not one of this registry's: ask the registry for a new one")

	// ErrNoLinkKeys means that no keys are loaded, so that links can neither be
	// signed nor verified, or that the key of a link is unknown and the keys could not be
	// loaded again.
	ErrNoLinkKeys = errors.New("the registry has no keys for signed links yet: try again")
)

// Links signs links to files and verifies them. A client with a link can read
// that one file until the link expires: clients download archives without
// credentials (checklist 67, 91).
//
// A signed link is URL?exp=UNIX_SECONDS&sig=BASE64URL. The signature covers the tree
// and the file in it to which the link gives access. It does not cover the URL, so it
// does not depend on anything that a client chooses, such as the hostname or the
// spelling of the path. A link can be used any number of times, as clients send a HEAD
// request first (checklist 92).
type Links struct {
	// Life is the minimum time for which a link is valid. Keys must verify for longer
	// than that after they last signed; see MaxLinkLife.
	Life time.Duration

	// Keys returns the loaded keys; nil if there are none yet. It is called for
	// every link.
	Keys func() *LinkKeys

	// Reload is called when a link names a key that is not among Keys, since another
	// instance may just have generated it. It loads the keys again, and limits how
	// often it does so. It reports whether Keys are as they were last stored: otherwise the
	// key may be another instance's. May be nil.
	Reload func() bool
}

// Expiry returns when links made now expire, in Unix seconds.
//
// The time is rounded up to a sixteenth of Life, or at least to whole seconds. All
// links to a file that are made within this interval are identical, so the documents
// that contain them keep their ETag. In return links are valid up to a sixteenth longer
// than configured, and the documents change at this interval.
func (l *Links) Expiry(now time.Time) int64 {
	end := now.Add(l.Life)
	expiry := end.Unix()
	if end.Nanosecond() > 0 {
		expiry++
	}
	step := max(int64(l.Life/16/time.Second), 1)
	if past := expiry % step; past > 0 {
		expiry += step - past
	}
	return expiry
}

// Key returns the key that signs now; nil if there is none. Links that it signed
// can be cached as long as it stays the same.
func (l *Links) Key() *LinkKey {
	if keys := l.Keys(); keys != nil {
		return keys.current()
	}
	return nil
}

// AppendQuery appends the query that makes a URL a signed link to a file. files
// identifies the tree, so that the link is invalid at a registry with the same keys
// that serves another one. The file's name identifies it within the tree: it contains
// the whole address, and whether the address is hosted or mirrored.
//
// The error is ErrNoLinkKeys, and b is unchanged: no link is made without a signature.
func (l *Links) AppendQuery(b []byte, files, file string, expiry int64) ([]byte, error) {
	keys := l.Keys()
	if keys == nil {
		return b, ErrNoLinkKeys
	}
	signature := keys.current().sign(files, file, expiry)
	b = append(b, "?exp="...)
	b = strconv.AppendInt(b, expiry, 10)
	b = append(b, "&sig="...)
	return base64.RawURLEncoding.AppendEncode(b, signature[:]), nil
}

// Verify checks the query of a request for a file of a tree. It returns nil if
// the link is valid, or else ErrNoLink, ErrLinkExpired, ErrLinkInvalid or
// ErrNoLinkKeys.
//
// The parameters may be in any order, as go-getter sorts them, and other
// parameters are ignored: go-getter removes `archive` and `checksum`, and adds
// `terraform-get` (checklist 93).
func (l *Links) Verify(files, file, rawQuery string, now time.Time) error {
	link, err := parseLink(rawQuery)
	if err != nil {
		return err
	}
	// A NUL would allow to divide tree and file differently from how they were signed.
	if strings.IndexByte(files, 0) >= 0 || strings.IndexByte(file, 0) >= 0 {
		return ErrLinkInvalid
	}
	key, err := findLinkKey([linkIDSize]byte(link.signature[:]), l.Keys, l.Reload)
	if err != nil {
		return err
	}
	if key == nil {
		return ErrLinkInvalid
	}
	if expected := key.sign(files, file, link.expiry); !hmac.Equal(link.signature[:], expected[:]) {
		return ErrLinkInvalid
	}
	// Last, so that a forged link is not called expired.
	if now.Unix() >= link.expiry {
		return ErrLinkExpired
	}
	return nil
}

// maxLinkQuery bounds queries, in bytes. A signed link is far shorter, with
// everything that clients may add. A longer query is not parsed.
const maxLinkQuery = 4096

// maxExpiryDigits is a number of digits that always fit into an int64.
const maxExpiryDigits = 18

// A link is the parsed query of a signed link.
type link struct {
	signature linkSignature
	expiry    int64
}

// parseLink parses a query. It decodes no escapes: a signed link needs none, and
// clients that encode the query again add none.
func parseLink(query string) (l link, err error) {
	if len(query) > maxLinkQuery {
		return l, ErrLinkInvalid
	}
	var expiry, signature string
	var expiries, signatures int
	for query != "" {
		var parameter string
		parameter, query, _ = strings.Cut(query, "&")
		switch name, value, _ := strings.Cut(parameter, "="); name {
		case "exp":
			expiry = value
			expiries++
		case "sig":
			signature = value
			signatures++
		}
	}
	if signatures == 0 {
		return l, ErrNoLink
	}
	if signatures > 1 || expiries != 1 {
		return l, ErrLinkInvalid
	}

	// In an array: it is too long for a conversion without an allocation.
	var encoded [len(l.signature) / 3 * 4]byte
	if len(signature) != len(encoded) {
		return l, ErrLinkInvalid
	}
	copy(encoded[:], signature)
	// Decode skips line feeds, and would accept a shorter signature then.
	if n, err := base64.RawURLEncoding.Decode(l.signature[:], encoded[:]); err != nil || n != len(l.signature) {
		return l, ErrLinkInvalid
	}

	// Like the signature, a number has only one accepted spelling.
	if expiry == "" || len(expiry) > maxExpiryDigits || expiry[0] < '1' || expiry[0] > '9' {
		return l, ErrLinkInvalid
	}
	if l.expiry, err = strconv.ParseInt(expiry, 10, 64); err != nil {
		return l, ErrLinkInvalid
	}
	return l, nil
}
