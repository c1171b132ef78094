package tree

import (
	"sync"
	"time"
)

// openFor is how long an opened tree is shared. An open tree holds a descriptor until the
// garbage collector closes it. A tree for each request would hold as many descriptors as
// there are requests until then.
const openFor = time.Second

// An Opener opens a tree again and again. It is safe for concurrent use.
type Opener struct {
	open func() (Tree, error)

	mutex   sync.Mutex
	last    Tree
	expires time.Time // zero: last is not open
}

// NewOpener returns an Opener that opens its tree by open.
func NewOpener(open func() (Tree, error)) *Opener { return &Opener{open: open} }

// Tree returns the tree for one piece of work; the caller must not keep it for longer. An
// Opener notices that the root was replaced by a rename after a second, or when Forget is
// called. The error is the error of opening the tree.
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

// Forget makes the next Tree open the tree again.
func (o *Opener) Forget() {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.last, o.expires = Tree{}, time.Time{}
}
