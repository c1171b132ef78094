package archive

import (
	"context"
	"crypto/sha256"
	"io"
	"sync"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// An Arriving is a package that is checked while it arrives. Its bytes are written to a
// file and to the Arriving. Another goroutine unpacks the entries meanwhile, so that
// little is left to do after the last byte. It never refuses a byte and never fails:
// whatever cannot be told from a stream is read from the file afterwards, with the same
// result. Close must be called. A nil Arriving has seen nothing.
type Arriving struct {
	walk func(io.Reader) walked

	chunks  chan []byte // full, in their order
	free    chan []byte // to be filled again
	made    int         // chunks
	filling []byte      // the chunk that is being filled; nil: none
	size    int64       // of all bytes
	ended   bool        // chunks is closed

	closed chan struct{} // the result is not wanted
	done   chan struct{} // closed when result is set; nil: no byte has arrived
	result walked
}

// Chunks of an Arriving. Besides unpacking, they are all the memory that it takes: a writer waits
// while all are full.
const (
	arrivingChunk  = 64 << 10
	arrivingChunks = 16
)

// walked has the findings of a walk about a package.
type walked struct {
	entries walkedEntries // of a zip
	module  *moduleFinder // of a module; nil: not known
}

// NewArrivingPackage begins to check a provider's package.
func NewArrivingPackage() *Arriving { return newArriving(walkPackage) }

// NewArrivingModule begins to check the package of a module: VERSION.tar.gz, VERSION.tgz or
// VERSION.zip.
func NewArrivingModule(name string) *Arriving {
	return newArriving(walkModule(address.ModuleFormatOf(name)))
}

func newArriving(walk func(io.Reader) walked) *Arriving {
	return &Arriving{
		walk: walk, closed: make(chan struct{}),
		chunks: make(chan []byte, arrivingChunks), free: make(chan []byte, arrivingChunks),
	}
}

// walkPackage walks a provider's package.
func walkPackage(r io.Reader) walked { return walked{entries: walkZip(r, nil)} }

// walkModule returns a function that walks the package of a module. In doubt it says nothing.
func walkModule(format string) func(io.Reader) walked {
	if format == "zip" {
		return func(r io.Reader) walked {
			m := newModuleFinder()
			return walked{walkZip(r, m.addWalked), m}
		}
	}
	return func(r io.Reader) (w walked) {
		m := newModuleFinder()
		if tarEntries(context.Background(), r, unknownSize, format, m) == nil {
			w.module = m
		}
		return w
	}
}

// Write takes the next bytes. It never fails. It waits for the unpacking.
func (a *Arriving) Write(p []byte) (int, error) {
	switch {
	case a == nil:
		return len(p), nil
	case a.done == nil:
		a.done = make(chan struct{})
		go func() {
			defer close(a.done)
			// A parser that panics must not end the process, which a goroutine does. In the
			// request, which reads the file then, it ends the request alone.
			defer func() { _ = recover() }()
			a.result = a.walk(&chunkReader{from: a})
		}()
	}
	a.size += int64(len(p))
	for rest := p; len(rest) > 0; {
		if a.filling == nil {
			if a.filling = a.emptyChunk(); a.filling == nil {
				break
			}
		}
		n := min(len(rest), arrivingChunk-len(a.filling))
		a.filling, rest = append(a.filling, rest[:n]...), rest[n:]
		if len(a.filling) == arrivingChunk {
			a.chunks <- a.filling // there is room for all chunks
			a.filling = nil
		}
	}
	return len(p), nil
}

// emptyChunk waits for an empty chunk. It returns nil if the walk has ended.
func (a *Arriving) emptyChunk() []byte {
	select {
	case <-a.done:
		return nil
	case chunk := <-a.free:
		return chunk
	default:
	}
	if a.made < arrivingChunks {
		a.made++
		return arrivingBuffers.Get().(*[arrivingChunk]byte)[:0]
	}
	select {
	case <-a.done:
		return nil
	case chunk := <-a.free:
		return chunk
	}
}

// end says that all bytes have arrived.
func (a *Arriving) end() {
	if a.ended {
		return
	}
	a.ended = true
	if a.filling != nil {
		a.chunks <- a.filling
		a.filling = nil
	}
	close(a.chunks)
}

// arrivingBuffers has chunks of packages that have been checked.
var arrivingBuffers = sync.Pool{New: func() any { return new([arrivingChunk]byte) }}

// Close gives up, unless the package has been checked.
func (a *Arriving) Close() {
	if a == nil {
		return
	}
	if !a.ended {
		close(a.closed)
		a.end()
	}
	select {
	case <-a.done: // nothing uses the chunks any more
	default:
		return
	}
	for {
		select {
		case chunk := <-a.free:
			arrivingBuffers.Put((*[arrivingChunk]byte)(chunk[:arrivingChunk]))
		default:
			return
		}
	}
}

// wait returns the findings of the walk about a package of a size, once the walk has ended.
func (a *Arriving) wait(ctx context.Context, size int64) (w walked, err error) {
	if a == nil || a.done == nil || a.size != size {
		return w, nil
	}
	a.end()
	select {
	case <-a.done:
		return a.result, nil
	case <-ctx.Done():
		return w, ctx.Err()
	}
}

// A chunkReader reads the chunks of an Arriving.
type chunkReader struct {
	from    *Arriving
	chunk   []byte // nil: none
	current []byte // the rest of it
}

func (r *chunkReader) Read(p []byte) (int, error) {
	for len(r.current) == 0 {
		if r.chunk != nil {
			r.from.free <- r.chunk[:0] // there is room for all chunks
			r.chunk = nil
		}
		select {
		case <-r.from.closed:
			return 0, io.ErrClosedPipe
		case chunk, more := <-r.from.chunks:
			if !more {
				return 0, io.EOF
			}
			r.chunk, r.current = chunk, chunk
		}
	}
	n := copy(p, r.current)
	r.current = r.current[n:]
	return n, nil
}

// digestWalked reads a file for its sha256, and walks it at the same time.
func digestWalked(ctx context.Context, f io.Reader, walk func(io.Reader) walked) (sum wire.SHA256, w walked, err error) {
	hash := sha256.New()
	f = tree.WithContext(ctx, f)
	w = walk(io.TeeReader(f, hash))
	if _, err := tree.HashFile(hash, f); err != nil {
		return sum, w, err
	}
	return wire.SHA256(hash.Sum(nil)), w, nil
}
