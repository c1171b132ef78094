package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
)

const (
	// maxRounds bounds how often a log may grow while it is looked at.
	maxRounds = 20

	// An instance may have an older log than another one for a moment.
	patience = 3
)

// proveCheckpoints checks that all checkpoints of this run, the one of the repository and the newest one
// of earlier runs are of one log. The head is then the newest of them.
//
// The registry proves that a checkpoint continues into the newest one that it has. That one is
// the next to be proved, until only one is left. The newest of all is left as it is, unless
// nothing leads to it: one of several instances may be behind, or the log has shrunk.
func (l *Log) proveCheckpoints(ctx context.Context) error {
	open := maps.Clone(l.seen)
	if l.pin != nil && open[l.pin.Checkpoint] == nil { // the newer one may have more signatures
		open[l.pin.Checkpoint] = l.pin.Signed
	}
	before := l.settledBefore(open)
	all := slices.Collect(maps.Keys(open))
	stuck := false
	for round := 0; len(open) > 1 && !before.has(open, l.head.Size); round++ {
		if round == maxRounds {
			return unanswered(l.base, "the log grows faster than it can be looked at: try again")
		}
		if err := l.checkSizes(open); err != nil {
			return err
		}
		newest := newestOf(open)
		next := make(map[tlog.Checkpoint][]byte)
		for c, signed := range open {
			if c == newest && !stuck {
				next[c] = signed
				continue
			}
			later, err := l.follow(ctx, seen{c, signed})
			if err != nil {
				return err
			}
			next[later.Checkpoint] = later.signed
			all = append(all, later.Checkpoint)
		}
		stuck = maps.EqualFunc(open, next, func(a, b []byte) bool { return true })
		open = next
	}
	for c, signed := range open {
		if c.Size > l.head.Size {
			l.head = seen{c, signed}
		}
	}
	l.keepSettled(before, all)
	return nil
}

// agree checks that two logs of one name are one log, at two URLs. Either may be the
// wrong one: both raise the alarm.
func (l *Log) agree(ctx context.Context, other *Log) error {
	older, newer := l, other
	if older.head.Size > newer.head.Size {
		older, newer = newer, older
	}
	before, err := older.head.signed, error(nil)
	if !slices.Equal(slices.Sorted(slices.Values(l.keys)), slices.Sorted(slices.Values(other.keys))) {
		err = newer.alarm(OtherKey, before, newer.head.signed, "the log of this name at %s has another key", older.URL())
	} else if _, err = newer.open(before, newer.head.signed); err == nil {
		err = newer.proveCheckpoints(ctx)
	}
	a, ok := errors.AsType[*Alarm](err)
	if !ok {
		return err
	}
	return older.alarm(a.Kind, []byte(a.Before), []byte(a.Now), "the log of this name at %s is another one", newer.URL())
}

func newestOf(open map[tlog.Checkpoint][]byte) (newest tlog.Checkpoint) {
	for c := range open {
		if c.Size >= newest.Size {
			newest = c
		}
	}
	return newest
}

// checkSizes checks that no two checkpoints of one size have other roots.
func (l *Log) checkSizes(open map[tlog.Checkpoint][]byte) error {
	bySize := make(map[int64]tlog.Checkpoint)
	for c := range open {
		other, known := bySize[c.Size]
		if known && other != c {
			if l.pin != nil && c == l.pin.Checkpoint {
				c, other = other, c
			}
			return l.alarm(Forked, open[other], open[c], "there are two logs with %d entries", c.Size)
		}
		bySize[c.Size] = c
	}
	return nil
}

// follow returns a later checkpoint, which the registry has proved to continue an earlier one.
func (l *Log) follow(ctx context.Context, earlier seen) (later seen, err error) {
	q := l.question("consistency", maxConsistency)
	q.url.RawQuery = fmt.Sprintf("from=%d", earlier.Size)
	var a answer
	for attempt := 0; ; attempt++ {
		if a, err = l.client.ask(ctx, q); err != nil {
			return later, err
		}
		if a.status == http.StatusOK || attempt == patience {
			break
		}
		if err := l.client.wait(ctx); err != nil {
			return later, err
		}
	}
	if a.status != http.StatusOK {
		return later, l.shrunk(ctx, earlier)
	}
	text, rest, _ := strings.Cut("\n"+string(a.body), "\n\n")
	proof, err := tlog.ParseConsistency(strings.TrimPrefix(text+"\n", "\n"))
	if err != nil {
		return later, unanswered(q.url, "its answer is no proof of consistency: %s", shortened(err.Error(), maxReason))
	}
	if later.Checkpoint, err = l.open([]byte(rest), earlier.signed); err != nil {
		return later, err
	}
	later.signed = []byte(rest)
	if later.Size < earlier.Size {
		return later, l.alarm(Shrank, earlier.signed, later.signed, "it had %d entries, and has %d", earlier.Size, later.Size)
	}
	if err := proof.Check(earlier.Checkpoint, later.Checkpoint); err != nil {
		return later, l.alarm(Forked, earlier.signed, later.signed, "the newer checkpoint does not continue the older one")
	}
	return later, nil
}

// shrunk says what is wrong with a log that cannot prove that it continues a checkpoint.
func (l *Log) shrunk(ctx context.Context, earlier seen) error {
	q := l.question("checkpoint", maxCheckpoint)
	a, err := l.client.ask(ctx, q)
	if err != nil {
		return err
	}
	c, err := l.open(a.body, earlier.signed)
	if err != nil {
		return err
	}
	if c.Size < earlier.Size {
		return l.alarm(Shrank, earlier.signed, a.body, "it had %d entries, and has %d", earlier.Size, c.Size)
	}
	return unanswered(q.url, "it does not prove that its log continues a checkpoint of %d entries", earlier.Size)
}

// A settled log has the checkpoints in the cache that were proved to be of one log, as texts,
// and the newest of them with its signatures.
type settled struct {
	Texts  []string `json:"texts"`
	Newest []byte   `json:"newest"`
}

// maxSettled bounds how many checkpoints are kept.
const maxSettled = 64

func (l *Log) settledName() string { return nameOf("settled " + l.URL()) }

// settledBefore returns what the cache has, and adds the newest checkpoint to the open ones.
// A checkpoint of another log, or by another key, does not count.
func (l *Log) settledBefore(open map[tlog.Checkpoint][]byte) (before settled) {
	if json.Unmarshal(l.client.Cache.read(l.settledName()), &before) != nil || len(before.Texts) > maxSettled {
		return settled{}
	}
	c, err := tlog.OpenCheckpoint(before.Newest, l.origin, l.verify...)
	if err != nil {
		return settled{}
	}
	if _, known := open[c]; !known {
		open[c] = before.Newest
	}
	return before
}

func (l *Log) keepSettled(before settled, all []tlog.Checkpoint) {
	after := settled{slices.Clone(before.Texts), l.head.signed}
	for _, c := range append(all, l.head.Checkpoint) {
		if text := c.String(); !slices.Contains(after.Texts, text) {
			after.Texts = append(after.Texts, text)
		}
	}
	if len(after.Texts) == len(before.Texts) {
		return
	}
	after.Texts = after.Texts[max(0, len(after.Texts)-maxSettled):]
	if content, err := json.Marshal(after); err == nil {
		l.client.Cache.write(l.settledName(), content)
	}
}

// has reports whether all of the checkpoints were shown to be of one log, which has still that
// many entries.
func (s settled) has(open map[tlog.Checkpoint][]byte, size int64) bool {
	for c := range open {
		if c.Size > size || !slices.Contains(s.Texts, c.String()) {
			return false
		}
	}
	return true
}
