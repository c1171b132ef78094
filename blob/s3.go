package blob

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	gocloud "gocloud.dev/blob"
	"gocloud.dev/blob/s3blob"
)

// idleConnections is the number of idle connections to a store that are kept open. With
// the SDK's 10, most requests of a fleet of clients would need a new connection.
const idleConnections = 100

// s3Dialect is the dialect of S3 and of stores with its protocol. The tag is the ETag.
type s3Dialect struct{}

func (s3Dialect) open(ctx context.Context, u *url.URL) (*gocloud.Bucket, error) {
	opener := new(s3blob.URLOpener)
	b, err := opener.OpenBucketURL(ctx, u)
	if err != nil {
		return nil, err
	}
	var client *s3.Client
	if !b.As(&client) {
		return nil, errors.New("the S3 driver has no client")
	}
	options := client.Options()
	// A range of an object has no checksum to compare. The SDK would report this on the
	// standard error each time.
	options.DisableLogOutputChecksumValidationSkipped = true
	// The SDK has made a client with the certificate authorities of AWS_CA_BUNDLE.
	if made, ok := options.HTTPClient.(*awshttp.BuildableClient); ok {
		options.HTTPClient = made.WithTransportOptions(func(t *http.Transport) {
			t.MaxIdleConns, t.MaxIdleConnsPerHost = idleConnections, idleConnections
		})
	}
	options.APIOptions = append(options.APIOptions, refuseOtherListings)
	// OpenBucketURL has set the opener's options for encryption and checksums.
	return s3blob.OpenBucket(ctx, s3.New(options), u.Host, &opener.Options)
}

// refuseOtherListings makes lists fail whose answer is none: without a body, with a page in
// HTML, or cut off without a place at which to go on. The SDK takes all of them for the end of
// a list.
func refuseOtherListings(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("refuseOtherListings",
		func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
			out, metadata, err := next.HandleInitialize(ctx, in)
			if err == nil && !isListing(out.Result) {
				err = errIncomplete
			}
			return out, metadata, err
		}), middleware.After)
}

// isListing reports whether a result has what each list has, if it is a list, and a place at
// which to go on if it is cut off.
func isListing(result any) bool {
	list, ok := result.(*s3.ListObjectsV2Output)
	if !ok {
		return true
	}
	isList := list.IsTruncated != nil || list.Name != nil || len(list.Contents) > 0
	return isList && (!aws.ToBool(list.IsTruncated) || aws.ToString(list.NextContinuationToken) != "")
}

func (s3Dialect) listedTag(o *gocloud.ListObject) string {
	var object types.Object
	if !o.As(&object) || object.ETag == nil {
		return ""
	}
	return quoted(*object.ETag)
}

func (s3Dialect) attributesTag(a *gocloud.Attributes) string { return quoted(a.ETag) }

func (s3Dialect) readerTag(r *gocloud.Reader) string {
	var output s3.GetObjectOutput
	if !r.As(&output) || output.ETag == nil {
		return ""
	}
	return quoted(*output.ETag)
}

func (s3Dialect) beforeRead(tag string) func(as func(any) bool) error {
	return func(as func(any) bool) error {
		var input *s3.GetObjectInput
		if tag != "" && as(&input) {
			input.IfMatch = &tag
		}
		return nil
	}
}

func (s3Dialect) missing(err error) bool {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return false
	}
	// The answer to a HEAD has no body, and so has only this code.
	return api.ErrorCode() == "NoSuchKey" || api.ErrorCode() == "NotFound"
}

func (s3Dialect) refusal(err error) (code string, status int) {
	var api smithy.APIError
	if errors.As(err, &api) {
		code = api.ErrorCode()
	}
	var response *awshttp.ResponseError
	if errors.As(err, &response) {
		status = response.HTTPStatusCode()
	}
	return code, status
}
