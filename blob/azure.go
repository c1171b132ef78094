package blob

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	azblob "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	gocloud "gocloud.dev/blob"
	_ "gocloud.dev/blob/azureblob" // azblob://
)

// azureDialect is the dialect of Azure Blob Storage. The tag is the ETag.
type azureDialect struct{}

func (azureDialect) open(ctx context.Context, u *url.URL) (*gocloud.Bucket, error) {
	return gocloud.OpenBucket(ctx, u.String())
}

func (azureDialect) listedTag(o *gocloud.ListObject) string {
	var item container.BlobItem
	if !o.As(&item) || item.Properties == nil || item.Properties.ETag == nil {
		return ""
	}
	return quoted(string(*item.Properties.ETag))
}

func (azureDialect) attributesTag(a *gocloud.Attributes) string { return quoted(a.ETag) }

func (azureDialect) readerTag(r *gocloud.Reader) string {
	var response azblob.DownloadStreamResponse
	if !r.As(&response) || response.ETag == nil {
		return ""
	}
	return quoted(string(*response.ETag))
}

func (azureDialect) beforeRead(tag string) func(as func(any) bool) error {
	return func(as func(any) bool) error {
		var options *azblob.DownloadStreamOptions
		if tag != "" && as(&options) {
			etag := azcore.ETag(tag)
			options.AccessConditions = &azblob.AccessConditions{
				ModifiedAccessConditions: &azblob.ModifiedAccessConditions{IfMatch: &etag},
			}
		}
		return nil
	}
}

// undecoded returns a context in which Azure's client gets objects as they are stored.
// The client sends the range in a header field that Go's HTTP client does not know, so
// that it would decompress objects that were uploaded with Content-Encoding: gzip.
func undecoded(ctx context.Context) context.Context {
	return policy.WithHTTPHeader(ctx, http.Header{"Accept-Encoding": {"identity"}})
}

// missing accepts only the code for an object. The driver also treats a missing
// container, and an account that the name server does not know, as "not found".
func (azureDialect) missing(err error) bool { return bloberror.HasCode(err, bloberror.BlobNotFound) }

func (azureDialect) refusal(err error) (string, int) {
	var response *azcore.ResponseError
	if errors.As(err, &response) {
		return response.ErrorCode, response.StatusCode
	}
	return "", 0
}

// errUnsigned is the error of signing with credentials other than an account key.
var errUnsigned = bloberror.MissingSharedKeyCredential
