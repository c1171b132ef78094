package module

import (
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

// Each configuration decides again whether instances share.
func TestPollIsSwitchedByAReload(t *testing.T) {
	root, storage := sampleTree(t), t.TempDir()
	begin := func(poll caddy.Duration) (c *configuration, x *index.Index) {
		c = newConfigurationIn(t, storage)
		h := c.mustHandle(Handler{Root: root, Poll: poll, SigningKey: &SigningKey{Off: true}})
		c.mustStart()
		snapshot(t, h)
		return c, h.source.index.Load()
	}
	alone, first := begin(-1)
	sharing, second := begin(caddy.Duration(time.Hour))
	alone.cancel()
	if first == second {
		t.Error("an index that shares nothing is used by a configuration with other instances")
	}
	_, third := begin(caddy.Duration(time.Minute))
	sharing.cancel()
	if second != third {
		t.Error("another interval takes another index")
	}
}
