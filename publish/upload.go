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

// An Upload is a file that a client sends.
type Upload struct {
	// Body is read at most once, and not at all if the answer is known without reading
	// it. If reading it fails with a Refusal, such as one of TooLarge, Put returns that.
	Body io.Reader

	// Size is the announced size in bytes, or negative if the client announced none.
	Size int64

	// SHA256 is the announced digest, or zero if the client announced none.
	SHA256 wire.SHA256

	// Precondition decides whether the upload may replace a Metadata file. It gets the
	// digest of that file, or zero if there is none, and Put returns its error. The
	// file does not change in between. If it is nil, any file is replaced.
	Precondition func(now wire.SHA256) error

	// Subject is the sender. As much may be staged for a subject as
	// Options.MaxStagedEach allows.
	Subject string

	// AllowSecrets permits private keys and state in the package of a module.
	AllowSecrets bool

	// Bodiless reports that the client only asks whether the bytes with this SHA256 are
	// there.
	Bodiless bool
}

// announced reports whether the client has announced a digest.
func (u Upload) announced() bool { return u.SHA256 != wire.SHA256{} }

// A received file is on the local disk, under a temporary name if it has one.
type received struct {
	tree.TemporaryFile
	room     *roomWriter
	arriving *archive.Arriving // of a package of a provider or module
	sum      wire.SHA256
	size     int64
	digest   archive.Digest // of a package, after it was checked
}

// Discard removes the file unless it has its final name, and gives back its room.
func (r *received) Discard() {
	r.arriving.Close()
	r.TemporaryFile.Discard()
	r.room.end()
}

// receive writes an upload to a temporary file. The caller must give the file its name,
// or discard it.
func (p *Publisher) receive(ctx context.Context, part tree.Part, f File, u Upload) (*received, error) {
	announced := max(u.Size, 0)
	if err := p.takeRoom(u.Subject, announced); err != nil {
		return nil, err
	}
	w := &roomWriter{publisher: p, subject: u.Subject, taken: announced}
	t, err := part.NewTemporary(ctx, stagingPath(f.Name))
	if err != nil {
		w.end()
		if ctx.Err() != nil {
			return nil, ErrInterrupted
		}
		return nil, tree.StorageError(err)
	}
	w.Writer = t
	r := &received{TemporaryFile: t, room: w}
	to := io.Writer(w)
	switch f.Kind { // it is checked while it arrives
	case Package:
		r.arriving = archive.NewArrivingPackage()
		to = io.MultiWriter(w, r.arriving)
	case Module:
		r.arriving = archive.NewArrivingModule(f.Name)
		to = io.MultiWriter(w, r.arriving)
	}
	if r.sum, r.size, err = p.digest(to, f.Kind, u); err != nil {
		r.Discard()
		return nil, err
	}
	r.SyncAhead()
	return r, nil
}

// digest reads an upload to its end, checks that the bytes are the announced ones, and
// writes them to w.
func (p *Publisher) digest(w io.Writer, k Kind, u Upload) (sum wire.SHA256, size int64, err error) {
	limit := p.limit(k)
	most := limit
	if u.Size >= 0 {
		most = min(limit, u.Size) // no sender is listened to beyond what it has announced
	}
	body := &bodyReader{from: io.LimitReader(u.Body, most+1), hash: sha256.New()}
	size, err = io.Copy(w, body)
	var refusal *Refusal
	switch sum = wire.SHA256(body.hash.Sum(nil)); {
	case errors.As(body.err, &refusal):
		return sum, size, refusal
	case body.err != nil:
		return sum, size, ErrInterrupted
	case errors.Is(err, ErrNoRoom):
		return sum, size, err
	case err != nil:
		return sum, size, tree.StorageError(err)
	case size > limit:
		return sum, size, TooLarge(limit)
	case u.Size >= 0 && size != u.Size:
		return sum, size, ErrInterrupted
	case u.announced() && sum != u.SHA256:
		return sum, size, refused("the file that arrived has the sha256 %s, and its request announced %s: send it again", sum, u.SHA256)
	case size == 0:
		return sum, size, refused("the file is empty: send it with its content")
	}
	return sum, size, nil
}

// A bodyReader computes the digest of the bytes that it reads, and tells errors of the
// client from errors of the disk.
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
