package blob

import (
	"context"
	"errors"
	"net/url"
	"strconv"

	"cloud.google.com/go/storage"
	gocloud "gocloud.dev/blob"
	_ "gocloud.dev/blob/gcsblob" // gs://
	"google.golang.org/api/googleapi"
	"google.golang.org/grpc/status"
)

// gcsDialect is the dialect of Google Cloud Storage. The tag is the generation: an ETag
// also changes with the metadata, and is not known when an object is read.
type gcsDialect struct{}

func (gcsDialect) open(ctx context.Context, u *url.URL) (*gocloud.Bucket, error) {
	return gocloud.OpenBucket(ctx, u.String())
}

func generation(n int64) string { return quoted(strconv.FormatInt(n, 10)) }

func (gcsDialect) listedTag(o *gocloud.ListObject) string {
	var attributes storage.ObjectAttrs
	if !o.As(&attributes) {
		return ""
	}
	return generation(attributes.Generation)
}

func (gcsDialect) attributesTag(a *gocloud.Attributes) string {
	var attributes storage.ObjectAttrs
	if !a.As(&attributes) {
		return ""
	}
	return generation(attributes.Generation)
}

func (gcsDialect) readerTag(r *gocloud.Reader) string {
	var reader *storage.Reader
	if !r.As(&reader) {
		return ""
	}
	return generation(reader.Attrs.Generation)
}

func (gcsDialect) beforeRead(tag string) func(as func(any) bool) error {
	return func(as func(any) bool) error {
		var object **storage.ObjectHandle
		if !as(&object) {
			return nil
		}
		// Otherwise an object stored as gzip would be decompressed, to another size.
		*object = (*object).ReadCompressed(true)
		if tag == "" {
			return nil
		}
		n, err := strconv.ParseInt(tag[1:len(tag)-1], 10, 64)
		if err != nil {
			return err
		}
		*object = (*object).Generation(n)
		return nil
	}
}

// missing accepts only the error for an object. The driver also treats a missing bucket
// and status 403 as "not found".
func (gcsDialect) missing(err error) bool { return errors.Is(err, storage.ErrObjectNotExist) }

func (gcsDialect) refusal(err error) (string, int) {
	var api *googleapi.Error
	if errors.As(err, &api) {
		if len(api.Errors) > 0 {
			return api.Errors[0].Reason, api.Code
		}
		return "", api.Code
	}
	if s, ok := status.FromError(err); ok && err != nil {
		return s.Code().String(), 0
	}
	return "", 0
}
