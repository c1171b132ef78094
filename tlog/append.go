package tlog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// Append adds leaves to the log, and returns when a signed checkpoint has them. A leaf that
// says nothing new is not added (news). The nonce and the time are set here.
//
// After an error the leaves may be in the log all the same: call Append again.
func (l *Log) Append(ctx context.Context, leaves ...Leaf) error {
	if len(leaves) == 0 {
		return nil
	}
	a := &addition{leaves: slices.Clone(leaves), done: make(chan struct{})}
	for i := range a.leaves {
		leaf := &a.leaves[i]
		leaf.Time, leaf.Nonce = time.Now().UTC().Truncate(time.Second), NewNonce()
		if _, err := ParseLeaf(leaf.String()); err != nil {
			return fmt.Errorf("adding to the log: %w", err)
		}
	}
	if err := l.adding.enqueue(a); err != nil {
		return err
	}
	select {
	case <-a.done:
		return a.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// News returns the leaves that say something new, as far as this instance knows. It reads
// nothing.
func (l *Log) News(leaves []Leaf) (news []Leaf) {
	size := l.Head().Size
	for _, leaf := range leaves {
		_, known := l.ledger.leavesOf(leaf.Address, leaf.Version, size)
		if _, isNew := shorten(leaf, l.ledger.platform(leaf.Platform)).news(known); isNew {
			news = append(news, leaf)
		}
	}
	return news
}

// maxAdded bounds how many leaves of several callers are signed at once.
const maxAdded = 1 << 14

// An addition has the leaves that one caller adds.
type addition struct {
	leaves []Leaf
	done   chan struct{}
	err    error
}

// adding collects additions into batches.
type adding struct {
	mu      sync.Mutex
	waiting []*addition
	some    chan struct{}
	ctx     context.Context
	cancel  context.CancelCauseFunc
	ended   chan struct{}
}

var errClosed = errors.New("the log has been closed")

func (a *adding) begin(write func(context.Context, []Leaf) error, interval time.Duration) {
	a.some, a.ended = make(chan struct{}, 1), make(chan struct{})
	a.ctx, a.cancel = context.WithCancelCause(context.Background())
	go a.run(write, interval)
}

func (a *adding) end() {
	a.cancel(errClosed)
	<-a.ended
}

func (a *adding) enqueue(x *addition) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ctx.Err() != nil {
		return errClosed
	}
	a.waiting = append(a.waiting, x)
	select {
	case a.some <- struct{}{}:
	default:
	}
	return nil
}

// take takes additions for one batch, at least one if there is one.
func (a *adding) take() (batch []*addition) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := 0
	for len(a.waiting) > 0 && (len(batch) == 0 || n+len(a.waiting[0].leaves) <= maxAdded) {
		n += len(a.waiting[0].leaves)
		batch, a.waiting = append(batch, a.waiting[0]), a.waiting[1:]
	}
	return batch
}

func (a *adding) run(write func(context.Context, []Leaf) error, interval time.Duration) {
	defer close(a.ended)
	for {
		select {
		case <-a.some:
		case <-a.ctx.Done():
			for batch := a.take(); len(batch) > 0; batch = a.take() {
				for _, x := range batch {
					x.finish(errClosed)
				}
			}
			return
		}
		for batch := a.take(); len(batch) > 0; batch = a.take() {
			var leaves []Leaf
			for _, x := range batch {
				leaves = append(leaves, x.leaves...)
			}
			err := write(a.ctx, leaves)
			for _, x := range batch {
				x.finish(err)
			}
			pause := time.NewTimer(interval)
			select {
			case <-pause.C:
			case <-a.ctx.Done():
				pause.Stop()
			}
		}
	}
}

func (x *addition) finish(err error) {
	x.err = err
	close(x.done)
}

// maxLost bounds how often other instances may be first with a batch, one time after the other.
const maxLost = 20

// write adds the leaves that the log has not, and signs. A batch ends where its bundle ends, so
// that what begins with a bundle begins with a batch.
func (l *Log) write(ctx context.Context, leaves []Leaf) error {
	end, err := l.take(ctx)
	if err != nil {
		return err
	}
	defer end()
	var failed error
	var missing, batch []string
	e, err := l.known(ctx)
	if err != nil {
		return err
	}
	for lost := 0; lost < maxLost; lost++ {
		before := e.size
		if e, err = l.follow(ctx, e); err != nil {
			return err
		}
		// Nothing is created after what must not be signed.
		if e, err = l.continuing(ctx, e); err != nil {
			return err
		}
		if e.size > before {
			lost = 0
		}
		if n := len(batch); n > 0 && e.size == before+int64(n) && e.last == hashOf(batch[n-1]) {
			missing, failed = missing[n:], nil
		} else {
			missing = l.missing(e, leaves)
		}
		if len(missing) == 0 {
			if e.size == l.Head().Size {
				return nil
			}
			return l.sign(ctx, e)
		}
		if failed != nil {
			return failed
		}
		if err := l.endsWith(ctx, e); err != nil {
			return err
		}
		batch = missing[:min(len(missing), int(BundleSize-e.size%BundleSize))]
		err = l.create(ctx, batchName(e.size), EncodeBundle(batch))
		if err != nil && !errors.Is(err, fs.ErrExist) {
			// The batch may be there all the same.
			failed = fmt.Errorf("adding to the log: %w", err)
		}
	}
	return fmt.Errorf("adding to the log: other instances were first %d times", maxLost)
}

func (l *Log) create(ctx context.Context, name string, content []byte) error {
	ctx, cancel := limited(ctx)
	defer cancel()
	return l.options.Store.Create(ctx, name, content)
}

// missing returns the texts of leaves that say something new.
func (l *Log) missing(e *edge, leaves []Leaf) (texts []string) {
	type version struct {
		address.Address
		version string
	}
	added := make(map[version][]shortLeaf)
	l.ledger.number(leaves) // to tell two new platforms of a version apart
	for _, leaf := range leaves {
		v := version{leaf.Address, leaf.Version}
		_, known := l.ledger.leavesOf(leaf.Address, leaf.Version, e.size)
		says := shorten(leaf, l.ledger.platform(leaf.Platform))
		event, isNew := says.news(append(known, added[v]...))
		if !isNew {
			continue
		}
		leaf.Event, says.event = event, codeOf(event)
		texts = append(texts, leaf.String())
		added[v] = append(added[v], says)
	}
	return texts
}

// news reports whether a leaf says something that the leaves of its version do not say, and
// as which event:
//
//   - found and offered: there is no package for the platform yet. The same files with other
//     bytes are repacked.
//   - repacked: no package for the platform has that "zh:",
//   - withdrawn and restored: the newest such leaf is another one, or there is none and the
//     version is withdrawn.
func (s shortLeaf) news(known []shortLeaf) (e Event, isNew bool) {
	e = events[s.event]
	withdrawn, some, sameFiles := false, false, false
	for _, k := range known {
		switch event := events[k.event]; {
		case event == Withdrawn:
			withdrawn = true
		case event == Restored:
			withdrawn = false
		case k.platform == s.platform && k.zh == s.zh:
			if e.HasPackage() {
				return e, false
			}
		case k.platform == s.platform:
			some, sameFiles = true, sameFiles || k.sameFiles(s)
		}
	}
	switch e {
	case Withdrawn:
		return e, !withdrawn
	case Restored:
		return e, withdrawn
	case Repacked:
		return e, true
	}
	if sameFiles {
		return Repacked, true
	}
	return e, !some
}
