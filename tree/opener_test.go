package tree_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

func TestOpenedTreesAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opened := 0
		var fails error
		o := tree.NewOpener(func() (tree.Tree, error) {
			opened++
			return tree.Tree{}, fails
		})
		for _, step := range []struct {
			rule   string
			before func()
			fails  error
			opened int
		}{
			{"the first is opened", func() {}, nil, 1},
			{"the next is the same", func() {}, nil, 1},
			{"not after a second", func() { time.Sleep(time.Second) }, nil, 2},
			{"not once it is forgotten", o.Forget, nil, 3},
			{"a failure is not shared", o.Forget, errors.New("the root is gone"), 4},
			{"and opened again", func() {}, nil, 5},
		} {
			step.before()
			fails = step.fails
			if _, err := o.Tree(); err != step.fails || opened != step.opened {
				t.Errorf("%s: opened %d times, %v", step.rule, opened, err)
			}
		}
	})
}
