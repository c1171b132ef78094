package publish

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/cache"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/keys"
	"github.com/caddy-terraform/caddy-terraform-registry/pull/flight"
	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// The defaults of Options.
const (
	DefaultMaxSize = 4 << 30 // bytes
	DefaultStaging = 24 * time.Hour

	DefaultMaxStaged     = 100 << 30 // bytes
	DefaultMaxStagedEach = 20 << 30
)

// An Index offers the tree to clients. It is an *index.Index.
type Index interface {
	Snapshot() *index.Snapshot
	Next(ctx context.Context, after *index.Snapshot, wanted ...index.Selection) *index.Snapshot
	Changed(folders ...string) index.Change
	Digests() *index.Digests
}

// Options of a Publisher.
type Options struct {
	// Open opens the tree. Requests share it for a moment.
	Open func() (tree.Tree, error)

	// Index returns the index of the tree; nil while there is none yet. Nothing is published in
	// a part of the tree that is empty although the index has versions there.
	Index func() Index

	// Lock waits for the lock of a name, or for the end of ctx. All instances that share
	// the tree, and all requests of this one, share the lock.
	Lock func(ctx context.Context, name string) (unlock func(), err error)

	// Hostnames are the registry's own names: addresses under one of them in the tree are
	// hosted too, and a version that is there cannot be published again.
	Hostnames []svchost.Hostname

	// KeyCopies are the copies of keys that the index has. A release of a namespace that had keys, and has no
	// keys file, is refused. Nil: there are none.
	KeyCopies keys.Copies

	// Record has on record what clients were offered. Nil: there is none.
	Record Record

	// RequireSignatures refuses releases without a publisher's signature.
	RequireSignatures bool

	// MaxSize is the maximum size of a file in bytes. Zero: DefaultMaxSize.
	MaxSize int64

	// Staging is how long an unfinished release stays after its last file. Zero:
	// DefaultStaging.
	Staging time.Duration

	// MaxStaged is how many bytes may be staged and on their way in, and MaxStagedEach how
	// many of them one subject may have. Zero: the defaults.
	MaxStaged, MaxStagedEach int64

	// Now is the clock. Nil: time.Now.
	Now func() time.Time

	// Logger receives failures of the server. May be nil.
	Logger *slog.Logger
}

// A Publisher takes files into a tree. It is safe for concurrent use.
type Publisher struct {
	options Options
	opener  *tree.Opener
	room    *room

	unpacking sync.Mutex // held while pages of documentation are in memory

	ended struct { // stages
		mutex  sync.Mutex
		looked time.Time // when they were looked for last
	}

	checked cache.Cache[checkedFile, archive.Digest] // packages that are staged
}

// A checkedFile identifies the content of a package that was checked. Writing to the file
// changes the stamp, and renaming it does not.
type checkedFile struct {
	sum   wire.SHA256
	stamp tree.Stamp
}

func checkedAs(sum wire.SHA256, info fs.FileInfo) checkedFile {
	stamp := tree.StampOf(info)
	stamp.Changed = 0 // a rename counts as a change there
	return checkedFile{sum, stamp}
}

// maxChecked bounds the packages that were checked and are remembered: the packages of
// some fifty releases that are being published at the same time.
const maxChecked = 1024

// New returns a Publisher.
func New(o Options) (*Publisher, error) {
	if o.Open == nil || o.Index == nil || o.Lock == nil {
		return nil, errors.New("publishing needs a tree, its index and locks")
	}
	if o.MaxSize == 0 {
		o.MaxSize = DefaultMaxSize
	}
	o.MaxSize = min(o.MaxSize, math.MaxInt64-1) // of a file that is too large, one byte more is read
	if o.Staging == 0 {
		o.Staging = DefaultStaging
	}
	o.MaxStaged, o.MaxStagedEach = cmp.Or(o.MaxStaged, DefaultMaxStaged), cmp.Or(o.MaxStagedEach, DefaultMaxStagedEach)
	if o.Now == nil {
		o.Now = time.Now
	}
	p := &Publisher{
		options: o, room: newRoom(o.MaxStaged, o.MaxStagedEach),
		checked: cache.Cache[checkedFile, archive.Digest]{MaxEntries: maxChecked},
	}
	p.opener = tree.NewOpener(index.Guarded(o.Open, func() []*index.Snapshot { return []*index.Snapshot{p.snapshot()} }))
	return p, nil
}

// An Outcome says how an upload has ended.
type Outcome uint8

