package index_test

import (
	"maps"
	"slices"
	"sync"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
)

// A randomFault makes operations of a storage fail.
type randomFault struct {
	faults treetest.Faults // of file systems; a bucket calls operation itself

	mutex  sync.Mutex
	fails  func(n int, operation, name string) error // nil: no operation fails
	paused bool
	asked  int
	failed map[string]bool
	listed bool // a listing of a bucket has failed
}

func (f *randomFault) begin(fails func(n int, operation, name string) error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.fails, f.asked, f.failed, f.listed = fails, 0, make(map[string]bool), false
	f.faults.When(func(_ int, o treetest.Operation) error { return f.operation(o.Name, o.Path) })
}

func (f *randomFault) end() {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.fails = nil
	f.faults.End()
}

func (f *randomFault) open(open func() (tree.Tree, error)) (tree.Tree, error) {
	return f.faults.Open(open)()
}

func (f *randomFault) active() bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.fails != nil
}

// pause lets all operations succeed until it is resumed.
func (f *randomFault) pause() (resume func()) {
	set := func(paused bool) {
		f.mutex.Lock()
		defer f.mutex.Unlock()
		f.paused = paused
	}
	set(true)
	return func() { set(false) }
}

func (f *randomFault) operation(operation, name string) error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.fails == nil || f.paused {
		return nil
	}
	f.asked++
	err := f.fails(f.asked, operation, name)
	if err != nil {
		f.failed[name] = true
		f.listed = f.listed || operation == "list"
	}
	return err
}

// failures returns the paths of the operations that have failed, sorted.
func (f *randomFault) failures() []string {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return slices.Sorted(maps.Keys(f.failed))
}

// listing reports whether a listing of a bucket has failed.
func (f *randomFault) listing() bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.listed
}
