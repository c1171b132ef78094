package indextest

import (
	"context"
	"io/fs"
	"maps"
	"slices"
	"sync"

	"github.com/caddy-terraform/caddy-terraform-registry/index/keys"
)

// KeyCopies keep copies of keys in memory, even over simulated restarts.
type KeyCopies struct {
	mutex  sync.Mutex
	copies map[string]string
	fails  error
	stored int
}

// Load implements keys.Copies.
func (c *KeyCopies) Load(_ context.Context, namespace string) ([]byte, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.fails != nil {
		return nil, c.fails
	}
	copied, ok := c.copies[namespace]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return []byte(copied), nil
}

// Store implements keys.Copies.
func (c *KeyCopies) Store(_ context.Context, namespace string, copied []byte) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.fails != nil {
		return c.fails
	}
	if c.copies == nil {
		c.copies = make(map[string]string)
	}
	c.copies[namespace] = string(copied)
	c.stored++
	return nil
}

// Delete implements keys.Copies.
func (c *KeyCopies) Delete(_ context.Context, namespace string) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.fails == nil {
		delete(c.copies, namespace)
	}
	return c.fails
}

// Fail makes all operations fail with an error from now on; nil ends that.
func (c *KeyCopies) Fail(err error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.fails = err
}

// Namespaces returns the namespaces that have a copy, sorted.
func (c *KeyCopies) Namespaces() []string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return slices.Sorted(maps.Keys(c.copies))
}

// Stored returns the number of copies that were stored.
func (c *KeyCopies) Stored() int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.stored
}

// Interface guards
var _ keys.Copies = (*KeyCopies)(nil)
