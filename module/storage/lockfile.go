package storage

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// A lockFile is a lock that this process has in a storage of files. The file has the form of
// certmagic: the process that has the lock writes the time into it every five seconds, and a lock with
// an old time is a leftover.
//
// The Lock of certmagic is not used. The goroutine that writes the time there does not end with the
// lock, but when it does not find the file. If another process takes the lock within five seconds, the goroutine
// goes on with the file of that process. If that process is then killed, its lock stays for as long as this
// process lives.
type lockFile struct {
	name     string // of the file
	created  time.Time
	released chan struct{} // closed when the lock is given back
}

// lockTimes is the content of a lock file.
type lockTimes struct {
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"`
}

const (
	lockRefresh  = 5 * time.Second
	lockStaleAge = 2 * lockRefresh
)

// createLockFile takes a lock, and keeps it until it is given back. The error is fs.ErrExist if there is a file.
func createLockFile(name string) (*lockFile, error) {
	_ = os.MkdirAll(filepath.Dir(name), 0o700) // creating the file tells
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	l := &lockFile{name: name, created: time.Now(), released: make(chan struct{})}
	err = l.write(f)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		os.Remove(name) // a file without a time would be waited for
		return nil, err
	}
	go l.refresh()
	return l, nil
}

// write writes the time.
func (l *lockFile) write(f *os.File) error {
	content, err := json.Marshal(lockTimes{l.created, time.Now()})
	if err == nil {
		_, err = f.WriteAt(append(content, '\n'), 0)
	}
	if err == nil {
		err = f.Truncate(int64(len(content)) + 1) // never to nothing: others may read the file at any time
	}
	if err == nil {
		err = f.Sync() // some network disks show it to others only then
	}
	return err
}

// refresh writes the time until the lock is given back, or lost.
func (l *lockFile) refresh() {
	tick := time.NewTicker(lockRefresh)
	defer tick.Stop()
	for {
		select {
		case <-l.released:
			return
		case <-tick.C:
		}
		if !l.update() {
			return
		}
	}
}

// update writes the time, and reports whether the lock is not lost. What a disk fails to write is written
// the next time. If the file is replaced after it was opened, the time goes into a file without a name.
func (l *lockFile) update() (has bool) {
	f, err := os.OpenFile(l.name, os.O_RDWR, 0)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	defer f.Close()
	switch now, err := readLockTimes(f); {
	case err != nil:
	case !now.Created.Equal(l.created):
		return false
	default:
		_ = l.write(f)
	}
	return true
}

// giveBack removes the file, unless another process has the lock by now. It may be called again after an error.
func (l *lockFile) giveBack() error {
	select {
	case <-l.released:
	default:
		close(l.released)
	}
	now, err := readLockFile(l.name)
	if failed, is := errors.AsType[*fs.PathError](err); is {
		return failed // it may be the file of another process
	}
	if err == nil && !now.Created.Equal(l.created) {
		return nil
	}
	return os.Remove(l.name)
}

// readLockFile returns the times in a lock file. The error wraps fs.ErrNotExist if there is none.
func readLockFile(name string) (t lockTimes, err error) {
	f, err := os.Open(name)
	if err != nil {
		return t, err
	}
	defer f.Close()
	return readLockTimes(f)
}

func readLockTimes(f io.Reader) (t lockTimes, err error) {
	err = json.NewDecoder(f).Decode(&t)
	return t, err
}

// removeStale removes a lock file with an old time, and reports whether it did. The owner of any other one
// may be at work.
func removeStale(name string) (removed bool) {
	now, err := readLockFile(name)
	if err != nil {
		return false
	}
	last := now.Updated
	if last.IsZero() {
		last = now.Created
	}
	if time.Since(last) <= lockStaleAge {
		return false
	}
	return os.Remove(name) == nil
}
