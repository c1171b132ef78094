package tlog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

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
	leaves = slices.Clone(leaves)
	for i := range leaves {
		leaf := &leaves[i]
		leaf.Time, leaf.Nonce = time.Now().UTC().Truncate(time.Second), newNonce()
		if _, err := ParseLeaf(leaf.String()); err != nil {
			return fmt.Errorf("adding to the log: %w", err)
		}
	}
	g, err := l.adding.join(leaves, l.write)
	if err != nil {
		return err
	}
	select {
	case <-g.done:
		return g.err
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

// A group has the leaves of callers that are added together.
type group struct {
	leaves []Leaf
	done   chan struct{} // closed when they have been added, or not
	err    error
}

// adding collects the leaves of callers in groups.
type adding struct {
	pace    *rate.Limiter
	ctx     context.Context // ends when the log is closed
	cancel  context.CancelCauseFunc
	running sync.WaitGroup // of groups

	mu   sync.Mutex
	next *group // which further leaves join; nil: none
}

var errClosed = errors.New("the log has been closed")

func (a *adding) begin(interval time.Duration) {
	a.pace = rate.NewLimiter(rate.Every(interval), 1)
	a.ctx, a.cancel = context.WithCancelCause(context.Background())
}

func (a *adding) end() {
	a.mu.Lock()
	a.cancel(errClosed)
	a.mu.Unlock()
	a.running.Wait()
}

// join has leaves join a group, which write is called for.
func (a *adding) join(leaves []Leaf, write func(context.Context, *group) error) (*group, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ctx.Err() != nil {
		return nil, errClosed
	}
	if a.next == nil || len(a.next.leaves)+len(leaves) > maxAdded {
		g := &group{done: make(chan struct{})}
		a.next = g
		a.running.Go(func() {
			defer close(g.done)
			if a.pace.Wait(a.ctx) != nil {
				g.err = errClosed
				return
			}
			g.err = write(a.ctx, g)
		})
	}
	a.next.leaves = append(a.next.leaves, leaves...)
	return a.next, nil
}

// take returns the leaves of a group, which no further ones join.
func (a *adding) take(g *group) []Leaf {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.next == g {
		a.next = nil
	}
	return g.leaves
}

// maxLost bounds how often other instances may be first with a batch, one time after the other.
const maxLost = 20

// write adds the leaves of a group that the log has not, and signs. A batch ends where its bundle
// ends, so that what begins with a bundle begins with a batch.
func (l *Log) write(ctx context.Context, g *group) error {
	end, err := l.take(ctx)
	if err != nil {
		return err
	}
	defer end()
	leaves := l.adding.take(g)
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
