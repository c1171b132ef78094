package watch

import (
	"sync"

	"github.com/fsnotify/fsnotify"
)

// directories has the watched directories, by their names. A name may be given to another directory,
// as by a symlink that is pointed elsewhere. fsnotify 1.10.1 takes the name for the directory before
// then: adding the name again leaves the kernel's watch of that directory behind and, if the other
// directory is watched under another name already, leaves a name without a watch, for which Remove
// dereferences nil. So the watch of the directory before ends first.
type directories struct {
	notify *fsnotify.Watcher

	mutex sync.Mutex
	known map[string]directory // as they were when they were added
}

// A directory is what a name leads to. On systems that do not tell, all directories are the same.
type directory struct{ device, inode uint64 }

func newDirectories() (*directories, error) {
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	return &directories{notify: notify, known: make(map[string]directory)}, nil
}

// add watches the directory that has a name now. ended reports whether the watch of another directory
// has ended, which had the name before and may have another name, too.
func (d *directories) add(name string) (ended bool, err error) {
	now := directoryAt(name)
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if before, known := d.known[name]; known && before != now {
		ended = d.end(name)
	}
	if err := d.notify.Add(name); err != nil {
		return ended, err
	}
	d.known[name] = now
	return ended, nil
}

// remove ends watching the directory that was added under a name, and reports whether there was a
// watch to end. There is none of a directory that is gone, or was added under another name before.
func (d *directories) remove(name string) (ended bool) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return d.end(name)
}

// end ends a watch. The name may still be one without a watch, if it was given to another directory
// between the look at it and its watch. fsnotify has forgotten the name and unlocks when it panics.
func (d *directories) end(name string) (ended bool) {
	defer func() {
		if recover() != nil {
			ended = false
		}
	}()
	delete(d.known, name)
	return d.notify.Remove(name) == nil
}