// The outcomes of accepted uploads.
const (
	Added     Outcome = iota // it is published now
	Waiting                  // it is staged
	Unchanged                // the same bytes are there already
)

// A Result is the answer to an upload.
type Result struct {
	Outcome Outcome
	wire.Publication

	// Notices are the changes by a registry.hcl.
	Notices NoticeChanges
}

// Put takes a file, and returns when clients are offered the version that it completes. If
// the tree has the file already, Put waits in the same way: another upload or the repair
// after a crash may have put it there a moment ago. If Put fails, nothing of the file is
// left. The error is a *Refusal, ErrNothing for a bodiless upload of bytes that are not
// there, ErrChanged, the error of a Precondition, or one of ErrInterrupted, ErrUnavailable,
// tree.ErrDiskFull and tree.ErrNotWritable. After a tree.ErrStore the file may have been
// taken all the same, and sending it again tells. Documentation may have been staged after any
// error of the disk: then Run puts it into the release, unless the publisher sends other
// documentation before, or the published one again.
func (p *Publisher) Put(ctx context.Context, f File, u Upload) (Result, error) {
	if err := f.checkLength(); err != nil {
		return Result{}, err
	}
	if u.Size > p.limit(f.Kind) {
		return Result{}, TooLarge(p.limit(f.Kind))
	}
	files, err := p.open()
	if err != nil {
		return Result{}, err
	}
	if err := p.checkOnlyBuild(ctx, files, f); err != nil {
		return Result{}, err
	}
	if err := p.checkNotWithdrawn(f); err != nil {
		return Result{}, err
	}
	put := p.putReleaseFile
	switch {
	case f.Kind == Metadata:
		return p.putMetadata(ctx, files, f, u)
	case f.Kind == Docs:
		return p.putDocs(ctx, files, f, u)
	case f.Address.IsModule():
		put = p.putModule
	}
	result, err := put(ctx, files, f, u)
	if err == nil && result.Outcome == Unchanged && !p.offered(p.snapshot(), f, result.SHA256) {
		result.Message = cmp.Or(p.awaitOffer(ctx, f, result.SHA256), result.Message)
	}
	return result, err
}

// maxDocs bounds an archive of documentation, in bytes.
const maxDocs = 64 << 20

// limit returns the maximum size of a file, in bytes.
func (p *Publisher) limit(k Kind) int64 {
	switch k {
	case Checksums, Signature, Manifest:
		return min(p.options.MaxSize, tree.MaxDocument)
	case Metadata:
		return min(p.options.MaxSize, registryhcl.MaxSize)
	case Docs:
		return min(p.options.MaxSize, maxDocs)
	}
	return p.options.MaxSize
}

func (p *Publisher) open() (tree.Tree, error) {
	files, err := p.opener.Tree()
	if err == nil && !files.Same() {
		p.opener.Forget()
		files, err = p.opener.Tree()
	}
	if err != nil {
		return files, p.unavailable("opening the tree", err)
	}
	return files, nil
}

// lockPatience is how long a request waits for a lock. A client that is told to try again
// has a better answer than one that waits, since a lock may never come: its storage may
// hang, or its owner may have failed to give it back.
const lockPatience = 30 * time.Second

