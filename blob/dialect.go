package blob

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	gocloud "gocloud.dev/blob"
)

// A dialect covers the differences that gocloud.dev/blob leaves to its drivers: the
// identity of an object's content, requests for exactly that content, and the meaning
// of errors.
//
// The identity is called a tag. It is the same in listings, attributes and readers, and
// changes whenever the content of a key changes. It is empty if the store provides
// none.
type dialect interface {
	// open returns the bucket of a URL. It sends no request.
	open(ctx context.Context, u *url.URL) (*gocloud.Bucket, error)

	listedTag(*gocloud.ListObject) string
	attributesTag(*gocloud.Attributes) string
	readerTag(*gocloud.Reader) string

	// beforeRead prepares a request for an object's bytes as they are stored. With a
	// tag, the store refuses the request if the content has changed.
	beforeRead(tag string) func(as func(any) bool) error

	// missing reports whether the store said that there is no such object. It is false
	// for a missing bucket, and if the caller may not know.
	missing(error) bool

	// refusal returns the code and HTTP status of the store's answer. They are zero if
	// there was no answer.
	refusal(error) (code string, status int)
}

// dialects has the supported stores, by the scheme of their URLs.
var dialects = map[string]dialect{
	"s3":     s3Dialect{},
	"gs":     gcsDialect{},
	"azblob": azureDialect{},
	"file":   localDialect{},
	"mem":    localDialect{},
}

// dialectOf returns the dialect for a bucket's URL. Its error does not contain the URL,
// whose query may be private.
func dialectOf(u *url.URL) (dialect, error) {
	if d, ok := dialects[u.Scheme]; ok {
		return d, nil
	}
	schemes := make([]string, 0, len(dialects))
	for s := range dialects {
		schemes = append(schemes, s+"://")
	}
	slices.Sort(schemes)
	return nil, fmt.Errorf("no store is known by %q, only by %s", u.Scheme+"://", strings.Join(schemes, ", "))
}

// quoted returns an ETag in its usual form. Listings of some stores omit the quotation
// marks that their headers have. An empty ETag stays empty.
func quoted(etag string) string {
	if etag = strings.Trim(strings.TrimPrefix(etag, "W/"), `"`); etag == "" {
		return ""
	}
	return `"` + etag + `"`
}
