package blob

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"time"

	gocloud "gocloud.dev/blob"
	"gocloud.dev/gcerrors"
)

const (
	// writerKey is the metadata that distinguishes the writes of an object.
	writerKey = "writer"

	// longestLink is the longest life of a signed URL in S3.
	longestLink = 7 * 24 * time.Hour
)

// Create writes a file that must not exist: if it does, the store refuses and the error
// wraps fs.ErrExist. The file appears whole or not at all. A large file is sent in
// parts. The parts of an incomplete file are removed, by the bucket's lifecycle rules
// if the store could not be asked to remove them.
func (b *Bucket) Create(ctx context.Context, name string, content io.Reader) (fs.FileInfo, error) {
	if b.creating != nil {
		b.creating.Lock()
		defer b.creating.Unlock()
	}
	return b.write(ctx, "create", name, content, &gocloud.WriterOptions{
		IfNotExist: true,
		Metadata:   map[string]string{writerKey: rand.Text()},
	})
}

// Replace is like Create, for a file that may exist.
func (b *Bucket) Replace(ctx context.Context, name string, content io.Reader) (fs.FileInfo, error) {
	return b.write(ctx, "replace", name, content, &gocloud.WriterOptions{})
}

func (b *Bucket) write(ctx context.Context, op, name string, content io.Reader, o *gocloud.WriterOptions) (fs.FileInfo, error) {
	if err := b.upload(ctx, op, name, content, o); err != nil {
		return nil, err
	}
	ctx, w := b.patience.wait(ctx, b.patience.answer)
	defer w.stop()
	i, err := b.head(ctx, op, name)
	if err != nil {
		return nil, err
	}
	return i, nil
}

func (b *Bucket) upload(ctx context.Context, op, name string, content io.Reader, o *gocloud.WriterOptions) error {
	key, err := b.key(op, name)
	if err != nil {
		return err
	}
	// The content is not read while a part is sent. The last parts need twice the time.
	life := b.patience.answer + b.patience.idle
	sending, w := b.patience.wait(ctx, life)
	defer w.stop()
	u := &uploaded{content: content, wait: w, life: life}
	writer, err := b.store.NewWriter(sending, key, o)
	if err != nil {
		return b.pathError(sending, op, name, err)
	}
	_, err = writer.ReadFrom(u)
	if u.err != nil {
		// Only a cancelled write leaves nothing behind when it is closed.
		w.stop()
		writer.Close()
		return u.err
	}
	err = errors.Join(err, writer.Close())
	switch {
	case err == nil:
		return nil
	case o.IfNotExist && b.refused(err):
		return b.refusedCreate(ctx, op, name, key, o.Metadata[writerKey])
	}
	return b.pathError(sending, op, name, err)
}

// refusedCreate returns the error of a write that the store refused because the file
// exists. If the answer to a write is lost, the SDK sends it again, and the store
// refuses it because of the file that it has just written.
func (b *Bucket) refusedCreate(ctx context.Context, op, name, key, writer string) error {
	ctx, w := b.patience.wait(ctx, b.patience.answer)
	defer w.stop()
	a, err := b.attributes(ctx, key)
	// S3 also refuses while another write has not ended. The file of the other write appears
	// later, or never if that write fails.
	for pause := time.Millisecond; err != nil && b.dialect.missing(err) && pause < b.patience.crossing; pause *= 2 {
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		a, err = b.attributes(ctx, key)
	}
	switch {
	case err != nil && b.dialect.missing(err):
		return &fs.PathError{Op: op, Path: name, Err: &failure{text: "the store refused to write beside another write, which failed"}}
	case err != nil:
		return b.pathError(ctx, op, name, err)
	case a.Metadata[writerKey] == writer:
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: fs.ErrExist}
}

// largestCopy is the size of the largest object that S3 copies in one request, in bytes.
const largestCopy = 5 << 30

// Copy makes the store copy a file, replacing another one. A file that is too large for
// that is read and written again.
func (b *Bucket) Copy(ctx context.Context, from, to string) error {
	source, err := b.key("copy", from)
	if err != nil {
		return err
	}
	target, err := b.key("copy", to)
	if err != nil {
		return err
	}
	waiting, w := b.patience.wait(ctx, b.patience.copy)
	defer w.stop()
	err = b.pathError(waiting, "copy", from, b.store.Copy(waiting, target, source, nil))
	if err == nil {
		return nil
	}
	// The size is requested only if a copy has failed.
	if i, e := b.head(waiting, "copy", from); e != nil || i.size <= b.largestCopy {
		return err
	}
	return b.rewrite(ctx, from, to)
}

// rewrite copies a file through this machine.
func (b *Bucket) rewrite(ctx context.Context, from, to string) error {
	f, err := b.openFile(from)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = b.Replace(ctx, to, f)
	return err
}

// Remove removes a file. A missing file is not an error.
func (b *Bucket) Remove(ctx context.Context, name string) error {
	key, err := b.key("remove", name)
	if err != nil {
		return err
	}
	ctx, w := b.patience.wait(ctx, b.patience.answer)
	defer w.stop()
	if err := b.store.Delete(ctx, key); err != nil && !b.dialect.missing(err) {
		return b.pathError(ctx, "remove", name, err)
	}
	return nil
}

// SignedURL returns a URL at which the store sends a file to anyone for the given time,
// by GET only. The time is limited to seven days, and to the life of the credentials
// that sign it. The error wraps errors.ErrUnsupported if the store, or these
// credentials, cannot sign such URLs.
func (b *Bucket) SignedURL(ctx context.Context, name string, life time.Duration) (string, error) {
	key, err := b.key("sign", name)
	if err != nil {
		return "", err
	}
	ctx, w := b.patience.wait(ctx, b.patience.answer)
	defer w.stop()
	signed, err := b.store.SignedURL(ctx, key, &gocloud.SignedURLOptions{Expiry: min(life, longestLink)})
	if gcerrors.Code(err) == gcerrors.Unimplemented || errors.Is(err, errUnsigned) {
		return "", &fs.PathError{Op: "sign", Path: name, Err: errors.ErrUnsupported}
	}
	return signed, b.pathError(ctx, "sign", name, err)
}
