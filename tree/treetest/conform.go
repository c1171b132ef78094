package treetest

import (
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// A Storage is an empty tree that lies somewhere, for Conform. Names are paths such as
// providers/acme/demo/1.0.0/x.
type Storage struct {
	Tree tree.Tree

	// Put writes a file of that age, like a program that copies files.
	Put func(name, content string, age time.Duration)

	// Contents returns the contents of all files at this moment.
	Contents func() map[string]string

	// Fail has fails called with the number of each operation from now on, before the
	// operation, which then fails with the error, and for one operation at a time. Nil ends
	// that.
	Fail func(fails func(n int) error)

	// Faults are errors with which an operation may fail for a moment.
	Faults []error

	// Link makes a symlink, and Pipe a named pipe. Nil: the storage has none.
	Link func(target, name string)
	Pipe func(name string)

	// Unshared tells that only one writer at a time is supported: renaming a folder may
	// replace another one.
	Unshared bool
}

// Conform checks that a storage keeps the rules of package tree. All rows are the same for
// every storage: code above package tree does not know which one it has.
func Conform(t *testing.T, open func(t *testing.T) Storage) {
	t.Run("reading", func(t *testing.T) { conformReading(t, open) })
	t.Run("a failure is no absence", func(t *testing.T) { conformFailedReads(t, open) })
	t.Run("a change is made as a whole or not at all", func(t *testing.T) { conformChanges(t, open) })
	t.Run("the first writer of a name has it", func(t *testing.T) { conformCreation(t, open) })
	t.Run("a folder is installed where there is none", func(t *testing.T) { conformInstallation(t, open) })
	t.Run("symlinks and special files", func(t *testing.T) { conformLinks(t, open) })
}

// Of the tree that most rows begin with.
const (
	demoFolder = "acme/demo"
	demoFile   = "acme/demo/1.0.0/x"
	sumsName   = "a_SHA256SUMS" // before all other names of a release
)

var demoAddress = address.Address{Namespace: "acme", Name: "demo"}

func (s Storage) put(files map[string]string) Storage {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		s.Put(name, files[name], time.Hour)
	}
	return s
}

// visible returns the files that readers of a tree see: no hidden or temporary ones, no empty
// ones, which may be reservations, and nothing of a folder that is still being uploaded.
func (s Storage) visible() map[string]string {
	all := s.Contents()
	seen := make(map[string]string)
	for name, content := range all {
		_, uploaded := all[path.Join(path.Dir(name), tree.UploadName)]
		_, complete := all[path.Join(path.Dir(name), sumsName)]
		hidden := slices.ContainsFunc(strings.Split(name, "/"), tree.IsHiddenOrTemporary)
		if !hidden && content != "" && path.Base(name) != tree.UploadName && (!uploaded || complete) {
			seen[name] = content
		}
	}
	return seen
}

// eachFault calls do for each operation that may fail, until none does, and for each way in
// which it may.
func eachFault(t *testing.T, open func(t *testing.T) Storage, do func(s Storage, n int, fault error) (asked int)) {
	all := open(t).Faults
	for n := 1; ; n++ {
		faults := all
		if testing.Short() {
			faults = all[n%len(all):][:1]
		}
		for _, fault := range faults {
			s := open(t)
			if asked := do(s, n, fault); asked < n || t.Failed() {
				return
			}
		}
	}
}
