package publish

import (
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"io"

	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// An Upload is what a client sends.
type Upload struct {
	// Body is read at most once, and not at all if the answer is known without it.
	Body io.Reader

	// Size in bytes, as announced; negative if it is not known.
	Size int64

	// SHA256 as announced; zero if it is not.
	SHA256 wire.SHA256

	// Precondition decides about the Metadata file that the upload replaces, by its digest;
	// zero: there is none. Its error is that of Put. The file stays as it is in between. Nil:
	// any file is replaced.
	Precondition func(now wire.SHA256) error

	// Subject is who sends it, for whom as much is staged as Options.MaxStagedEach allows.
	Subject string

	// AllowSecrets: the package of a module may have private keys and state in it.
	AllowSecrets bool

	// Bodiless: the client asks whether the bytes with this SHA256 are there already.
	Bodiless bool
}

// announced reports whether the client has said which bytes it sends.
func (u Upload) announced() bool { return u.SHA256 != wire.SHA256{} }

// A received file is on the local disk, under a temporary name if it has one.
type received struct {
	*tree.TemporaryFile
	room   *roomWriter
	sum    wire.SHA256
	size   int64
	digest archive.PackageDigest // of a package that has been checked
}

// Discard removes the file unless it has its name, and gives back its room.
func (r *received) Discard() {
	r.TemporaryFile.Discard()
	r.room.end()
}

// receive writes an upload to a temporary file. A file that was received must get its
// name or be discarded.
func (p *Publisher) receive(ctx context.Context, part tree.Part, f File, u Upload) (*received, error) {
	announced := max(u.Size, 0)
	if err := p.room.take(u.Subject, announced); err != nil {
		return nil, err
	}
	w := &roomWriter{room: p.room, subject: u.Subject, taken: announced}
	t, err := part.NewTemporary(ctx, stagingPath(f.Name))
	if err != nil {
		w.end()
	}
	switch {
	case ctx.Err() != nil && err != nil:
		return nil, ErrInterrupted
	case err != nil:
		return nil, tree.StorageError(err)
	}
	w.Writer = t
	r := &received{TemporaryFile: t, room: w}
	if r.sum, r.size, err = p.digest(w, f.Kind, u); err != nil {
		r.Discard()
		return nil, err
	}
	return r, nil
}

// digest reads an upload to its end, checks that it is what the client has announced,
// and writes it to w.
func (p *Publisher) digest(w io.Writer, k Kind, u Upload) (sum wire.SHA256, size int64, err error) {
	limit := p.limit(k)
	body := &bodyReader{from: io.LimitReader(u.Body, limit+1), hash: sha256.New()}
	size, err = io.Copy(w, body)
	switch sum = wire.SHA256(body.hash.Sum(nil)); {
	case body.err != nil:
		return sum, size, ErrInterrupted
	case errors.Is(err, ErrNoRoom):
		return sum, size, err
	case err != nil:
		return sum, size, tree.StorageError(err)
	case size > limit:
		return sum, size, tooLarge(limit)
	case u.Size >= 0 && size != u.Size:
		return sum, size, ErrInterrupted
	case u.announced() && sum != u.SHA256:
		return sum, size, refused("the file that arrived has the sha256 %s, and its request announced %s: send it again", sum, u.SHA256)
	case size == 0:
		return sum, size, refused("the file is empty: send it with its content")
	}
	return sum, size, nil
}

// A bodyReader takes the digest of what it reads, and tells the client's errors from
// those of the disk.
type bodyReader struct {
	from io.Reader
	hash hash.Hash
	err  error
}

func (b *bodyReader) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	b.hash.Write(p[:n])
	if err != nil && !errors.Is(err, io.EOF) {
		b.err = err
	}
	return n, err
}
