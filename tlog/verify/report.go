package verify

import "time"

// A Status says what became of an item.
type Status string

const (
	// OK: it is as on record.
	OK Status = "ok"

	// Found: something is wrong with it.
	Found Status = "finding"

	// NoLog: the registry has no log.
	NoLog Status = "no log"

	// Unanswered: it is not known, because a registry gave no answer.
	Unanswered Status = "unanswered"
)

// A FindingKind names the fault of an item.
type FindingKind string

const (
	// NotOnRecord: the log has no entry of the version, or of the package.
	NotOnRecord FindingKind = "not on record"

	// OtherBytes: a hash or a file is not the one on record.
	OtherBytes FindingKind = "other bytes"

	// Replaced: the log has two packages of the version with other files or bytes.
	Replaced FindingKind = "replaced"

	// Withdrawn: the registry does not offer the version any more.
	Withdrawn FindingKind = "withdrawn"

	// TooYoung: the version has been offered for too short a time.
	TooYoung FindingKind = "too young"

	// WithoutLog: the registry has no log, and must have one.
	WithoutLog FindingKind = "no log"

	// Unproven: the log itself, or a proof, is wrong.
	Unproven FindingKind = "unproven"
)

// A Finding is something that is wrong with an item.
type Finding struct {
	Kind   FindingKind  `json:"kind"`
	Where  string       `json:"where,omitempty"` // a folder, or FILE:LINE
	Detail string       `json:"detail"`
	Files  []Difference `json:"files,omitempty"`
}

// An Item is a version of a provider or module in a project.
type Item struct {
	Kind       string     `json:"kind"` // provider or module
	Address    string     `json:"address"`
	Version    string     `json:"version"`
	Folder     string     `json:"folder"`          // of the project
	From       []string   `json:"from"`            // where it is locked, or the calls
	Log        string     `json:"log,omitempty"`   // its URL
	Since      *time.Time `json:"since,omitempty"` // since when it is offered
	Status     Status     `json:"status"`
	Why        string     `json:"why,omitempty"` // of the status no log or unanswered
	Findings   []Finding  `json:"findings"`
	Deprecated string     `json:"deprecated,omitempty"` // the registry's notice
}

func (i *Item) find(kind FindingKind, where, detail string, files ...Difference) {
	i.Status = Found
	i.Findings = append(i.Findings, Finding{kind, where, detail, files})
}

// set says why there is no result. What is wrong comes before what is not known.
func (i *Item) set(status Status, why string) {
	i.Why = why
	if i.Status != Found {
		i.Status = status
	}
}

// A LogReport describes a log as this run has seen it.
type LogReport struct {
	URL    string   `json:"url"`
	Origin string   `json:"origin"`
	Size   int64    `json:"size"`
	Keys   []string `json:"keys"`
	Pinned string   `json:"pinned"`           // first use, unchanged, updated, hosts added, or kept: not written
	Before []string `json:"before,omitempty"` // names of the logs that it continues, and that were seen before
	More   []string `json:"more,omitempty"`   // hashes of other keys that sign it
	Error  string   `json:"error,omitempty"`  // why nothing is known
	Alarm  *Alarm   `json:"alarm,omitempty"`
}

// A Report is the result of a run.
type Report struct {
	Folders []string             `json:"folders"`
	Items   []*Item              `json:"items"`
	Logs    []LogReport          `json:"logs"`
	Kept    map[string]time.Time `json:"kept"` // hosts that could not be reached, and how old their answers are

	// Unwritten says why what is to be kept of logs could not be written; empty: it was.
	Unwritten string `json:"unwritten,omitempty"`
}

// Count returns the number of items with a status.
func (r *Report) Count(s Status) (n int) {
	for _, i := range r.Items {
		if i.Status == s {
			n++
		}
	}
	return n
}

// Alarms returns what is wrong with logs.
func (r *Report) Alarms() (alarms []*Alarm) {
	for _, l := range r.Logs {
		if l.Alarm != nil {
			alarms = append(alarms, l.Alarm)
		}
	}
	return alarms
}

// Failed returns whether a log is not known to be what it was, without an alarm.
func (r *Report) Failed() bool {
	for _, l := range r.Logs {
		if l.Error != "" {
			return true
		}
	}
	return false
}
