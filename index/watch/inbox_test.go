package watch

import (
	"errors"
	"strconv"
	"testing"

	"github.com/fsnotify/fsnotify"
)

// A burst of events fills a bounded memory, and no sender waits. Events beyond the bound count as
// lost, and so do events before an error.
func TestAnInboxIsBounded(t *testing.T) {
	for _, test := range []struct {
		rule   string
		events int
		err    error
		kept   int
		lost   bool
	}{
		{"a few", 3, nil, 3, false},
		{"as many as fit", maxEvents, nil, maxEvents, false},
		{"more", maxEvents + 100, nil, maxEvents, true},
		{"an error of the kernel's queue", 3, fsnotify.ErrEventOverflow, 3, true},
		{"any other error", 3, errors.New("failed"), 3, true},
	} {
		t.Run(test.rule, func(t *testing.T) {
			i, events, errs := newInbox(), make(chan fsnotify.Event), make(chan error)
			ended := make(chan struct{})
			go func() {
				i.fill(t.Context(), events, errs)
				close(ended)
			}()
			for n := range test.events {
				events <- fsnotify.Event{Name: strconv.Itoa(n)}
			}
			if test.err != nil {
				errs <- test.err
			}
			close(events)
			<-ended
			got, lost, end := i.take()
			if len(got) != test.kept || lost != test.lost || got[0].Name != "0" || !end {
				t.Errorf("%d are kept, others lost: %v; it has ended: %v", len(got), lost, end)
			}
			if got, lost, _ = i.take(); got != nil || lost {
				t.Errorf("then %d are kept, others lost: %v", len(got), lost)
			}
		})
	}
}