// lock locks a name for publishing, here and at all other instances. The lock outlives its client:
// what has begun is finished. If another folder has taken the place of the part meanwhile, lock
// fails: a file in the old one would never be offered.
func (p *Publisher) lock(ctx context.Context, part tree.Part, name string) (unlock func(), err error) {
	unlock, err = flight.Lock(ctx, lockPatience, func(ctx context.Context) (func(), error) {
		return p.options.Lock(ctx, tree.PublishLocks+name)
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, ErrInterrupted
	case err != nil:
		return nil, p.unavailable("locking "+name, err)
	case !part.Same():
		unlock()
		return nil, p.unavailable("changing the tree", tree.ErrReplaced)
	}
	return unlock, nil
}

// unavailable logs a failure of this side, whose details are not for publishers.
func (p *Publisher) unavailable(doing string, err error) error {
	if p.options.Logger != nil {
		p.options.Logger.Error("publishing failed", "doing", doing, "error", err.Error())
	}
	return ErrUnavailable
}

// checkNotWithdrawn refuses a version that would not be offered.
func (p *Publisher) checkNotWithdrawn(f File) error {
	s := p.snapshot()
	if s == nil || f.Version == "" {
		return nil
	}
	v, err := address.ParseModuleVersion(f.Version)
	if err != nil {
		return refused("%v", err)
	}
	for _, name := range p.hostnames() {
		if n := s.Metadata(index.PlaceOf(f.Address.WithHostname(name))).WithdrawnVersion(v); n != nil {
			return refused("version %s is withdrawn by %s: restore it there first, or publish another version", f.Version, tree.MetadataName)
		}
	}
	return nil
}

// hostnames returns the hostnames under which an address is hosted, the empty one first.
func (p *Publisher) hostnames() []svchost.Hostname {
	return append([]svchost.Hostname{""}, p.options.Hostnames...)
}

// snapshot returns the latest snapshot, or nil if there is none.
func (p *Publisher) snapshot() *index.Snapshot {
	x := p.options.Index()
	if x == nil {
		return nil
	}
	return x.Snapshot()
}

// patience is how long a request waits until clients are offered the version that it has
// completed. Usually that takes some milliseconds, since all digests are known.
const patience = time.Minute

// await waits for a snapshot for which done reports true. It returns the last snapshot
// that was there, and whether done reports true for it.
func (p *Publisher) await(ctx context.Context, wanted index.Selection, done func(*index.Snapshot) bool) (*index.Snapshot, bool) {
	x := p.options.Index()
	if x == nil {
		return nil, false
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	last := x.Snapshot()
	for last == nil || !done(last) {
		next := x.Next(ctx, last, wanted)
		if next == nil {
			return last, false
		}
		last = next
	}
	return last, true
}

// awaitScan waits for the end of a scan that begins later than now.
func (p *Publisher) awaitScan(ctx context.Context, a address.Address) {
	change := p.changed(a)
	p.await(ctx, index.Selection{Address: a}, func(s *index.Snapshot) bool { return s.Sees(change) })
}

// awaitOffer waits until clients are offered what a file has completed, and returns why
// they are not, if so. The index may see more than was checked: other files of the tree.
func (p *Publisher) awaitOffer(ctx context.Context, f File, sum string) (problem string) {
	change := p.changed(f.Address)
	last, scanned := p.await(ctx, index.Selection{Address: f.Address, Version: f.Version}, func(now *index.Snapshot) bool {
		return p.offered(now, f, sum) || now.Sees(change) && (p.awaitsRecord(now, f) || !now.Pending(index.PlaceOf(f.Address), f.Version))
	})
	switch {
	case p.offered(last, f, sum):
		return ""
	case p.awaitsRecord(last, f):
		return p.awaitRequired(ctx, f, sum)
	case scanned:
		return "it is in the tree, and is not offered because of something else there: the registry's operator can tell why by `caddy-terraform-registry check`"
	}
	return "it is in the tree, and will be offered when the registry has read it"
}

// offered reports whether clients are offered the version of a file: for the platform of a
// package, and with the bytes of a module.
func (p *Publisher) offered(s *index.Snapshot, f File, sum string) bool {
	return s != nil && slices.ContainsFunc(p.hostnames(), func(hostname svchost.Hostname) bool {
		a := f.Address.WithHostname(hostname)
		if f.Address.IsModule() {
			v := s.Module(index.PlaceOf(a)).Version(f.Version)
			return v != nil && (f.Kind != Module || v.Archive.SHA256.String() == sum)
		}
		r := s.Provider(index.PlaceOf(a)).Release(f.Version)
		return r != nil && (f.Kind != Package || r.Package(f.Platform.OS, f.Platform.Arch) != nil)
	})
}

// completed answers the upload of the last file of a version, which is in the tree now.
func (p *Publisher) completed(ctx context.Context, f File, sum wire.SHA256) Result {
	r := f.added(sum)
	if r.Message = p.awaitOffer(ctx, f, r.SHA256); r.Message != "" {
		r.Outcome = Waiting
		return r
	}
	r.Message = p.awaitRecord(ctx, f)
	return r
}

// publication describes a file that has been taken.
func (f File) publication(status string, sum wire.SHA256) wire.Publication {
	return wire.Publication{Status: status, Address: f.Address.String(), Version: f.Version, File: f.Name, SHA256: sum.String()}
}

// added returns the result for a file that has come into the tree.
func (f File) added(sum wire.SHA256) Result {
	return Result{Outcome: Added, Publication: f.publication(wire.Published, sum)}
}

func (f File) unchanged(sum wire.SHA256) Result {
	return Result{Outcome: Unchanged, Publication: f.publication(wire.Published, sum)}
}
