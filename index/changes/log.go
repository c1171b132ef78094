package changes

import (
	"maps"
	"slices"
	"sync"
)

// A Number numbers the changes of this process: a later one has a larger number.
type Number uint64

// A Log has the changes since the last scan, and the changes of this process until other
// instances have been told of them. They are told when a scan has seen the folders and their
// archives have been read. A Log is safe for concurrent use.
type Log struct {
	mutex       sync.Mutex
	paths       Paths      // that may have changed since the last scan
	unscanned   [][]string // folders that this process has changed, since the last scan
	unannounced [][]string // such folders of earlier scans
	last        Number
	ended       bool
}

// NewLog returns a log before the first scan, of the whole tree.
func NewLog() *Log { return &Log{paths: Everything()} }

// Add adds paths that may have changed.
func (l *Log) Add(p Paths) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	maps.Copy(l.paths, p)
}

// AddOwn adds a change of this process in folders, and returns its number.
func (l *Log) AddOwn(folders []string) Number {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	maps.Copy(l.paths, PathsOf(folders))
	l.unscanned = append(l.unscanned, folders)
	l.last++
	return l.last
}

// Take returns the paths for the next scan, the last change of this process that the scan will
// see, and how many of them no earlier scan has seen.
func (l *Log) Take() (p Paths, last Number, unscanned int) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	p, l.paths = l.paths, make(Paths)
	return p, l.last, len(l.unscanned)
}

// HasScanned notes that a scan has seen the first n changes that no earlier scan had seen.
func (l *Log) HasScanned(n int) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.ended { // while the scan ran
		return
	}
	l.unannounced = append(l.unannounced, l.unscanned[:n]...)
	l.unscanned = slices.Clone(l.unscanned[n:])
}

// TakeRead returns the folders of each change that can be announced: a scan has seen them, and
// isUnread says of none that archives are still to be read.
func (l *Log) TakeRead(isUnread func(folders []string) bool) (read [][]string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.unannounced = slices.DeleteFunc(l.unannounced, func(folders []string) bool {
		if isUnread(folders) {
			return false
		}
		read = append(read, folders)
		return true
	})
	return read
}

// End returns the folders of each change that has not been announced. No other call returns
// them again.
func (l *Log) End() [][]string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	rest := slices.Concat(l.unannounced, l.unscanned)
	l.unscanned, l.unannounced, l.ended = nil, nil, true
	return rest
}
