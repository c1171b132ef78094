package blob

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"time"

	gocloud "gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
	_ "gocloud.dev/blob/memblob" // mem://
	"gocloud.dev/gcerrors"
)

// localDialect is the dialect of a folder and of memory. The tag is the time and the
// size.
type localDialect struct{}

func (localDialect) open(ctx context.Context, u *url.URL) (*gocloud.Bucket, error) {
	if u.Scheme == fileblob.Scheme {
		// Otherwise the folder would get a file with attributes beside each file.
		query := u.Query()
		if !query.Has("metadata") {
			query.Set("metadata", "skip")
		}
		plain := *u
		plain.RawQuery = query.Encode()
		u = &plain
	}
	return gocloud.OpenBucket(ctx, u.String())
}

func localTag(at time.Time, size int64) string {
	return quoted(fmt.Sprintf("%x-%x", at.UnixNano(), size))
}

func (localDialect) listedTag(o *gocloud.ListObject) string     { return localTag(o.ModTime, o.Size) }
func (localDialect) attributesTag(a *gocloud.Attributes) string { return localTag(a.ModTime, a.Size) }
func (localDialect) readerTag(r *gocloud.Reader) string         { return localTag(r.ModTime(), r.Size()) }

// beforeRead checks the opened file, which may be newer than the file whose attributes
// the driver has read.
func (localDialect) beforeRead(tag string) func(as func(any) bool) error {
	return func(as func(any) bool) error {
		var f *os.File
		if tag == "" || !as(&f) {
			return nil
		}
		info, err := f.Stat()
		if err != nil {
			return err
		}
		if localTag(info.ModTime(), info.Size()) != tag {
			return ErrChanged
		}
		return nil
	}
}

func (localDialect) missing(err error) bool { return gcerrors.Code(err) == gcerrors.NotFound }

func (localDialect) refusal(error) (string, int) { return "", 0 }
