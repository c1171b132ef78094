package access

import (
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
	"time"
)

// What Verify, and AppendQuery, may say.
var (
	// ErrNoLink means that the request is not one for a signed link.
	ErrNoLink = errors.New("the URL is not signed")

	// ErrLinkExpired means that the link was good until it expired.
	ErrLinkExpired = errors.New("the link has expired: ask the registry for a new one")

	// ErrLinkInvalid means that the registry has not signed this link: not for
	// this file, not of this tree, or not with a key it still has.
	ErrLinkInvalid = errors.New("the link is not one of this registry's: ask the registry for a new one")

	// ErrNoLinkKeys means that there are no keys now, so that links can neither
	// be signed nor verified.
	ErrNoLinkKeys = errors.New("the registry has no keys for signed links yet: try again")
)

// Links signs links to files and verifies them. Whoever has a link can read that
// one file until the link expires: clients fetch archives without credentials
// (checklist 67, 91).
//
// A signed link is URL?exp=UNIX_SECONDS&sig=BASE64URL. What is signed is not the
// URL but what it is meant to open: a tree and a file in it. Nothing that a client
// chooses is part of that, neither the name it asks by nor how it spells the path.
// A link can be used any number of times, as clients ask with HEAD first
// (checklist 92).
type Links struct {
	// Life is how long a link is good, at least. Keys are to stay known for
	// longer than that after they were last signed with.
	Life time.Duration

	// Keys returns the keys at hand; nil if there are none yet. It is called for
	// every link.
	Keys func() *LinkKeys

	// Unknown is called when a link names a key that is not among Keys, which
	// another instance may have made just now. It asks for them to be reloaded,
	// and decides how often that is done. May be nil.
	Unknown func()
}

// Expiry is when links made now expire, in Unix seconds.
//
// It is rounded up to a sixteenth of Life, at least to whole seconds. So all
// links to a file that are made within that time are the same, byte for byte,
// and the documents that hold them keep their ETag. In return, links live up to
// a sixteenth longer than asked for, and the documents change at that pace.
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

// Key is the one that signs now; nil if there is none. What was signed with it can
// be handed out again as long as it is the same.
func (l *Links) Key() *LinkKey {
	if keys := l.Keys(); keys != nil {
		return keys.Current()
	}
	return nil
}

// AppendQuery appends the query that makes a URL a signed link to a file. Tree
// identifies where the file is, so that the link is worth nothing at a registry
// of another tree that has the same keys. The file's name has all of its address
// in it, and whether that is hosted or mirrored.
//
// The error is ErrNoLinkKeys, and b is returned as it was: there is never a link
// that is not signed.
func (l *Links) AppendQuery(b []byte, tree, file string, expiry int64) ([]byte, error) {
	keys := l.Keys()
	if keys == nil {
		return b, ErrNoLinkKeys
	}
	signature := keys.Current().sign(tree, file, expiry)
	b = append(b, "?exp="...)
	b = strconv.AppendInt(b, expiry, 10)
	b = append(b, "&sig="...)
	return base64.RawURLEncoding.AppendEncode(b, signature[:]), nil
}

// Verify checks the query of a request for a file of a tree. It returns nil if
// the link is good, or ErrNoLink, ErrLinkExpired, ErrLinkInvalid or
// ErrNoLinkKeys.
//
// The parameters may come in any order, as go-getter sorts them, and others
// beside them are ignored: it takes `archive` and `checksum` off, and adds
// `terraform-get` (checklist 93).
func (l *Links) Verify(tree, file, rawQuery string, now time.Time) error {
	link, err := parseLink(rawQuery)
	if err != nil {
		return err
	}
	// With a NUL in them, they could be divided in another way than was signed.
	if strings.IndexByte(tree, 0) >= 0 || strings.IndexByte(file, 0) >= 0 {
		return ErrLinkInvalid
	}
	if err := l.verify(&link, tree, file); err != nil {
		return err
	}
	// Only now: a forged link is not to be called expired.
	if now.Unix() >= link.expiry {
		return ErrLinkExpired
	}
	return nil
}

func (l *Links) verify(link *link, tree, file string) error {
	reloaded := l.Unknown == nil
	for {
		keys := l.Keys()
		if keys != nil {
			genuine, known := keys.verify(&link.signature, tree, file, link.expiry)
			if genuine {
				return nil
			}
			if known {
				return ErrLinkInvalid
			}
		}
		switch {
		case !reloaded:
			l.Unknown()
			reloaded = true
		case keys == nil:
			return ErrNoLinkKeys
		default:
			return ErrLinkInvalid
		}
	}
}

// maxLinkQuery is far more than the query of a link is, with all that clients
// may add. A longer one is not looked at.
const maxLinkQuery = 4096

// maxExpiry is the number of digits that always fit.
const maxExpiry = 18

// A link is the query of a signed link, as far as it is of interest.
type link struct {
	signature linkSignature
	expiry    int64
}

// parseLink reads a query. It decodes no escapes: what a signed link has in it
// needs none, and clients that encode the query anew add none.
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

	// In an array, as it is more than the compiler converts without allocating.
	var encoded [len(l.signature) / 3 * 4]byte
	if len(signature) != len(encoded) {
		return l, ErrLinkInvalid
	}
	copy(encoded[:], signature)
	// It skips line feeds, and would be content with less.
	if n, err := base64.RawURLEncoding.Decode(l.signature[:], encoded[:]); err != nil || n != len(l.signature) {
		return l, ErrLinkInvalid
	}

	// One spelling of a number only, as of the signature.
	if expiry == "" || len(expiry) > maxExpiry || expiry[0] < '1' || expiry[0] > '9' {
		return l, ErrLinkInvalid
	}
	if l.expiry, err = strconv.ParseInt(expiry, 10, 64); err != nil {
		return l, ErrLinkInvalid
	}
	return l, nil
}
