package authenticate

import (
	"context"
	"sync"
	"testing"

	"github.com/caddyserver/caddy/v2"
)

// A configuration is a Caddy configuration that provisions modules.
type configuration struct {
	t      *testing.T
	ctx    caddy.Context
	cancel func()
}

// newConfiguration returns a configuration that ends with the test, if not before.
func newConfiguration(t *testing.T) *configuration {
	t.Helper()
	ctx, cancel := caddy.NewContext(caddy.Context{Context: context.Background()})
	c := &configuration{t: t, ctx: ctx, cancel: sync.OnceFunc(cancel)}
	t.Cleanup(c.cancel)
	return c
}
