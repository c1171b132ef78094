package verify

import (
	"cmp"
	"fmt"
)

// An AlarmKind names the fault of a log.
type AlarmKind string

const (
	// Forked: two logs are shown, or entries have changed.
	Forked AlarmKind = "forked"

	// Shrank: entries have gone.
	Shrank AlarmKind = "shrank"

	// OtherKey: its checkpoint is signed by another key.
	OtherKey AlarmKind = "other key"

	// Renamed: another log is in its place.
	Renamed AlarmKind = "another log"

	// Gone: there was a log, and there is none any more.
	Gone AlarmKind = "gone"
)

// An Alarm means that a log is not what it was. Nothing that it says counts. Who sees one
// shows the checkpoints to others: both are signed.
type Alarm struct {
	Kind   AlarmKind `json:"kind"`
	URL    string    `json:"url"`
	Detail string    `json:"detail"`
	Before string    `json:"before,omitempty"` // the signed checkpoint that was seen before
	Now    string    `json:"now,omitempty"`    // the signed checkpoint that is shown now
}

func (a *Alarm) Error() string { return fmt.Sprintf("%s: %s: %s", a.URL, a.Kind, a.Detail) }

func (l *Log) alarm(kind AlarmKind, before, now []byte, format string, args ...any) *Alarm {
	a := &Alarm{kind, l.URL(), fmt.Sprintf(format, args...), string(before), string(now)}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.raised == nil {
		l.raised = a
	}
	return l.raised
}

// alarmed returns the first alarm; nil: none.
func (l *Log) alarmed() *Alarm {
	l.mu.Lock()
	defer l.mu.Unlock()
	return cmp.Or(l.raised, l.omitted)
}
