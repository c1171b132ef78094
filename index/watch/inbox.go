package watch

import (
	"context"
	"sync"

	"github.com/fsnotify/fsnotify"
)

// maxEvents is how many events an inbox keeps, as many as the kernel keeps by default. When
// there are more, all folders are scanned: which of them have changed is lost.
const maxEvents = 1 << 14

// An inbox has the events that have been received and not been handled. It never keeps the
// sender waiting.
type inbox struct {
	some chan struct{} // has a value if there may be some

	mutex  sync.Mutex
	events []fsnotify.Event
	lost   bool // others were lost
	ended  bool // no more will come
}

func newInbox() *inbox { return &inbox{some: make(chan struct{}, 1)} }

// fill receives events until there are no more, or until ctx ends. After an error, events may
// have been lost.
func (i *inbox) fill(ctx context.Context, events <-chan fsnotify.Event, errs <-chan error) {
	for open := true; open; {
		var event fsnotify.Event
		lost := false
		select {
		case <-ctx.Done():
			return
		case event, open = <-events:
		case _, open = <-errs:
			lost = open
		}
		i.mutex.Lock()
		switch {
		case !open:
			i.ended = true
		case lost || len(i.events) == maxEvents:
			i.lost = true
		default:
			i.events = append(i.events, event)
		}
		i.mutex.Unlock()
		select {
		case i.some <- struct{}{}:
		default:
		}
	}
}

// take returns the events, whether others were lost, and whether no more will come.
func (i *inbox) take() (events []fsnotify.Event, lost, ended bool) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	events, lost, ended = i.events, i.lost, i.ended
	i.events, i.lost = nil, false
	return events, lost, ended
}
