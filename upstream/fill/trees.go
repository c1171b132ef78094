package fill

import (
	"sync"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

// treeLife is how long an opened tree is used by all. One that is open is a
// descriptor, which the collector closes when it gets round to it: with one for
// each request there would be as many as there are requests until then. A root
// that is replaced by a rename is seen when it is over.
const treeLife = time.Second

// Trees are the tree as it is opened again and again.
type trees struct {
	open func() (index.Tree, error)

	mutex sync.Mutex
	last  index.Tree
	until time.Time // zero: it is not open
}

// get opens the tree, or gives the one that was opened just now. Nobody keeps it
// for longer than one piece of work takes.
func (t *trees) get() (index.Tree, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	now := time.Now()
	if now.Before(t.until) {
		return t.last, nil
	}
	tree, err := t.open()
	if err != nil {
		t.last, t.until = index.Tree{}, time.Time{}
		return tree, err
	}
	t.last, t.until = tree, now.Add(treeLife)
	return tree, nil
}

// forget has the next get open the tree, whenever it was opened last.
func (t *trees) forget() {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.last, t.until = index.Tree{}, time.Time{}
}
