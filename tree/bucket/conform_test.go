package bucket_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
)

// A bucket keeps the rules of every storage.
func TestConformance(t *testing.T) { treetest.Conform(t, bucketStorage) }

func bucketStorage(t *testing.T) treetest.Storage {
	b := new(treetest.Bucket)
	files, err := source.Directories{Root: "."}.OpenIn(b)
	if err != nil {
		t.Fatal(err)
	}
	return treetest.Storage{
		Tree:     files,
		Put:      func(name, content string, age time.Duration) { b.Put(name, content, time.Now().Add(-age)) },
		Contents: b.Contents,
		Fail: func(fails func(n int) error) {
			if b.Fail = nil; fails == nil {
				return
			}
			var mutex sync.Mutex // several files are written at once
			n := 0
			b.Fail = func(string, string) error {
				mutex.Lock()
				defer mutex.Unlock()
				n++
				return fails(n)
			}
		},
		Faults: []error{errors.New("503 SlowDown"), tree.ErrStore},
	}
}
