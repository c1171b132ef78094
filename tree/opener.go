package tree

import (
	"sync"
	"time"
)

// openFor is how long an opened tree is shared. An open tree is a descriptor until
// the garbage collector closes it; with one for each request there would be as
// many as there are requests until then.
const openFor = time.Second

// An Opener opens a tree again and again. It is safe for concurrent use.
type Opener struct {
	open func() (Tree, error)

	mutex   sync.Mutex
	last    Tree
	expires time.Time // zero: last is not open
}

// NewOpener returns an Opener of the tree that open opens.
func NewOpener(open func() (Tree, error)) *Opener { return &Opener{open: open} }

// Tree returns the tree for one piece of work, to be kept no longer. A root that is
// replaced by a rename is noticed after a second, or once it has been forgotten. The
// error is that of opening it.
func (o *Opener) Tree() (Tree, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	now := time.Now()
	if now.Before(o.expires) {
		return o.last, nil
	}
	files, err := o.open()
	if err != nil {
		o.last, o.expires = Tree{}, time.Time{}
		return files, err
	}
	o.last, o.expires = files, now.Add(openFor)
	return files, nil
}

// Forget has the next Tree opened where it is then.
func (o *Opener) Forget() {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.last, o.expires = Tree{}, time.Time{}
}
