package fill

import (
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

// quiet is how long nothing more is said of what an origin fails at in the same
// way. Anybody may ask for any release: a line for each of them would be theirs to
// write.
const quiet = 10 * time.Minute

// Refusals are how often something was refused that is not logged, by origin and
// reason. Of both there are few.
type refusals struct {
	mutex sync.Mutex
	of    map[refusalID]*refusal
}

type refusalID struct{ message, origin, reason string }

type refusal struct {
	logged time.Time
	more   int
}

// note reports whether a refusal is to be logged, and how many were not since the
// last that was.
func (r *refusals) note(id refusalID, now time.Time) (first bool, more int) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	known := r.of[id]
	if known == nil {
		if r.of == nil {
			r.of = make(map[refusalID]*refusal)
		}
		known = new(refusal)
		r.of[id] = known
	}
	if !known.logged.IsZero() && now.Sub(known.logged) < quiet {
		known.more++
		return false, 0
	}
	more, known.more, known.logged = known.more, 0, now
	return true, more
}

// noteRefusal logs what does not come in, once in a while for each way in which an
// origin fails. That there is no such thing is no failure.
func (f *Filler) noteRefusal(message string, a address.Address, err error, of ...any) {
	origin := a.Hostname.ForDisplay()
	level := slog.LevelWarn
	first, more := f.refusals.note(refusalID{message, origin, Reason(err)}, time.Now())
	if !first || errors.Is(err, upstream.ErrNotFound) {
		level = slog.LevelDebug
	}
	args := append([]any{"provider", a.String()}, of...)
	args = append(args, "error", err.Error())
	if more > 0 {
		args = append(args, "more_like_it", more)
	}
	f.log(level, message, args...)
}
