package pull

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/pull/flight"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A package of a slow origin takes longer than proxies and clients wait for the first byte of
// an answer. So clients get it as it arrives, before it has been verified, if they know
// themselves what it has to be: its sha256 is in SHA256SUMS. They do not get its end: with
// that, a package that turns out to be wrong would be whole. If it is, or does not come, their
// answers are broken off.
//
// An origin may announce more bytes than its package has, so that the end of a zip is not in the
// last bytes. Therefore followers also wait wherever a zip may end, which is where its end record
// begins. Compressed content has these four bytes by chance once in 4 GiB.

const (
	// followAfter is how long the clients of a package wait for one that is verified, from the
	// beginning of its fetch. Within this time nearly all packages arrive, and those that cannot
	// be had get an answer that says why. What is fetched before, the documents of the release,
	// has limits of its own.
	followAfter = 3 * time.Second

	// heldBack is how many bytes at the end of a package are kept until it is verified.
	heldBack = 64 << 10

	// misledLife is how long a package is sent only as a whole after its followers were broken off:
	// nobody knows whether what they have is the beginning of the package that comes later.
	misledLife = 24 * time.Hour
)

// A growing is a package while it is received. Its length and sha256 are known.
type growing struct {
	size    int64
	sum     wire.SHA256
	content io.ReaderAt // reading fails once the package is in the tree, or discarded

	mutex   sync.Mutex
	clients int               // that have followed it
	before  archive.BeforeEnd // the bytes that have been written
	ended   bool
	filled  *Filled       // of a package that is in the tree
	err     error         // of one that is not
	changed chan struct{} // closed when one of these changes; nil: no follower waits
}

// grow takes the bytes that have been written. A nil growing has no followers.
func (g *growing) grow(written []byte) {
	if g == nil {
		return
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.before.Write(written) {
		g.wake()
	}
}

func (g *growing) wake() {
	if g.changed != nil {
		close(g.changed)
		g.changed = nil
	}
}

// end says what has become of the package. Of several calls the first counts.
func (g *growing) end(filled *Filled, err error) {
	if g == nil {
		return
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	switch {
	case g.ended:
		return
	case err != nil:
	case filled == nil: // the fill has panicked
		err = flight.ErrPanicked
	case filled.Size != g.size || filled.SHA256 != g.sum:
		err = tree.ErrChanged
	}
	g.ended, g.filled, g.err = true, filled, err
	g.wake()
}

// followers returns how many clients have followed the package.
func (g *growing) followers() int {
	if g == nil {
		return 0
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	return g.clients
}

// over reports whether the fill of the package has ended, or this attempt of it.
func (g *growing) over() bool {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	return g.ended
}

// newGrowing returns what clients get of a package while it is received. Its name, version,
// sha256 and length are all that is known of its file.
func newGrowing(k *packageFill, p upstream.Package, size int64, content io.ReaderAt) *Filled {
	return &Filled{
		File: &index.File{
			Name: p.Name, Version: k.Version, Platform: p.Platform.String(),
			Size: size, SHA256: p.SHA256, ContentType: "application/zip",
		},
		New: true, growing: &growing{size: size, sum: p.SHA256, content: content},
	}
}

// Misled reports whether clients may have a wrong beginning of a package.
func (f *Filler) Misled(sum wire.SHA256) bool {
	_, misled := f.misled.Get(sum)
	return misled
}

// A growth is the state of a package that grows, for a follower.
type growth struct {
	until   int64 // how much may be sent
	ended   bool
	filled  *Filled
	err     error
	changed <-chan struct{}
}

// from returns what there is of the package for a follower who has the bytes before offset.
func (g *growing) from(offset int64) growth {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	until := min(g.before.Size(), g.size-heldBack)
	if !g.ended && until <= offset && g.changed == nil {
		g.changed = make(chan struct{})
	}
	return growth{until, g.ended, g.filled, g.err, g.changed}
}

// A Follower is the client of a package that grows.
type Follower interface {
	// Send sends a part of the package.
	Send(io.Reader) (int64, error)

	// FlushError sends what was written, since nothing else follows for a while.
	FlushError() error
}

// follow sends a follower the bytes as they arrive, and returns how many it has sent when the
// package is in the tree. The error is the follower's, or of ctx, or says why the package has
// not come.
func (g *growing) follow(ctx context.Context, to Follower) (sent int64, filled *Filled, err error) {
	g.mutex.Lock()
	g.clients++
	g.mutex.Unlock()
	unreadable := false // only the end matters
	for {
		has := sent
		if unreadable {
			has = g.size
		}
		now := g.from(has)
		switch {
		case now.ended:
			return sent, now.filled, now.err
		case now.until > has:
			n, err := to.Send(readableBytes{io.NewSectionReader(g.content, sent, now.until-sent)})
			if sent += n; err != nil {
				return sent, nil, err
			}
			unreadable = sent < now.until
			continue
		}
		if err := to.FlushError(); err != nil {
			return sent, nil, err
		}
		select {
		case <-now.changed:
		case <-ctx.Done():
			return sent, nil, context.Cause(ctx)
		}
	}
}

// readableBytes end where reading fails.
type readableBytes struct{ io.Reader }

func (r readableBytes) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil {
		err = io.EOF
	}
	return n, err
}

// followed waits for the package of a flight, or for one that grows once the flight has taken a
// while. A client that comes later does not wait as long: what could have been there in time
// would be there, and the proxy before the client has less patience the longer it waits.
func followed(ctx context.Context, under *flight.Flight[*Filled]) (*Filled, error) {
	patience := time.NewTimer(time.Until(under.Began.Add(followAfter)))
	defer patience.Stop()
	patient := true
	for {
		early, later := under.Offered()
		if !patient && early != nil && !early.growing.over() {
			return early, nil
		}
		select {
		case <-under.Landed():
			return under.Result()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-patience.C:
			patient = false
		case <-later:
		}
	}
}
