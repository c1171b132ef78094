package tree_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

func TestDocumentsInParallel(t *testing.T) {
	all := make(map[string][]byte)
	for i := range 50 {
		all[fmt.Sprint(i)] = []byte{byte(i)}
	}
	failed := errors.New("failed")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, test := range []struct {
		rule      string
		ctx       context.Context
		documents tree.Documents
		do        error
		err       error
		done      int // -1: some
	}{
		{"all are done", t.Context(), tree.DocumentsOf(all), nil, nil, 50},
		{"no other one is begun after a failure", t.Context(), tree.DocumentsOf(all), failed, failed, -1},
		{"that they cannot be read is an error", t.Context(), func(func(string, []byte) error) error { return failed }, nil, failed, 0},
		{"none is begun after the end", ended, tree.DocumentsOf(all), nil, context.Canceled, 0},
	} {
		t.Run(test.rule, func(t *testing.T) {
			var done atomic.Int32
			err := test.documents.InParallel(test.ctx, func(name string, content []byte) error {
				if name != fmt.Sprint(content[0]) {
					t.Errorf("%s has the content of another", name)
				}
				done.Add(1)
				return test.do
			})
			if n := int(done.Load()); !errors.Is(err, test.err) || (test.done < 0 && n == 50) || (test.done >= 0 && n != test.done) {
				t.Errorf("%d are done: %v", n, err)
			}
		})
	}
}

// Of large documents one at a time is in memory.
func TestMemoryOfDocuments(t *testing.T) {
	large := make([]byte, 9<<20)
	documents := tree.DocumentsOf(map[string][]byte{"a": large, "b": large, "c": large, "d": make([]byte, 20<<20)})
	synctest.Test(t, func(t *testing.T) {
		var now atomic.Int32
		err := documents.InParallel(t.Context(), func(name string, _ []byte) error {
			if now.Add(1) > 1 {
				t.Errorf("%s is in memory beside another", name)
			}
			time.Sleep(time.Second)
			now.Add(-1)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
